"""Columns that can be read, but look wrong, are named before their numbers are believed."""

import json
from pathlib import Path

import polars as pl
import pytest

import pennyweight
from cli.command import pennyweight as command
from pennyweight.sources.doubts import doubts

SECONDS = "look like seconds (the first is 1.5), but are read as milliseconds"
SEVERAL = "is a list of several values, but its target 'x' is one value"


def written(folder: Path, name: str, *rows: dict[str, object]) -> Path:
    path = folder / name
    if name.endswith(".csv"):
        pl.DataFrame(rows).write_csv(path)
    elif name.endswith(".json"):
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("name", ["r.jsonl", "r.json", "r.csv"])
def test_latencies_that_look_like_seconds(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name, {"id": "a", "latency": 1.5}, {"id": "b", "latency": 30})
    (note,) = doubts(path)
    assert SECONDS in note
    said = command("score", path).err
    assert SECONDS in said
    assert "without metrics of latency: --map duration_seconds=latency" in said
    assert "multiply them by 1,000" in said
    assert SECONDS not in command("score", path, "--map", "duration_seconds=latency").err
    assert SECONDS not in command("score", path, "--map", "latency_ms=latency").err


@pytest.mark.parametrize(
    "rows",
    [
        [{"id": "a", "latency": 840.5}, {"id": "b", "latency": 12}],
        [{"id": "a", "latency_ms": 1.5}],
        [{"id": "a", "latency": 0}],
        [{"id": "a", "latency": None}],
    ],
)
def test_latencies_that_need_no_note(tmp_path: Path, rows: list[dict[str, object]]) -> None:
    assert [*doubts(written(tmp_path, "r.jsonl", *rows))] == []


@pytest.mark.parametrize("answer", [["x", "y"], '["x", "y"]'])
def test_several_answers_to_one_target(tmp_path: Path, answer: object) -> None:
    path = written(tmp_path, "r.jsonl", {"id": "a", "prediction": answer, "target": "x"})
    assert SEVERAL in command("score", path).err
    both = written(tmp_path, "b.jsonl", {"id": "a", "answer": answer, "target": ["x", "y"]})
    assert [*doubts(both)] == []


@pytest.mark.parametrize("answer", [["Paris"], '["Paris"]', ' [ "paris" ] ', "Paris"])
def test_a_list_of_one_value_is_that_value(tmp_path: Path, answer: object) -> None:
    path = written(tmp_path, "r.jsonl", {"id": "a", "answer": answer, "target": "Paris"})
    assert pennyweight.score(path, metrics="accuracy").groups[0]["accuracy"].value == 1.0
    assert [*doubts(path)] == []


def test_lists_in_a_frame_and_lists_as_targets() -> None:
    frame = pl.DataFrame({"id": ["a", "b"], "answer": [[4], [4, 5]], "target": ["4", "4"]})
    assert pennyweight.score(frame, metrics="accuracy").groups[0]["accuracy"].value == 0.5
    rows = [
        {"id": "a", "answer": "[4]", "target": "[4]"},
        {"id": "b", "answer": "[A]", "target": "A"},
    ]
    assert pennyweight.score(rows, metrics="accuracy").groups[0]["accuracy"].value == 0.5


def test_the_settings_of_a_folder_are_no_record(tmp_path: Path) -> None:
    written(tmp_path, "records.jsonl", {"id": "a", "answer": "4", "target": "4"})
    (tmp_path / "config.json").write_text('{"model": "m", "temperature": 0}')
    result = command("score", tmp_path, "--format", "json")
    assert (result.code, result.json["groups"][0]["records"]) == (0, 1)


@pytest.mark.parametrize("name", ["r.jsonl", "r.json", "r.csv"])
def test_responses_without_an_answer_are_told(tmp_path: Path, name: str) -> None:
    rows = [{"id": "a", "expected": "Rome", "output": "Rome"}, {"expected": "5", "output": "5"}]
    path = written(tmp_path, name, *rows)
    told = "no response among the first 2 has a line 'FINAL_ANSWER: …'"
    assert told in command("score", path).err
    for other in (["--answer", "last_line"], ["--map", "answer=output"]):
        result = command("score", path, *other, "--format", "json")
        assert result.json["groups"][0]["metrics"]["accuracy"] == 1
        assert told not in result.err
    assert told not in command("score", path, "--metric", "attempt_error_rate").err
    policy = tmp_path / "policy.yaml"
    policy.write_text("gates: [{metric: accuracy, threshold: '>= 50%', on: value}]")
    for verb in (["gate", "--policy", policy], ["report", "-o", tmp_path / "r.html"]):
        assert told in command(verb[0], path, *verb[1:]).err
        assert told not in command(verb[0], path, *verb[1:], "--answer", "last_line").err


@pytest.mark.parametrize(
    "rows",
    [
        [{"target": "4", "output": "x"}, {"target": "4", "output": "FINAL_ANSWER: 4"}],
        [{"target": "4", "output": "x", "answer": "4"}],
        [{"target": "4", "output": "x", "passed": True}],
        [{"output": "x"}],
    ],
)
def test_responses_that_need_no_note(tmp_path: Path, rows: list[dict[str, object]]) -> None:
    assert [*doubts(written(tmp_path, "r.jsonl", *rows))] == []
