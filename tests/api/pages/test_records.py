"""Records of a stored run: counted, found next to each other, and shown in full."""

import json

import pytest

from api.pages.test_digest import SETTINGS
from pennyweight.api.pages import records
from pennyweight.api.pages.records import RubricMark
from pennyweight.errors import NotFoundError
from pennyweight.record import AttemptKey
from pennyweight.store.queries import Filter, Sort
from pennyweight.store.store import JUDGMENT_COLUMNS, Store
from store.samples import RUN, record, run

RUBRIC = {"pass_mark": 0.6, "categories": [{"items": [{"id": "short", "points": 2.0}]}]}
JUDGE = {"judges": ["j"], "more": [], "mark": "", "consensus": "median", "rubric": RUBRIC}
KEY = AttemptKey(RUN, "m", "T0", "b", 1)


@pytest.fixture
def store(tmp_path):
    made = Store(str(tmp_path / "pennyweight.db"))
    made.add_run(run(status="done", settings=SETTINGS))
    answers = {"a": 4, "b": 5, "c": 4}
    made.write(
        [record(t, target="4", response=f"It is {n}.", latency_ms=9.0) for t, n in answers.items()],
        [],
    )
    yield made
    made.close()


def test_a_record_has_measures_and_a_rule(store):
    found = records.detail(store, store.find(RUN), KEY)
    assert found.row["response"] == "It is 5."
    assert (found.measures["answer"], found.measures["correct"]) == ("5", False)
    assert found.rule.kind == "last_number"
    assert (found.checks, found.judgments, found.remarks) == ((), (), ())


def test_the_marks_of_a_judge_have_their_maximum(store, monkeypatch):
    monkeypatch.setattr(records, "MAX_JUDGED_ATTEMPTS", 0)  # no consensus: only the marks
    store.set_run(RUN, settings={**SETTINGS, "judge": JUDGE})
    values = {"run": RUN, "subject": "m", "tier": "T0", "task_id": "b", "attempt": 1, "at": 1.0}
    values |= {"judge": "j", "fingerprint": "f", "status": "ok", "score": 0.5}
    items = {"short": {"score": 1, "evidence": "brief"}, "odd": {"score": 2}, "broken": 3}
    values["items"] = json.dumps(items)
    store.write_judgments([tuple(map(values.get, JUDGMENT_COLUMNS))], [])
    (judgment,) = records.detail(store, store.find(RUN), KEY).judgments
    assert judgment.row["judge"] == "j"
    assert judgment.marks == (
        RubricMark("short", 1, "brief", 2.0),
        RubricMark("odd", 2, "", None),
    )
    assert records.rubric_points({}) == {}


def test_neighbours_follow_filter_and_order(store):
    around = records.neighbours(store, KEY, Filter(), None)
    assert (around.previous["task_id"], around.next["task_id"]) == ("a", "c")
    around = records.neighbours(store, KEY, Filter({"task_id": "c"}), None)
    assert (around.previous, around.next["task_id"]) == (None, "c")
    around = records.neighbours(store, KEY, Filter(), Sort("latency_ms"))
    assert around.next is None  # nothing is measured yet


def test_counts_stop_at_a_limit(store, monkeypatch):
    assert records.count(store, RUN, Filter()) == records.RecordCount(3, more=False)
    monkeypatch.setattr(records, "MAX_COUNT", 2)
    assert records.count(store, RUN, Filter()) == records.RecordCount(2, more=True)


def test_a_record_that_does_not_exist(store):
    with pytest.raises(NotFoundError):
        records.row(store, KEY._replace(task_id="none"))


def test_places_have_the_type_of_their_column():
    assert records.value_kind("result") is bool
    assert records.value_kind("latency_ms") == (int, float)
    assert records.value_kind("category") is str
