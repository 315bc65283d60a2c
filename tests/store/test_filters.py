"""Records are found by what people said and by the kind of error, and read whole."""

import pytest

from pennyweight.record import AttemptKey
from pennyweight.store import queries
from pennyweight.store.cache import save_measured
from pennyweight.store.filters import is_sqlite
from pennyweight.store.queries import Filter
from pennyweight.store.remarks import add_remark, record_verdicts
from pennyweight.store.whole_records import whole_records
from store.samples import RUN, record, run

TASKS = "abcd"


@pytest.fixture
def labelled(store):
    store.add_run(run(status="done"))
    texts = {"input": "why?", "response": "x" * 1_000}
    store.write([record(task, **texts) for task in TASKS], [])
    store.write([record("e", status="error", error="HTTP 429", error_kind="rate_limit")], [])
    names = ("task_id", "subject", "tier", "attempt", "status", "correct", "passed")
    rows = [(t, "m", "T0", 1, "ok", t in "ab", t in "ab") for t in TASKS]
    rows.append(("e", "m", "T0", 1, "error", None, None))
    save_measured(store, RUN, names, rows)

    def say(task, who, verdict, **more):
        add_remark(store, AttemptKey(RUN, "m", "T0", task, 1), who=who, verdict=verdict, **more)

    say("a", "Ada", "wrong", draw="random")
    say("a", "Ada", "right", note="on second thought", draw="disagreement")
    say("b", "Ada", "wrong")
    say("c", "Bob", "unsure")
    return store


@pytest.mark.parametrize(
    ("person", "found"),
    [("any", "abc"), ("right", "a"), ("wrong", "b"), ("unsure", "c"), ("none", "de"),
     ("differs", "b")],
)  # fmt: skip
def test_records_are_found_by_what_people_said(labelled, person, found):
    page = queries.page(labelled, RUN, Filter(person=person))
    assert page.columns["task_id"] == tuple(found) or [*page.columns["task_id"]] == [*found]
    assert queries.count(labelled, RUN, Filter(person=person)) == len(found)
    whole = [
        row
        for frame in whole_records(labelled, RUN, Filter(person=person))
        for row in frame["task_id"]
    ]
    assert whole == [*found]


def test_the_newest_verdict_is_shown_and_how_it_was_drawn_stays(labelled):
    rows = queries.page(labelled, RUN, Filter()).rows
    assert [row["person_verdict"] for row in rows] == ["right", "wrong", "unsure", None, None]
    said = {one.key.task_id: one for one in record_verdicts(labelled, RUN)}
    assert (said["a"].verdict, said["a"].note) == ("right", "on second thought")
    assert [said[task].draws for task in "abc"] == [{"random", "disagreement"}, set(), set()]


def test_errors_are_found_by_their_kind(labelled):
    for sort in (None, queries.Sort("latency_ms")):
        (row,) = queries.page(labelled, RUN, Filter({"error_kind": "rate_limit"}), sort=sort).rows
        assert (row["task_id"], row["error_kind"]) == ("e", "rate_limit")


def test_whole_records_come_in_parts(labelled):
    parts = [*whole_records(labelled, RUN, Filter(), batch=2)]
    assert [part.height for part in parts] == [2, 2, 1]
    assert len({tuple(part.schema.items()) for part in parts}) == 1
    assert parts[0]["response"].str.len_chars().to_list() == [1_000] * 2
    assert parts[0]["correct"].to_list() == [True, True]
    (nothing,) = whole_records(labelled, RUN, Filter({"task_id": "none"}))
    assert nothing.height == 0
    assert nothing.schema == parts[0].schema


def test_an_answer_with_a_null_character_is_found(labelled):
    held = "a\0b" if is_sqlite(labelled) else "a\ufffdb"
    names = ("task_id", "subject", "tier", "attempt", "status", "answer")
    save_measured(labelled, RUN, names, [("a", "m", "T0", 1, "ok", held)])
    page = queries.page(labelled, RUN, Filter(among={"answer": ["a\0b", "ab"]}))
    assert [*page.columns["task_id"]] == ["a"]
