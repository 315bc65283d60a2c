"""Targets of multiple-choice tasks: an index, a letter and the text mean the same choice."""

from pathlib import Path

import polars as pl
import pytest

from cli.command import pennyweight, refused
from pennyweight.suite.choices import lettered
from pennyweight.suite.values import Task
from pennyweight.text.matching import MatchRule, matches

CITIES = ["Rome", "Paris", "Oslo"]


def tasks(*targets: str, choices: object = CITIES) -> list[Task]:
    return [
        Task(f"t{i}", "?", target, extra={"choices": choices}) for i, target in enumerate(targets)
    ]


def read(*targets: str, choices: object = CITIES) -> list[str | None]:
    made, wrong = lettered(tasks(*targets, choices=choices))
    assert wrong == []
    return [task.target for task in made]


@pytest.mark.parametrize("target", ["1", "B", "b", "(B)", "Paris", " paris ", "B. Paris"])
def test_index_letter_and_text_mean_the_same_choice(target: str) -> None:
    assert read(target) == ["B. Paris"]


def test_choices_may_be_json_text_or_a_mapping() -> None:
    assert read("2", choices='["Rome", "Paris", "Oslo"]') == ["C. Oslo"]
    assert read("A", choices={"A": "Rome", "B": "Paris"}) == ["A. Rome"]


def test_numbers_are_read_in_the_way_that_fits_all_tasks() -> None:
    assert read("0", "1", choices=["1", "2", "0.5"]) == ["A. 1", "B. 2"]  # 0 is no choice's text
    assert read("1", "7", choices=["1", "2", "7"]) == ["A. 1", "C. 7"]  # there is no index 7
    _, wrong = lettered(tasks("1", choices=["1", "2"]))
    assert wrong == [
        (
            "t0",
            "the target '1' of task 't0' may mean 'A. 1' or 'B. 2'. Write the letter and the "
            "text, as here.",
        )
    ]


def test_tasks_without_choices_or_target_stay_as_they_are() -> None:
    given = [Task("a", "?", "1"), Task("b", "?", extra={"choices": CITIES})]
    assert lettered(given) == (tuple(given), [])


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("B", True),
        ("(b)", True),
        ("B. Paris", True),
        ("paris", True),
        ("C", False),
        ("Oslo", False),
    ],
)
def test_an_answer_is_a_letter_or_the_text(answer: str, *, right: bool) -> None:
    frame = pl.DataFrame({"a": [answer], "t": ["B. Paris"]})
    found = frame.select(matches(pl.col("a"), pl.col("t"), MatchRule("choice"))).item()
    assert found is right


SUITE = """suite: cities
tasks:
  - {{id: a, input: "Capital of France?", choices: [Rome, Paris, Oslo], target: {target}}}
subjects: ["python:answers:reply"]
answer: last_line
match: choice
"""


def test_an_index_is_right_in_a_run_and_what_fits_nothing_is_told_before_the_first_call(
    tmp_path: Path,
) -> None:
    path, store = tmp_path / "suite.yaml", tmp_path / "s.db"
    (tmp_path / "answers.py").write_text("def reply(prompt):\n    return 'B'\n")
    path.write_text(SUITE.format(target=1))
    result = pennyweight("run", path, "--store", store, "--format", "json")
    assert result.code == 0, result.err
    assert result.json["groups"][0]["metrics"]["accuracy"] == 1.0
    path.write_text(SUITE.format(target=3))
    said = refused("run", path, "--store", store)
    assert "the target '3' of task 'a' is none of its 3 choices. Write an index from 0 to 2" in said
