"""Suites that are built in Python run as those of files do."""

from functools import partial
from pathlib import Path

import pandas
import polars as pl
import pytest

import pennyweight
from pennyweight import Suite
from pennyweight.errors import UsageError
from pennyweight.schema.problems import DocumentError
from pennyweight.suite.loader import load_suite

TASKS = [{"id": "a", "input": "2 + 2?", "target": 4}, {"id": "b", "input": "2 + 3?", "target": "5"}]


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def four(prompt: str) -> str:
    return f"{prompt}\n4"


async def awaited(prompt: str) -> dict[str, object]:
    return {"text": "5", "usage": {"prompt_tokens": 3, "completion_tokens": 1}}


class Bot:
    """Answers with what it was made with."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def __call__(self, request: pennyweight.Request) -> str:
        return self.answer if request.system == "Answer." else "?"


class AsyncBot(Bot):
    async def __call__(self, request: pennyweight.Request) -> str:  # type: ignore[override]
        return self.answer


def test_any_callable_is_a_subject() -> None:
    subjects = [
        four, awaited, Bot("4"), AsyncBot("5"), lambda prompt: "4", lambda prompt: "5",
        partial(lambda answer, prompt: answer, "4"), Bot("5").__call__,
        {"name": "shouts", "model": str.upper},
    ]  # fmt: skip
    made = pennyweight.run(Suite(TASKS, subjects, name="sums", system="Answer.", prompt="4"))
    assert (made.made, made.errors) == (18, {})
    right = pennyweight.score(made.id, by="subject", metrics="accuracy")
    names = ["four", "awaited", "Bot", "AsyncBot", "lambda", "lambda 2", "lambda 3", "__call__"]
    assert {str(group.group["subject"]) for group in right.groups} == {*names, "shouts"}
    assert {group["accuracy"].value for group in right.groups} == {0.5}


def test_a_second_function_of_the_same_name_is_another_subject() -> None:
    def made(answer: str) -> object:
        return lambda prompt: answer

    loaded = load_suite(Suite(TASKS, [made("4"), made("5")]))
    assert [subject.name for subject in loaded.subjects] == ["lambda", "lambda 2"]
    assert len({subject.model for subject in loaded.subjects}) == 2


@pytest.mark.parametrize("frame", [pl.DataFrame, pandas.DataFrame])
def test_tasks_come_from_a_frame(frame: type) -> None:
    rows = [{"id": "a", "input": "2 + 2?", "target": "4", "level": 1}, {"id": "b", "input": "x"}]
    table = pl.DataFrame(rows, infer_schema_length=None)
    tasks = load_suite(Suite(frame(table.to_dict(as_series=False)), [four])).tasks
    assert [(task.id, task.target) for task in tasks] == [("a", "4"), ("b", None)]


def test_a_mapping_is_read_as_its_file_would_be(tmp_path: Path) -> None:
    text = 'suite: s\ntasks: [{id: a, input: x, target: "4"}]\nsubjects: [local/smollm2-135m]\n'
    Path("s.yaml").write_text(text)
    tree = {"suite": "s", "tasks": [{"id": "a", "input": "x", "target": "4"}]}
    built = load_suite({**tree, "subjects": ["local/smollm2-135m"]})
    read = load_suite("s.yaml")
    assert (built.data_hash, built.answer, built.tiers) == (read.data_hash, read.answer, read.tiers)


def test_files_are_found_in_the_working_directory() -> None:
    Path("tasks.jsonl").write_text('{"input": "2 + 2?", "target": "4"}\n')
    assert pennyweight.run(Suite(Path("tasks.jsonl"), four)).made == 1


def test_the_whole_reply_is_the_answer_unless_a_marker_is_asked_for() -> None:
    assert load_suite(Suite(TASKS, four)).answer.kind == "last_line"
    asks = {"T0": {}, "T1": {"system": "End with FINAL_ANSWER: and the answer."}}
    assert load_suite(Suite(TASKS, four, tiers=asks)).answer.kind == "marker"
    assert load_suite(Suite(TASKS, four, answer="last_number")).answer.kind == "last_number"


def test_all_mistakes_are_told_at_once_by_the_name_of_the_suite() -> None:
    with pytest.raises(DocumentError) as wrong:
        load_suite(Suite([{"id": "a"}], [four], name="sums", temprature=0, runs=0))
    text = str(wrong.value)
    assert len(wrong.value.problems) == 3
    assert all(problem.startswith("Suite 'sums': ") for problem in wrong.value.problems)
    assert "Key 'temprature' is not known" in text


def test_a_value_that_no_file_could_hold_is_refused() -> None:
    with pytest.raises(UsageError, match=r"tasks\[1\]\.input: a object is no value of a suite"):
        load_suite(Suite([{"input": object()}], four))


def test_a_run_continues_with_the_suite_it_was_made_of() -> None:
    suite = Suite(TASKS, {"model": lambda prompt: "4", "name": "m"})
    made = pennyweight.run(suite)
    with pytest.raises(UsageError, match="comes from the store"):
        pennyweight.resume(made.id)
    more = Suite([*TASKS, "7 + 7?"], {"model": lambda prompt: "4", "name": "m"})
    assert pennyweight.resume(made.id, suite=more).made == 1


def test_functions_replace_the_subjects_for_one_run() -> None:
    made = pennyweight.run(Suite(TASKS), models=[four, str.upper], limit=1)
    subjects = made.scores(by="subject")
    assert subjects[f"python:{__name__}:four"]["accuracy"].value == 1
    assert subjects["python:builtins:str.upper"]["accuracy"].value == 0


def test_unusual_values_are_stored_and_read_again() -> None:
    tasks = [{"input": "a\ud800", "target": 2**70}, {"input": "b", "target": float("nan")}]
    loaded = load_suite(Suite(tasks, four))
    again = load_suite("suite.json", loaded.text, lambda _: None)
    assert [task.target for task in loaded.tasks] == [str(2**70), None]
    assert again.data_hash == loaded.data_hash
