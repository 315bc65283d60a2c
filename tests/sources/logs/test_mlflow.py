"""Tables of MLflow."""

import json
from pathlib import Path
from typing import Any

import pytest

from pennyweight.errors import UsageError
from sources.logs.fixtures import expected, fixture
from sources.logs.reading import notes_of, records


def trace(number: int, *, state: str = "OK", **scores: Any) -> dict[str, Any]:
    request = {"model": "mini", "messages": [{"role": "user", "content": f"{number} + 1"}]}
    reply = {"choices": [{"message": {"content": str(number + 1)}}]}
    usage = json.dumps({"input_tokens": 9, "output_tokens": 2})
    exception = {"attributes": {"exception.message": "no route"}}
    return {
        "trace_id": f"tr-{number}",
        **{f"{name}/value": value for name, value in scores.items()},
        "expected_response/value": "4",
        "state": state,
        "execution_duration": 26,
        "request": request,
        "response": reply if state == "OK" else None,
        "trace_metadata": {"mlflow.trace.tokenUsage": usage},
        "trace": json.dumps({"data": {"spans": [{"events": [exception]}]}}),
    }


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_trace_is_a_record_and_a_broken_one_an_error(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        trace(3, length=1.0, graded="yes"),
        trace(4, length=1.0, graded="no"),
        trace(5, state="ERROR", length=0.0, graded="no"),
    )
    right, wrong, broken = records(path)
    assert (right["subject"], right["input"], right["response"]) == ("mini", "3 + 1", "4")
    assert (right["passed"], wrong["passed"], broken["passed"]) == (True, False, None)
    assert (right["prompt_tokens"], right["latency_ms"], right["target"]) == (9, 26, "4")
    assert (broken["status"], broken["error"]) == ("error", "no route")
    (note,) = notes_of(path)
    assert "mean of graded is 0.333333 over 3 traces, 1 of them errors" in note


def test_numbers_in_texts_stay_as_they_are_written(tmp_path: Path) -> None:
    (row,) = records(written(tmp_path, {**trace(3, graded="yes"), "request": {"q": "x"},
                                        "response": "07"}))  # fmt: skip
    assert (row["input"], row["response"]) == ('{"q":"x"}', "07")


def test_another_score_can_be_chosen(tmp_path: Path) -> None:
    path = written(tmp_path, trace(3, graded="yes", close=0.25))
    assert records(path, scorer="close")[0]["impl_rate"] == 0.25
    with pytest.raises(UsageError, match="The log has graded, close"):
        records(path, scorer="expected_response")


@pytest.mark.parametrize("name", ["sums.csv", "sums.jsonl"])
def test_a_real_table_gives_the_tool_s_means(name: str) -> None:
    path = fixture("mlflow") / name
    for metric in ("exact", "graded"):
        rows = records(path, scorer=metric)
        passed = sum(row["passed"] is True for row in rows)
        assert passed / len(rows) == expected("mlflow")[f"{metric}/mean"]  # it counts the error
        assert sum(row["status"] == "error" for row in rows) == 1
