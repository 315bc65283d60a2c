"""The list of runs: metrics, tags, notes and the worst verdict first."""

import pytest

from api.pages.test_digest import SETTINGS
from pennyweight.api.pages.digest_cache import DigestCache
from pennyweight.api.pages.records import remark_on_run
from pennyweight.api.pages.run_list import counts, listing, state, state_mark
from pennyweight.api.runs import INTERRUPTED
from pennyweight.errors import NotFoundError
from pennyweight.store.cache import save_decision
from pennyweight.store.lanes.batches import StoredBatch, add_batch
from pennyweight.store.store import Store
from store.samples import RUN, call, record, run


@pytest.fixture
def store(tmp_path):
    made = Store(str(tmp_path / "pennyweight.db"))
    made.add_run(run(status="running", settings={**SETTINGS, "subjects": ["m"], "tiers": ["T0"]}))
    rows = [record("a", target="4", response="4"), record("b", status="error", error="no route")]
    made.write(rows, [call("a", cost_usd=0.5)])
    yield made
    made.close()


def test_a_run_that_nobody_makes_is_interrupted(store):
    digests = DigestCache(store)
    found = listing(store, digests, lambda _: INTERRUPTED)
    digests.close()
    (row,) = found.runs()
    assert (row.status, row.subjects, row.tiers) == (INTERRUPTED, ("m",), ("T0",))
    assert not found.running
    assert listing(store, digests, lambda run: run.status).running


def test_the_worst_verdict_comes_first(store):
    for policy, verdict in (("a", "pass"), ("b", "fail")):
        save_decision(store, RUN, policy=policy, side="T0", verdict=verdict, stamp="old")
    remark_on_run(store, RUN, tags=["night"], note="first")
    (row,) = listing(store, DigestCache(store), lambda run: run.status).runs()
    assert [v.verdict for v in row.verdicts] == ["fail", "pass"]
    assert (row.worst.policy, row.worst.decided) == ("b", False)
    assert (row.tags, row.note) == (("night",), "first")


def test_a_verdict_on_the_run_as_it_is_needs_no_digest_to_be_current(store):
    store.set_run(RUN, status="done", ended=2.0)
    for policy, stamp in (("now", state(store, RUN).stamp), ("before", "old")):
        save_decision(store, RUN, policy=policy, side="T0", verdict="pass", stamp=stamp)
    (row,) = listing(store, DigestCache(store), lambda run: run.status).runs()
    assert {v.policy: v.decided for v in row.verdicts} == {"now": True, "before": False}


def test_a_run_without_records_has_no_problem_and_says_what_is_out(store):
    waits = run("waits", status="waiting", settings={**SETTINGS, "subjects": [], "tiers": []})
    store.add_run(waits)
    add_batch(store, StoredBatch("b", "waits", "attempt", "m", "out", requests=7, done=2))
    digests = DigestCache(store)
    assert digests.get(waits, wait=True).problem
    rows = {row.id: row for row in listing(store, digests, lambda run: run.status).runs()}
    digests.close()
    assert (rows["waits"].out, rows["waits"].problem, rows[RUN].out) == (5, None, 0)


def test_counts_come_from_the_store(store):
    counted = counts(store, RUN)
    assert (counted.made, counted.errors, counted.cost_usd) == (2, 1, 0.5)


def test_a_state_has_a_mark(store):
    assert len(state_mark(state(store, RUN).stamp)) == 12
    assert state_mark(None) == ""
    with pytest.raises(NotFoundError):
        state(store, "none")
