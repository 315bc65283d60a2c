"""Records set aside count nowhere, and come back as they were."""

from pennyweight.record import AttemptKey
from pennyweight.store import cache as kept
from pennyweight.store import queries as look
from pennyweight.store.set_aside import exchange, set_aside
from store.samples import RUN, record, rows, run

FIRST, SECOND = (AttemptKey(RUN, "m", "T0", task, 1) for task in "ab")


def test_records_are_set_aside_and_come_back_whole(store):
    store.add_run(run())
    made = [record("a", response="four", latency_ms=1.5, truncated=False), record("b")]
    store.write(made, [])
    before = rows(store)
    names = ("task_id", "subject", "tier", "attempt", "category")
    kept.save_measured(store, RUN, names, [("a", "m", "T0", 1, "x"), ("b", "m", "T0", 1, "y")])
    exchange(store, [FIRST], [])
    assert rows(store) == before[1:]
    assert set_aside(store, RUN) == {(FIRST, "f"): "ok"}
    assert look.distinct(store, RUN, "category") == ["y"]
    store.write([record("a", fingerprint="g", status="error")], [])
    exchange(store, [FIRST], [(FIRST, "f")])
    assert rows(store) == before
    assert set_aside(store, RUN) == {(FIRST, "g"): "error"}


def test_another_run_keeps_its_own(store):
    for name in (RUN, "other"):
        store.add_run(run(name))
        store.write([record("b", name)], [])
    exchange(store, [SECOND], [])
    assert (len(rows(store)), len(rows(store, "other"))) == (0, 1)
    store.remove(RUN)
    assert set_aside(store, RUN) == {}
