"""Experiments of ProjectScylla."""

import json
from pathlib import Path
from typing import Any

import pytest

import pennyweight
from pennyweight.errors import InputError
from sources.logs.fixtures import expected, fixture
from sources.logs.reading import records

TOKENS = {"input_tokens": 20, "output_tokens": 3, "cache_creation_tokens": 100,
          "cache_read_tokens": 500}  # fmt: skip


def run(experiment: Path, place: str, **more: Any) -> Path:
    folder = experiment / place
    result = {"run_number": 1, "exit_code": 0, "token_stats": TOKENS, "tokens_input": 520}
    result |= {"cost_usd": 0.5, "duration_seconds": 31.0, "judge_score": 0.75, "judge_passed": True}
    for number, valid in ((1, True), (2, False)):
        judge = folder / f"judge/judge_0{number}"
        judge.mkdir(parents=True)
        judgment = {"score": 0.75, "passed": True, "criteria_scores": {}, "is_valid": valid}
        (judge / "judgment.json").write_text(json.dumps(judgment))
    (folder / "agent").mkdir()
    agent = {"exit_code": 0, "token_stats": TOKENS, "api_calls": 2}
    (folder / "agent/result.json").write_text(json.dumps(agent))
    (folder / "agent/output.txt").write_text("Done.")
    (folder / "task_prompt.md").write_text("Do it.")
    (folder / "run_result.json").write_text(json.dumps(result | more))
    return folder


def test_a_run_is_one_record(tmp_path: Path) -> None:
    experiment = tmp_path / "2026-01-02T03-04-05-test-001"
    run(experiment, "T0/00/run_01")
    run(experiment, "T1/00/run_01", judge_score=0.25, judge_passed=False)
    run(experiment, "T1/01/run_01", judge_score=None, judge_passed=None, exit_code=3)
    first, second, third = records(tmp_path)
    assert (first["run"], first["task_id"]) == (experiment.name, "test-001")
    assert [row["tier"] for row in (first, second, third)] == ["T0", "T1", "T1"]
    assert [row["subtest"] for row in (first, second, third)] == ["00", "00", "01"]
    assert (first["prompt_tokens"], first["completion_tokens"]) == (620, 3)
    assert (first["passed"], first["impl_rate"], first["judge_scores"]) == (True, 0.75, [0.75])
    assert (first["input"], first["response"]) == ("Do it.", "Done.")
    assert (second["attempt"], third["attempt"], third["status"]) == (1, 2, "error")


def test_several_runs_of_one_judge_are_several_judgments(tmp_path: Path) -> None:
    folder = run(tmp_path / "x", "T0/00/run_01", judge_score=0.8)
    for number, score in ((1, 0.75), (2, 0.8), (3, 0.85)):
        path = folder / f"judge/judge_0{number}/judgment.json"
        path.parent.mkdir(exist_ok=True)
        summary = {"weighted_score": score, "passed": True}
        path.write_text(json.dumps({"judge_model": "opus", "requirements": {}, "summary": summary}))
    (record,) = records(tmp_path / "x")
    assert record["judge_scores"] == [0.75, 0.8, 0.85]


def test_a_link_out_of_the_experiment_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a key of this machine")
    folder = run(tmp_path / "x", "T0/00/run_01")
    (folder / "agent/output.txt").unlink()
    (folder / "agent/output.txt").symlink_to(tmp_path / "secret")
    (record,) = records(tmp_path / "x")
    assert (record["input"], record["response"]) == ("Do it.", None)


def test_a_part_of_a_run_is_no_record(tmp_path: Path) -> None:
    folder = run(tmp_path / "x", "T0/00/run_01")
    with pytest.raises(InputError, match=r"no run_result\.json"):
        records(folder / "agent/result.json")


def test_an_experiment_of_the_known_shape_gives_its_numbers() -> None:
    report, scores = expected("scylla"), pennyweight.score(fixture("scylla"), by="tier")
    for group in scores.groups:
        tier = report["by_tier"][str(group.group["tier"])]
        assert group.records == tier["runs"]
        assert group["pass_rate"].value == pytest.approx(tier["pass_rate"])
        assert group["impl_rate_mean"].value == pytest.approx(tier["mean_score"])
    whole = pennyweight.score(fixture("scylla"))
    assert whole["cost_usd_total"].value == pytest.approx(report["cost_usd"])
