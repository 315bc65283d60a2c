"""Reports of Pydantic Evals."""

import json
from pathlib import Path
from typing import Any

import pytest

import pennyweight
from sources.logs.fixtures import expected, fixture
from sources.logs.reading import notes_of, records


def valued(**values: Any) -> dict[str, Any]:
    return {name: {"name": name, "value": value, "reason": "why"} for name, value in values.items()}


CASE = {
    "name": "a [2/2]",
    "source_case_name": "a",
    "inputs": {"q": "2 + 2"},
    "metadata": {"category": "easy"},
    "expected_output": "4",
    "output": "4",
    "metrics": {"input_tokens": 9, "output_tokens": 2, "cost": 0.5},
    "scores": valued(length=3, tone=0.5),
    "labels": valued(mood="dry"),
    "assertions": valued(equal=True, short=False),
    "task_duration": 1.5,
    "evaluator_failures": [{"name": "Judge"}],
}
FAILURE = {"name": "b [1/2]", "inputs": "CRASH", "error_message": "boom"}


def written(folder: Path, **more: Any) -> Path:
    path = folder / "report.json"
    report = {"name": "solve", "cases": [CASE], "failures": [FAILURE], "analyses": [], **more}
    path.write_text(json.dumps(report))
    return path


def test_cases_and_failures_are_records(tmp_path: Path) -> None:
    case, failure = records(written(tmp_path))
    assert (case["subject"], case["task_id"], case["attempt"]) == ("solve", "a", 2)
    assert (case["passed"], case["impl_rate"], case["undecided"]) == (False, 0.5, ["Judge"])
    assert (case["prompt_tokens"], case["cost_usd"], case["duration_seconds"]) == (9, 0.5, 1.5)
    assert json.loads(case["scores"]) == {"length": 3, "tone": 0.5, "mood": "dry"}
    assert (failure["task_id"], failure["status"], failure["error"]) == ("b", "error", "boom")


def test_a_score_or_an_assertion_can_be_chosen(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert records(path, scorer="tone")[0]["impl_rate"] == 0.5
    assert records(path, scorer="equal")[0]["passed"] is True
    assert records(path, scorer="length")[0]["impl_rate"] is None  # not between 0 and 1


def test_a_report_without_assertions_is_read_by_its_first_score(tmp_path: Path) -> None:
    cases = [{**CASE, "assertions": {}, "scores": valued(tone=0.5, length=3)}]
    (row,) = records(written(tmp_path, cases=cases, failures=[]))
    assert (row["impl_rate"], row["passed"]) == (0.5, False)


def test_the_share_of_all_assertions_is_told_where_it_differs(tmp_path: Path) -> None:
    cases = [CASE, {**CASE, "name": "c", "source_case_name": "c", "assertions": valued(equal=True)}]
    (told,) = notes_of(written(tmp_path, cases=cases))
    assert "assertions that hold 0.666667; these records give 0.75" in told


def test_a_real_report_gives_the_tool_s_numbers() -> None:
    path = fixture("pydantic_evals") / "sums.report.json"
    report = expected("pydantic_evals")
    scores = pennyweight.score(path)
    averages = report["averages"]
    assert scores["impl_rate_mean"].value == pytest.approx(averages["assertions"])
    assert scores["prompt_tokens_mean"].value == averages["metrics"]["input_tokens"]
    assert scores.groups[0].errors == report["failures"]
