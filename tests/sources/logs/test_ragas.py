"""Tables of Ragas."""

import csv
import json
from pathlib import Path

import pytest

import pennyweight
from pennyweight.errors import UsageError
from sources.logs.fixtures import expected, fixture
from sources.logs.reading import notes_of, records

ROWS = [
    {"user_input": "2 + 2", "retrieved_contexts": ["a", "b"], "response": "4", "reference": "4",
     "exact": 1.0, "faithful": 0.5},
    {"user_input": "3 + 3", "retrieved_contexts": [], "response": "The sum is 6",
     "reference": "6", "exact": None, "faithful": 0.25},
]  # fmt: skip


def jsonl(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def table(path: Path) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(ROWS[0]))
        writer.writeheader()
        writer.writerows(ROWS)
    return path


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_sample_is_a_record(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{form}"
    first, second = records(jsonl(path, ROWS) if form == "jsonl" else table(path))
    assert (first["input"], first["answer"], first["target"]) == ("2 + 2", "4", "4")
    assert (first["passed"], first["impl_rate"], first["context"]) == (True, 1.0, "a\n\nb")
    assert (second["passed"], second["undecided"]) == (None, ["exact"])


def test_another_metric_can_be_chosen_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "t.jsonl", ROWS)
    assert [row["impl_rate"] for row in records(path, scorer="faithful")] == [0.5, 0.25]
    with pytest.raises(UsageError, match="Did you mean 'faithful'"):
        records(path, scorer="faithfull")


def test_other_forms_and_the_data_set_are_not_read_again(tmp_path: Path) -> None:
    jsonl(tmp_path / "t.jsonl", ROWS)
    table(tmp_path / "t.csv")
    bare = [{k: v for k, v in row.items() if k not in {"exact", "faithful"}} for row in ROWS]
    jsonl(tmp_path / "t.dataset.jsonl", bare)
    assert len(records(tmp_path)) == 2
    assert notes_of(tmp_path) == ["t: not read: t.csv, t.dataset.jsonl, the same rows as t.jsonl."]
    (note,) = notes_of(jsonl(tmp_path / "alone.jsonl", bare))
    assert "a data set without results" in note


@pytest.mark.parametrize("name", ["sums.csv", "sums.jsonl"])
def test_a_real_table_gives_the_tool_s_means(name: str) -> None:
    for metric, value in expected("ragas").items():
        scores = pennyweight.score(fixture("ragas") / name, scorer=metric)
        assert scores["impl_rate_mean"].value == pytest.approx(value)
