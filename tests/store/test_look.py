"""Pages of records: in both databases, with every filter, forwards and backwards."""

import pytest

from assay.store import look
from assay.store.look import Filter
from assay.store.store import Store
from store.samples import RUN, call, record, run

TASKS = [f"t{i:02}" for i in range(23)]


@pytest.fixture
def store(store_address):
    made = Store(store_address)
    made.add_run(run(attempts=46))
    rows = [
        record(t, attempt=a, input=f"Task {t}: 50% of_it", response="Yes" if a == 1 else "no")
        for t in TASKS
        for a in (1, 2)
    ]
    made.write(rows, [call("t00")])
    measured = [
        {
            "task_id": t,
            "subject": "m",
            "tier": "T0",
            "attempt": a,
            "status": "ok",
            "correct": i % 3 == 0,
            "latency_ms": 10.0 * i,
            "answer": str(i % 2),
        }
        for i, t in enumerate(TASKS)
        for a in (1, 2)
    ]
    look.keep_measured(made, RUN, measured)
    yield made
    made.close()


def keys(page):
    return [tuple(r[n] for n in look.KEY) for r in page.rows]


def walked(store, wanted=Filter(), limit=7):  # noqa: B008
    """Read all pages forwards, and again backwards, which must give the same."""
    there, after = [], None
    while True:
        page = look.page(store, RUN, wanted, after=after, limit=limit)
        assert page.before is (after is not None)
        there += keys(page)
        if not page.after:
            break
        after = there[-1]
    page = look.page(store, RUN, wanted, last=True, limit=limit)
    back = keys(page)
    while page.before:
        page = look.page(store, RUN, wanted, before=back[0], limit=limit)
        back = keys(page) + back
    assert back == there
    return there


def test_every_record_is_on_one_page(store):
    found = walked(store)
    assert sorted(found) == [(t, "m", "T0", a) for t in TASKS for a in (1, 2)]
    assert look.count(store, RUN, Filter()) == 46
    assert look.count(store, RUN, Filter(), most=10) == 11
    assert look.made(store, RUN) == 46


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (Filter({"task_id": "t03"}), 2),
        (Filter(flags={"correct": True}), 16),
        (Filter(flags={"correct": False}), 30),
        (Filter(flags={"passed": True}), 0),
        (Filter(ranges={"latency_ms": (100.0, 120.0)}), 4),
        (Filter(ranges={"latency_ms": (None, 20.0)}), 4),
        (Filter({"answer": "1"}, {"correct": True}, {"latency_ms": (150, None)}), 4),
        (Filter(text="yES"), 23),
        (Filter(text="50% OF_it"), 46),
        (Filter(text="5_%"), 0),
        (Filter({"task_id": "t03"}, {"correct": True}, text="yes"), 1),
    ],
)
def test_filters(store, wanted, count):
    assert len(walked(store, wanted)) == look.count(store, RUN, wanted) == count


def test_only_known_names_reach_the_database(store):
    for wanted in (
        Filter({"1=1 --": "x"}),
        Filter(flags={"x": True}),
        Filter(ranges={"x": (1, 2)}),
    ):
        with pytest.raises(KeyError):
            look.page(store, RUN, wanted)


def test_values_are_of_their_types(store):
    (row,) = look.page(store, RUN, Filter(), limit=1).rows
    assert (row["correct"], row["passed"], row["latency_ms"]) == (True, None, None)
    assert row["input"] == "Task t00: 50% of_it"


def test_what_changed_between_two_sides(store):
    other = "20260101-000000-0002"
    store.add_run(run(other))
    rows = [
        {"task_id": t, "subject": "m", "tier": "T0", "attempt": 1, "correct": i < 2}
        for i, t in enumerate(TASKS)
    ]
    look.keep_measured(store, other, rows)
    found = look.changes(store, (RUN, {}), (other, {}))
    assert [(c.task_id, c.first, c.second) for c in found][:2] == [("t03", 1, 0), ("t06", 1, 0)]
    assert [c.task_id for c in found if c.second > c.first] == ["t01"]
    assert look.changes(store, (RUN, {"tier": "T1"}), (other, {})) == []


def test_a_run_is_removed_with_all_that_is_kept_of_it(store):
    look.remark(store, RUN, None, who="a", note="n", tags=["t"])
    look.remark(store, RUN, ("t00", "m", "T0", 1), who="b", verdict="right")
    look.keep_digest(
        store, RUN, stamp="s", metric=None, value=None, low=None, high=None, records=1, errors=0,
        cost_usd=None, data="{}",
    )  # fmt: skip
    assert [r["tags"] for r in look.remarks(store, RUN)] == [["t"]]
    assert [r["who"] for r in look.remarks(store, RUN, ("t00", "m", "T0", 1))] == ["b"]
    store.remove(RUN)
    assert look.page(store, RUN, Filter()).rows == []
    assert look.page(store, RUN, Filter(flags={"correct": True})).rows == []
    assert look.remarks(store) == []
    assert look.digest(store, RUN) is None


def test_the_stamp_changes_with_what_is_written(store):
    one = look.stamp(store, run())
    assert look.stamp(store, run()) == one
    store.write([record("t99")], [call("t99")])
    two = look.stamp(store, run())
    assert two != one
    assert look.stamp(store, run(status="done")) != two
