"""The plan that all workers of a run must have."""

from contextlib import closing

import pytest

from engine.command import added
from engine.serving import suite
from pennyweight.engine.execution import new_run, offer, open_suite
from pennyweight.engine.sharing.plan import check_plan, plans_of
from pennyweight.errors import UsageError
from pennyweight.store.shared_runs import left
from pennyweight.store.store import Store
from pennyweight.suite.plan import attempts


def test_numbers_stand_for_the_attempts_in_their_order(tmp_path):
    path = suite(tmp_path, "http://127.0.0.1:9", tasks=3, runs="2", seed="7")
    path.write_text(path.read_text() + "tiers: {T0: {}, T1: {system: s}}\n")
    loaded = open_suite(path)
    plan = plans_of(loaded)["m"]
    assert [plan[i] for i in range(len(plan))] == list(attempts(loaded))
    with pytest.raises(UsageError, match=r"Subject 'mm' is not known. Did you mean 'm'\?"):
        plans_of(loaded, ["mm"])


def test_a_worker_with_another_suite_is_refused(tmp_path):
    path = suite(tmp_path, "http://127.0.0.1:9", tasks=3)
    loaded = open_suite(path)
    with closing(Store(str(tmp_path / "store.db"))) as store:
        run = added(new_run(loaded), store)
        assert offer(loaded, run, store) == left(store, run.id) == 3
        check_plan(loaded, run, store)
        path.write_text(path.read_text() + "# changed\n")
        with pytest.raises(UsageError, match="its text differs"):
            check_plan(open_suite(path), run, store)
