"""Test runs of DeepEval."""

import json
from pathlib import Path
from typing import Any

import pennyweight
from sources.logs.fixtures import expected, fixture
from sources.logs.reading import notes_of, records

METRICS = [
    {"name": "Exact Match", "success": True, "score": 1.0, "reason": "equal"},
    {"name": "Tone", "success": False, "score": 0.25, "evaluationModel": "judge-1"},
]


def case(name: str, **more: Any) -> dict[str, Any]:
    made = {"name": name, "input": "2 + 2", "actualOutput": "4", "expectedOutput": "4"}
    made |= {"tokenCost": 0.5, "evaluationCost": 0.25, "completionTime": 1.5, "success": False}
    tools = [{"name": "sum", "inputParameters": {"a": 2}}]
    return {**made, "metricsData": METRICS, "toolsCalled": tools, "tags": ["easy"], **more}


BROKEN = {"name": "Tone", "success": False, "score": None, "error": "no judge"}
CASES = [case("a"), case("b", success=True), case("c", metricsData=[BROKEN])]


def written(folder: Path, name: str = "test_run_1.json", *, inside: bool = False) -> Path:
    run = {"testCases": CASES, "testPassed": 1, "testFailed": 2}
    path = folder / name
    path.write_text(json.dumps({"testRunData": run} if inside else run))
    return path


def test_a_case_is_a_record(tmp_path: Path) -> None:
    path = written(tmp_path)
    first, second, third = records(path)
    assert (first["task_id"], first["input"], first["response"]) == ("a", "2 + 2", "4")
    assert (first["passed"], second["passed"], third["passed"]) == (False, True, False)
    assert (first["cost_usd"], first["judge_cost_usd"], first["latency_ms"]) == (0.5, 0.25, 1500)
    assert (first["judge_scores"], third["undecided"]) == ([0.25], ["Tone"])
    assert (first["category"], json.loads(first["scores"])["Tone"]) == ("easy", 0.25)
    assert [one["name"] for one in json.loads(first["checks"])] == ["Exact Match", "Tone"]
    assert notes_of(path) == []


def test_a_conversational_case_is_a_record_with_its_turns(tmp_path: Path) -> None:
    called = [{"name": "sum", "inputParameters": {"a": 2}, "output": "4"}]
    turns = [
        {"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "content": "4", "toolsCalled": called},
    ]
    talk = {"name": "talk", "success": True, "turns": turns, "metricsData": METRICS[:1]}
    run = {"testCases": [], "conversationalTestCases": [talk], "testPassed": 1, "testFailed": 0}
    path = tmp_path / "test_run_1.json"
    path.write_text(json.dumps(run))
    (row,) = records(path)
    assert (row["input"], row["response"], row["passed"]) == ("2 + 2?", "4", True)
    assert json.loads(row["tool_calls"]) == [{"name": "sum", "arguments": {"a": 2}, "result": "4"}]
    assert [one["role"] for one in json.loads(row["messages"])] == ["user", "assistant"]
    assert notes_of(path) == []


def test_one_metric_can_be_chosen(tmp_path: Path) -> None:
    rows = records(written(tmp_path), scorer="Exact Match")
    assert [row["passed"] for row in rows] == [True, True, None]


def test_the_latest_run_is_not_read_twice(tmp_path: Path) -> None:
    written(tmp_path)
    written(tmp_path, "latest_test_run.json", inside=True)
    assert len(records(tmp_path)) == 3
    alone = tmp_path / "alone"
    alone.mkdir()
    assert len(records(written(alone, "latest_test_run.json", inside=True))) == 3


def test_a_real_run_gives_the_tool_s_numbers() -> None:
    folder, report = fixture("deepeval"), expected("deepeval")
    scores = pennyweight.score(folder)
    cases = report["testPassed"] + report["testFailed"]
    assert scores["pass_rate"].records == cases
    assert scores["pass_rate"].value == report["testPassed"] / cases
    for metric in report["metricsScores"]:
        rows = records(folder, scorer=metric["metric"])
        assert sorted(row["impl_rate"] for row in rows) == sorted(metric["scores"])
        assert sum(row["passed"] for row in rows) == metric["passes"]
    assert notes_of(folder) == []
