"""Tasks that changed between two sides, in both databases."""

import pytest

from pennyweight.store import cache as kept
from pennyweight.store import queries as look
from pennyweight.store.flips import Changes, changes
from pennyweight.store.store import Store
from store.samples import RUN, run

OTHER = "20260101-000000-0002"


@pytest.fixture
def store(store_address):
    """Of 60 tasks 30 get worse, 20 get better, the last by halves, and 10 stay as they are."""
    made = Store(store_address)
    names = (*look.ORDER, "correct")
    for name, right in ((RUN, lambda i: i < 30 or i >= 50), (OTHER, lambda i: i >= 30)):
        made.add_run(run(name))
        rows = [(f"t{i:02}", "m", "T0", 1, right(i)) for i in range(60)]
        rows += [("t49", "m", "T0", 2, False)]
        kept.save_measured(made, name, names, rows)
    yield made
    made.close()


def test_each_direction_has_its_own_limit_and_its_true_count(store):
    found = changes(store, ([RUN], {}), ([OTHER], {}), most=3)
    assert [c.task_id for c in found.worse] == ["t00", "t01", "t02"]
    assert [c.task_id for c in found.better] == ["t30", "t31", "t32"]
    assert (found.worse_count, found.better_count) == (30, 20)


def test_what_changed_most_comes_first(store):
    found = changes(store, ([RUN], {}), ([OTHER], {}))
    assert len(found.worse) == 30
    assert [(c.first, c.second) for c in found.better[-2:]] == [(0, 1), (0, 0.5)]
    back = changes(store, ([OTHER], {}), ([RUN], {}))
    assert (back.worse_count, back.better_count) == (20, 30)


def test_a_side_is_chosen_by_known_columns(store):
    assert changes(store, ([RUN], {"tier": "T1"}), ([OTHER], {})) == Changes()
    assert changes(store, ([RUN], {"tier": "T0"}), ([OTHER], {})).worse_count == 30
    with pytest.raises(KeyError):
        changes(store, ([RUN], {"1=1 --": "x"}), ([OTHER], {}))


def test_tasks_whose_exam_changed_are_left_out(store):
    left = [f"t{i:02}" for i in range(25)]
    found = changes(store, ([RUN], {}), ([OTHER], {}), without=left)
    assert [c.task_id for c in found.worse] == ["t25", "t26", "t27", "t28", "t29"]
    assert (found.worse_count, found.better_count) == (5, 20)


def test_more_tasks_may_be_left_out_than_a_query_has_variables(store):
    left = [f"t{index:02}" for index in range(300_000) if index != 7]
    found = changes(store, ([RUN], {}), ([OTHER], {}), without=left)
    assert [change.task_id for change in (*found.worse, *found.better)] == ["t07"]
