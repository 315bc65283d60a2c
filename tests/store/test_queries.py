"""Pages of records: in both databases, with every filter, forwards and backwards."""

import pytest

from pennyweight.record import AttemptKey
from pennyweight.store import cache as kept
from pennyweight.store import queries as look
from pennyweight.store.queries import Filter, Sort
from pennyweight.store.store import Store
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
            "passed": i % 3 == 0,
            "latency_ms": 10.0 * i,
            "answer": str(i % 2),
        }
        for i, t in enumerate(TASKS)
        for a in (1, 2)
    ]
    names = tuple(measured[0])
    kept.save_measured(made, RUN, names, [tuple(m.values()) for m in measured])
    yield made
    made.close()


def keys(page):
    return [tuple(r[n] for n in look.ORDER) for r in page.rows]


def place(row, sort):
    key = tuple(row[n] for n in look.ORDER)
    return key if sort is None else (row[sort.name], *key)


def walked(store, wanted=Filter(), limit=7, sort=None):  # noqa: B008
    """Read all pages forwards, and again backwards, which must give the same."""
    there, after = [], None
    while True:
        page = look.page(store, RUN, wanted, after=after, limit=limit, sort=sort)
        assert page.before is (after is not None)
        there += keys(page)
        if not page.after:
            break
        after = place(page.rows[-1], sort)
    page = look.page(store, RUN, wanted, last=True, limit=limit, sort=sort)
    back = keys(page)
    while page.before:
        before = place(page.rows[0], sort)
        page = look.page(store, RUN, wanted, before=before, limit=limit, sort=sort)
        back = keys(page) + back
    assert back == there
    return there


def test_every_record_is_on_one_page(store):
    found = walked(store)
    assert sorted(found) == [(t, "m", "T0", a) for t in TASKS for a in (1, 2)]
    assert look.count(store, RUN, Filter()) == 46
    assert look.count(store, RUN, Filter(), most=10) == 11
    assert look.total(store, RUN) == 46


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (Filter({"task_id": "t03"}), 2),
        (Filter(flags={"correct": True}), 16),
        (Filter(flags={"correct": False}), 30),
        (Filter(flags={"passed": True}), 16),
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
    assert (row["correct"], row["passed"], row["latency_ms"]) == (True, True, None)
    assert row["input"] == "Task t00: 50% of_it"


def test_a_result_is_right_or_else_passed(store):
    rows = [("p1", "m", "T0", 1, True), ("p2", "m", "T0", 1, False), ("p3", "m", "T0", 1, None)]
    store.write([record(r[0]) for r in rows], [])
    names = (*look.ORDER, "passed", "category")
    kept.save_measured(store, RUN, names, [(*row, "agent") for row in rows])
    own = {"category": "agent"}
    assert [k[0] for k in walked(store, Filter(own, {"result": True}))] == ["p1"]
    assert [k[0] for k in walked(store, Filter(own, {"result": False}))] == ["p2"]
    assert len(walked(store, Filter(flags={"result": True}))) == 17
    ordered = look.page(store, RUN, Filter(own), sort=Sort("result", down=True)).rows
    assert [(r["task_id"], r["result"]) for r in ordered] == [
        ("p1", True), ("p2", False), ("p3", None),
    ]  # fmt: skip
    assert [k[0] for k in walked(store, Filter(own), limit=1, sort=Sort("result"))] == [
        "p2",
        "p1",
        "p3",
    ]
    assert look.value(store, AttemptKey(RUN, "m", "T0", "p2", 1), "result") is False


def test_attempts_at_a_task_are_chosen_before_they_are_cut(store):
    more = [record("t00", tier=f"T{i}", response="x" * 50) for i in range(1, 9)]
    store.write(more, [])
    (one,) = look.siblings(store, RUN, "t00", {"tier": "T8"}, limit=1, longest=10)
    assert (one["tier"], one["response"], one["length"]) == ("T8", "x" * 10, 50)
    assert len(look.siblings(store, RUN, "t00")) == 10
    with pytest.raises(KeyError):
        look.siblings(store, RUN, "t00", {"1=1 --": "x"})


COLUMNS = {
    "latency_ms": lambda i, a: None if i % 4 == 1 else 10.0 * (i % 5),
    "cot_tokens": lambda i, a: i % 3 if a == 1 else None,
    "correct": lambda i, a: (True, False, None)[i % 3],
    "category": lambda i, a: (None, "b", "a")[i % 3],
    "attempt": lambda i, a: a,
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("text", ["", "yes"])
def test_records_are_sorted_by_a_measure(store, name, down, text):
    value = COLUMNS[name]
    places = [(t, "m", "T0", a) for t in TASKS for a in (1, 2)]
    values = {p: value(TASKS.index(p[0]), p[3]) for p in places}
    if name != "attempt":
        kept.save_measured(
            store, RUN, (*look.ORDER, name), [(*place, values[place]) for place in places]
        )
    known = [p for p in places if not text or p[3] == 1]
    there = [p for p in known if values[p] is not None]
    ranks = sorted({values[p] for p in there}, reverse=down)
    wanted = sorted(there, key=lambda p: (ranks.index(values[p]), p))
    wanted += sorted(p for p in known if values[p] is None)
    assert walked(store, Filter(text=text), sort=Sort(name, down)) == wanted


def test_records_that_are_not_measured_are_not_in_a_sorted_list(store):
    store.write([record("new")], [call("new")])
    assert len(walked(store)) == 47
    assert len(walked(store, sort=Sort("latency_ms"))) == 46
    with pytest.raises(KeyError):
        look.page(store, RUN, Filter(), sort=Sort("1"))
