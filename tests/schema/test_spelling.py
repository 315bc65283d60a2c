"""Misspelt keys of tasks, and values that are neither yes nor no."""

import json

import pytest

from pennyweight.schema.problems import DocumentError
from pennyweight.schema.spelling import near_miss
from pennyweight.suite.loader import load_suite
from pennyweight.suite.tasks import GUARDED


@pytest.fixture
def load(tmp_path):
    def made(*tasks, **more):
        suite = {"suite": "s", "subjects": ["local/a"], "tasks": list(tasks), **more}
        path = tmp_path / "s.json"
        path.write_text(json.dumps(suite))
        return load_suite(path)

    return made


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("mustnot", "must_not"),
        ("must-not", "must_not"),
        ("Must_Not", "must_not"),
        ("expected_behavors", "expected_behaviors"),
        ("expect_behaviors", "expected_behaviors"),
        ("catgory", "category"),
        ("requird", "required"),
        ("weigth", "weight"),
        ("check", "checks"),
        ("pass-score", "pass_score"),
        ("taget", "target"),
        ("evaluation_critera", "evaluation_criteria"),
        ("tool_result", "tool_results"),
    ],
)
def test_a_misspelt_key_is_a_mistake(load, key, meant):
    with pytest.raises(DocumentError, match=f"Did you mean '{meant}'"):
        load({"id": "a", "input": "q", key: ["x"]})


@pytest.mark.parametrize(
    "key", ["height", "level", "source", "content", "choices", "author", "must_read", "difficulty"]
)
def test_columns_of_ones_own_stay(load, key):
    suite = load({"id": "a", "input": "q", key: "x"})
    assert suite.tasks[0].extra == {key: "x"}


def test_every_field_is_found_by_its_own_name():
    assert all(near_miss(name, GUARDED) for name in GUARDED)


def test_a_legitimate_near_miss_can_be_kept(load, tmp_path):
    (tmp_path / "t.csv").write_text("id,input,categori\na,q,x\n")
    with pytest.raises(DocumentError, match=r"columns: \{categori: categori\}"):
        load(tasks="t.csv")
    suite = load(tasks={"from": "t.csv", "columns": {"categori": "categori"}})
    assert suite.tasks[0].extra == {"categori": "x"}
    below = load({"id": "a", "input": {"query": "q", "categori": "x"}})
    assert below.tasks[0].extra == {"categori": "x"}


@pytest.mark.parametrize("given", ["ja", "maybe", "", 2, "tru"])
def test_required_is_yes_or_no(load, given):
    with pytest.raises(DocumentError, match="required must be true or false"):
        load({"id": "a", "input": "q", "required": given})


@pytest.mark.parametrize(("given", "wanted"), [(True, True), ("Yes", True), ("0", False)])
def test_tables_may_say_it_in_words(load, given, wanted):
    task = {"id": "a", "input": "q", "required": given, "checks": [{"contains": "x"}]}
    assert load(task).tasks[0].scenario.required is wanted


@pytest.mark.parametrize(
    "check", [{"cost": 1}, {"file_exists": "a"}, {"judge_score": 0.5}, {"human": "Fine?"}], ids=str
)
def test_a_turn_depends_only_on_what_is_known_then(load, check):
    turns = [{"say": "Go on.", "if": check}]
    with pytest.raises(DocumentError, match="cannot be decided during the conversation"):
        load({"id": "a", "input": "q", "turns": turns})
