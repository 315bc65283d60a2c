"""What a suite most likely did not mean is told once, and only where it is so."""

from pathlib import Path

import polars as pl
import pytest

from pennyweight.engine.advice import advice, shared
from pennyweight.suite.loader import load_suite
from pennyweight.suite.values import LoadedSuite

UNDECIDED = "nothing can be right or wrong"
ASKS = "prompt: '{{ input }} FINAL_ANSWER:'\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "told.py").write_text("def answer(text):\n    return text\n")
    return tmp_path


def suite(folder: Path, tasks: str, more: str = ASKS, subjects: str = "[local/m]") -> LoadedSuite:
    path = folder / "s.yaml"
    path.write_text(f"suite: s\ntasks: {tasks}\nsubjects: {subjects}\n{more}")
    return load_suite(path)


def test_targets_that_are_lists_are_told_where_they_are_compared_as_one_text(folder: Path) -> None:
    tasks = "[{input: q, target: [7, 8]}, {input: q, target: 7}, {input: q, target: '[a'}, "
    tasks += "{input: q, target: [x]}]"
    for match in ("exact", "contains", "choice"):
        (note,) = advice(suite(folder, tasks, f"{ASKS}match: {match}\n"))
        assert note == (
            f"match: {match}, but the target of task '1' ('[7, 8]') and 1 more is a list: it is "
            "compared as text. 'match: any_of' accepts an answer that is one of its items."
        )
    assert not list(advice(suite(folder, tasks, f"{ASKS}match: any_of\n")))
    assert not list(advice(suite(folder, "[{input: q, target: '[0]'}]", f"{ASKS}match: regex\n")))


def test_a_suite_in_which_nothing_can_be_right_is_told_once(folder: Path) -> None:
    (note,) = advice(suite(folder, "[a, b]", "tiers: {T0: {}, T1: {system: x}}\n"))
    assert UNDECIDED in note


@pytest.mark.parametrize(
    ("tasks", "more", "subjects"),
    [
        ("[a, {input: b, target: x}]", ASKS, "[local/m]"),
        ("[a, {input: b, checks: [{contains: x}]}]", "", "[local/m]"),
        ("[a, {input: b, expected_behaviors: [{contains: x}]}]", "", "[local/m]"),
        ("[a, {input: b, must_not: [{contains: x}]}]", "", "[local/m]"),
        ("[a]", "judge: {model: local/j}\n", "[local/m]"),
        ("[a]", "", "[local/m, 'python:told:answer']"),
        ("[a]", "verify: [['true']]\n", "[{command: [cat], sandbox: none}]"),
        ("[{input: a, verify: [['true']]}]", "", "[{command: [cat], sandbox: none}]"),
    ],
)
def test_what_can_be_right_or_wrong_is_not_told(
    folder: Path, tasks: str, more: str, subjects: str
) -> None:
    assert not [x for x in advice(suite(folder, tasks, more, subjects)) if UNDECIDED in x]


def test_the_marker_is_not_told_where_a_command_decides(folder: Path) -> None:
    agent, check = "[{command: [cat], sandbox: none}]", "verify: [['true']]"
    plain, own = "[{input: a, target: x}]", "[{input: a, target: x, " + check + "}]"

    def told(tasks: str, more: str, subjects: str = agent) -> bool:
        return any("FINAL_ANSWER" in x for x in advice(suite(folder, tasks, more, subjects)))

    assert told(plain, "")
    assert not told(plain, f"{check}\n")
    assert not told(own, "")
    assert told(own, "match: exact\n")


def test_only_what_answered_more_than_once_is_said_to_have_shared_the_machine(folder: Path) -> None:
    two = suite(folder, "[a, b]", subjects="[local/good, local/broken]")
    frames = [
        pl.DataFrame({"subject": [f"local/{name}"] * 2, "status": [status, "ok"]})
        for name, status in (("good", "ok"), ("broken", "error"))
    ]
    note = shared(two, frames) or ""
    assert note.startswith("local/good answered several calls at once")
    assert shared(two, frames[1:]) is None
    assert shared(two, []) is None
    alone = suite(folder, "[a, b]", "limits: {concurrency: 1}\n")
    assert shared(alone, frames) is None


def test_a_column_that_the_input_is_made_of_is_shown(folder: Path) -> None:
    (folder / "t.jsonl").write_text('{"question": "Is it so?", "target": "a"}\n')
    made = "\n  from: t.jsonl\n  make: {input: 'Question: {{ question }}'}"
    assert list(advice(suite(folder, made))) == []
    other = "\n  from: t.jsonl\n  make: {input: 'Something else.'}"
    assert "'question' that no prompt shows" in " ".join(advice(suite(folder, other)))
