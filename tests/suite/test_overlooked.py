"""Columns and keys of tasks that would be ignored although they matter."""

import json

import pytest

from cli.command import pennyweight, refused
from pennyweight.suite.loader import load_suite
from suite.problems import MINIMAL, mistakes

INLINE = "suite: s\ntasks:\n  - {{input: a, {more}}}\nsubjects: [local/m]\n{rest}"


@pytest.mark.parametrize(
    "more", ["image: cat.png", "images: [cat.png]", "image_url: 'http://x/y.png'", "audio: a.wav"]
)
def test_what_models_are_not_sent_is_a_mistake(more, write):
    name = more.partition(":")[0]
    (found,) = mistakes(write(INLINE.format(more=more, rest="")))
    what = f"tasks: task '1' has {name!r}, which is not sent: models get text only."
    assert found.startswith(f"suite.yaml, line 2: {what}")
    load_suite(write(INLINE.format(more=more, rest=f"prompt: '{{{{ {name} }}}}'\n")))


def test_an_empty_image_and_an_own_column_are_no_mistake(write):
    rows = '{"input": "a", "target": "b", "image": ""}\n{"input": "a", "image": null}'
    load_suite(write(MINIMAL.format(tasks="t.jsonl"), t_jsonl=rows))
    rows = '{"input": "a", "target": "b", "image": "x"}'
    assert len(mistakes(write(MINIMAL.format(tasks="t.jsonl"), t_jsonl=rows))) == 1
    tasks = "{from: t.jsonl, columns: {image: image}}"
    load_suite(write(MINIMAL.format(tasks=tasks), t_jsonl=rows))


def test_a_column_that_looks_like_the_target_is_a_mistake_if_there_is_none(write):
    rows = "input,expected_verdict\na,b\n"
    (found,) = mistakes(write(MINIMAL.format(tasks="t.csv"), t_csv=rows))
    assert found == (
        "suite.yaml, line 2: tasks: no task has a target, but 'expected_verdict' looks like one: "
        "'columns: {target: expected_verdict}' (--map target=expected_verdict). If it is a column "
        "of your own, list it: 'columns: {expected_verdict: expected_verdict}' "
        "(--map expected_verdict=expected_verdict)."
    )
    for column, task in (("target", "b"), ("expected_verdict", None)):
        tasks = f"{{from: t.csv, columns: {{{column}: expected_verdict}}}}"
        suite = load_suite(write(MINIMAL.format(tasks=tasks), t_csv=rows))
        assert suite.tasks[0].target == task
    judged = MINIMAL.format(tasks="t.csv") + "judge: local/j\n"
    load_suite(write(judged, t_csv=rows))


def test_a_table_with_such_a_column_is_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.csv").write_text("question,my_answers\na,Bern\n")
    said = refused("run", "q.csv", "-m", "openai/m", "--dry-run")
    assert "no task has a target, but 'my_answers' looks like one" in said
    mapped = ("--map", "target=my_answers")
    said = pennyweight("run", "q.csv", "-m", "openai/m", "--dry-run", *mapped)
    assert "compared as texts" in said.err


def notes(tmp_path, tasks, rest=""):
    path = tmp_path / "suite.yaml"
    path.write_text(f"suite: s\ntasks: {json.dumps(tasks)}\nsubjects: [ollama/m]\n{rest}\n")
    said = pennyweight("run", path, "--dry-run")
    assert said.code == 0, said.err
    return said.err


def test_choices_that_no_prompt_shows_are_named(tmp_path):
    tasks = [{"input": "a", "target": "B", "choices": ["Rome", "Paris"]}]
    says = "The tasks have choices, but the prompt of T0 does not show them."
    assert says in notes(tmp_path, tasks)
    assert says not in notes(tmp_path, tasks, "prompt: '{{ input }} {{ choices | lettered }}'")
    tasks[0]["input"] = "Rome or Paris?"
    assert says not in notes(tmp_path, tasks)


def test_a_second_input_is_named(tmp_path):
    tasks = [{"instruction": "Translate.", "input": "a", "target": "b"}]
    says = "also a column 'instruction' that no prompt shows"
    assert says in notes(tmp_path, tasks)
    assert says not in notes(tmp_path, tasks, "prompt: '{{ instruction }} {{ input }}'")


def test_a_column_subject_of_the_tasks_can_be_grouped_by(tmp_path, monkeypatch):
    monkeypatch.setenv("PENNYWEIGHT_STORE", str(tmp_path / "s.db"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text("def say(text):\n    return 'ANSWER: 4'\n")
    rows = [("law", 4), ("law", 4), ("art", 5)]
    lines = [json.dumps({"question": "q", "subject": s, "answer": t}) for s, t in rows]
    (tmp_path / "q.jsonl").write_text("\n".join(lines))
    said = pennyweight("run", "q.jsonl", "-m", "python:own:say", "--by", "task_subject")
    assert said.code == 0, said.err
    assert (
        "In records, subject is another column. Group by those of the tasks as task_subject."
        in (said.err)
    )
    scored = pennyweight("score", "latest", "--by", "task_subject", "--format", "json")
    assert scored.code == 0, scored.err
    found = {g["group"]["task_subject"]: g["metrics"]["accuracy"] for g in scored.json["groups"]}
    assert found == {"law": 1.0, "art": 0.0}
