"""Runs without a suite: a question, or a file of tasks, and the models to ask."""

import json

import pytest

from cli.command import pennyweight, refused
from pennyweight.api.run import resume, run
from pennyweight.suite.loader import load_suite
from pennyweight.suite.narrowing import Narrowing

ECHO = Narrowing.of(models=["python:echo:say"])
MODEL = "def say(text):\n    return f'You said {text} 4'\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENNYWEIGHT_STORE", str(tmp_path / "store.db"))
    (tmp_path / "echo.py").write_text(MODEL)
    return tmp_path


def test_a_question_gets_its_reply_and_nothing_else_on_standard_output():
    said = pennyweight("run", "-m", "python:echo:say", "What is {{ 2 }}?")
    assert (said.code, said.out) == (0, "You said What is {{ 2 }}? 4\n")
    assert "1 attempt of prompt (model python:echo:say)" in said.err
    answer = pennyweight("run", "-m", "python:echo:say", "Hi", "--format", "json")
    (one,) = json.loads(answer.out)["replies"]
    assert (one["input"], one["response"], one["error"]) == ("Hi", "You said Hi 4", None)


def test_questions_without_targets_show_their_replies(folder):
    (folder / "q.csv").write_text("question\nOne?\nTwo?\n")
    out = pennyweight("run", "q.csv", "-m", "python:echo:say").out
    assert out == (
        "1 · python:echo:say: One?\nYou said One? 4\n\n2 · python:echo:say: Two?\nYou said Two? 4\n"
    )


@pytest.mark.parametrize(
    ("name", "text", "rules"),
    [
        ("q.csv", "question,answer\na,4\nb,$5\n", ("last_number", "numeric")),
        ("q.jsonl", '{"input": "a", "target": "You"}\n', ("regex", "contains")),
        ("q.json", '[{"input": "a", "target": "You"}]', ("regex", "contains")),
        ("q.jsonl", '{"input": "a"}\n', ("marker", "exact")),
    ],
)
def test_the_rules_follow_from_the_targets(name, text, rules, folder):
    (folder / name).write_text(text)
    suite = load_suite(name, narrowing=ECHO)
    assert (suite.answer.kind, suite.match.kind) == rules
    again = load_suite(name, suite.text, narrowing=ECHO)
    assert (again.answer, again.match) == (suite.answer, suite.match), "the text says all of it"


def test_rules_can_be_set(folder):
    (folder / "q.csv").write_text("question,answer\na,4\n")
    chosen = Narrowing.of(models=["python:echo:say"], set={"answer": "last_line"})
    assert load_suite("q.csv", narrowing=chosen).answer.kind == "last_line"


def test_a_file_of_tasks_is_scored_and_resumed(folder):
    (folder / "q.csv").write_text("question,answer\na,4\nb,5\n")
    result = run("q.csv", models=["python:echo:say"])
    assert result.made == 2
    again = resume("q.csv", models=["python:echo:say"])
    assert again.id == result.id
    assert "50.0 %" in pennyweight("score", "latest").out


def test_what_is_missing_is_told(folder):
    (folder / "q.csv").write_text("question\na\n")
    assert "pennyweight run q.csv -m PROVIDER/NAME" in refused("run", "q.csv")
    assert "name it: -m PROVIDER/NAME" in refused("run", "What is this?")
    assert "sute.yaml: no such file" in refused("run", "sute.yaml", "-m", "python:echo:say")
