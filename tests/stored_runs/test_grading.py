"""How a run grades, as a digest: it changes with rules, scorers, rubric and judges alone."""

import json

import pytest

import pennyweight
from pennyweight.engine.resume import settings_of
from pennyweight.store.store import Store
from pennyweight.stored_runs.grading import grading_digest
from pennyweight.stored_runs.source import RunSource
from pennyweight.suite.loader import load_suite
from pennyweight.text.exam import changed_parts

RUBRIC = {"categories": {"right": {"items": ["It is right."]}}}
SUITE = {
    "suite": "s",
    "tasks": [{"id": "a", "input": "2 + 2?", "target": "4"}],
    "subjects": ["python:agents:agent"],
    "judge": {"models": [{"model": "python:agents:judge"}], "rubric": RUBRIC},
    "scorers": ["scorers.py"],
}
AGENTS = """
def agent(text):
    return "FINAL_ANSWER: 4"


def judge(text):
    return '{"items": {"right": {"evidence": "", "score": 1}}, "confidence": 1}'
"""
SCORER = "from pennyweight import scorer\n\n@scorer\ndef brief(response):\n    return 1\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agents.py").write_text(AGENTS)
    (tmp_path / "scorers.py").write_text(SCORER)
    return tmp_path


def grading(**changes):
    return grading_digest(settings_of(load_suite({**SUITE, **changes})))


JUDGE = SUITE["judge"]["models"][0]


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        ("answer", {"answer": "last_number"}),
        ("match", {"match": {"numeric": 0.1}}),
        ("confidence", {"confidence": "stated"}),
        ("scorers", {"scorers": []}),
        ("rubric", {"judge": {**SUITE["judge"], "pass_mark": 0.9}}),
        (
            "rubric",
            {
                "judge": {
                    **SUITE["judge"],
                    "rubric": {"categories": {"right": {"items": ["Is it?"]}}},
                }
            },
        ),
        ("judges", {"judge": {**SUITE["judge"], "consensus": "confidence"}}),
        ("judges", {"judge": {**SUITE["judge"], "models": [{**JUDGE, "temperature": 0.5}]}}),
        (
            "judges",
            {
                "judge": {
                    **SUITE["judge"],
                    "models": [{"model": "openai/x", "name": JUDGE["model"]}],
                }
            },
        ),
    ],
)
def test_each_change_of_the_grading_is_in_its_part(part, changes):
    assert changed_parts(grading(), grading(**changes)) == (part,)


@pytest.mark.parametrize(
    "changes",
    [
        {"judge": {**SUITE["judge"], "models": [{**JUDGE, "name": "someone"}]}},
        {"judge": {**SUITE["judge"], "rubric": {**RUBRIC, "rubric": "renamed"}}},
        {"prompt": "Think. {{ input }}", "settings": {"temperature": 1}},
        {"tasks": [{"id": "b", "input": "3 + 3?", "target": "6"}]},
    ],
)
def test_names_prompts_and_tasks_are_no_part_of_the_grading(changes):
    assert grading() == grading(**changes)


def test_a_changed_scorer_changes_the_grading(folder):
    before = grading()
    (folder / "scorers.py").write_text(SCORER.replace("return 1", "return 0"))
    assert changed_parts(before, grading()) == ("scorers",)


def test_a_run_of_an_earlier_pennyweight_is_known_by_what_it_stored():
    settings = dict(settings_of(load_suite(SUITE)))
    del settings["grading"]
    judge = {k: v for k, v in settings["judge"].items() if k not in {"models", "more_models"}}
    old = grading_digest({**settings, "judge": judge})
    assert changed_parts(old, grading()) == ()
    assert changed_parts(old, grading(answer="last_number")) == ("answer",)
    other = grading_digest({**settings, "judge": {**judge, "judges": ["someone else"]}})
    assert changed_parts(old, other) == ("judge_names",)
    assert grading_digest({}) is None


def test_the_records_of_a_run_have_both_digests_and_so_has_its_export(folder):
    run = pennyweight.run(SUITE, store=str(folder / "s.db"))
    store = Store(str(folder / "s.db"))
    (frame,) = RunSource(store.find(run.id), store).frames()
    row = frame.row(0, named=True)
    assert row["grading_digest"] == grading()
    assert row["task_digest"].startswith("1 input=")
    pennyweight.export(run.id, folder / "r.jsonl", store=str(folder / "s.db"))
    exported = json.loads((folder / "r.jsonl").read_text())
    both = ("task_digest", "grading_digest")
    assert [exported[name] for name in both] == [row[name] for name in both]
    store.close()
