"""Runs of HAL."""

import json
from pathlib import Path
from typing import Any

import pytest

from pennyweight.errors import InputError
from sources.logs.fixtures import expected, fixture
from sources.logs.reading import notes_of, records

CONFIG = {"agent_name": "Clerk", "benchmark_name": "shop", "run_id": "r1"}
CALL = {"weave_task_id": "a", "output": {"choices": [{"message": {"content": "Done."}}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 3}}}  # fmt: skip


def written(folder: Path, raw: Any, **more: Any) -> Path:
    run = {"config": CONFIG, "results": {"accuracy": 0.5}, "raw_eval_results": raw}
    path = folder / "x_UPLOAD.json"
    path.write_text(json.dumps({**run, "raw_logging_results": [CALL, CALL], **more}))
    return path


@pytest.mark.parametrize(
    "raw",
    [
        {"a": {"reward": 1.0, "cost": 0.5}, "b": {"reward": 0.0, "cost": 0.25}},
        {"a": {"score": 1}, "b": {"score": 0}},
        {"a": True, "b": False},
        {"resolved_ids": ["a"], "submitted_ids": ["a", "b"]},
    ],
)
def test_a_task_is_a_record_whatever_the_benchmark_calls_its_verdict(
    raw: Any, tmp_path: Path
) -> None:
    path = written(tmp_path, raw, total_cost=0.75)
    right, wrong = records(path)
    assert (right["subject"], right["suite"], right["task_id"]) == ("Clerk", "shop", "a")
    assert (right["passed"], wrong["passed"]) == (True, False)
    assert (right["prompt_tokens"], right["response"]) == (40, "Done.")
    assert notes_of(path) == []


def test_costs_that_do_not_add_up_are_left_out(tmp_path: Path) -> None:
    raw = {"a": {"reward": 1.0, "cost": 0.5}, "b": {"reward": 0.0, "cost": 0.25}}
    assert [row["cost_usd"] for row in records(written(tmp_path, raw, total_cost=0.75))] == [
        0.5,
        0.25,
    ]
    path = written(tmp_path, raw, total_cost=4)
    assert [row["cost_usd"] for row in records(path)] == [None, None]
    assert [row["task_cost_usd"] for row in records(path)] == [0.5, 0.25]
    assert (
        "HAL reports $4 for the run, and its tasks add up to $0.75: $3.25 less" in notes_of(path)[0]
    )
    priced = {"m": {"prompt_tokens_total_cost": 1.5, "completion_tokens_total_cost": 0.5}}
    calls = [{**CALL, "summary": {"weave": {"costs": priced}}}] * 2
    path = written(tmp_path, raw, total_cost=4, raw_logging_results=calls)
    assert [row["cost_usd"] for row in records(path)] == [4, None]
    assert notes_of(path) == []


def test_a_run_without_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no results by task"):
        records(written(tmp_path, {}))


def test_a_run_of_the_known_shape_gives_its_numbers() -> None:
    rows, report = records(fixture("hal")), expected("hal")
    assert len(rows) == report["tasks"]
    assert sum(row["passed"] for row in rows) / len(rows) == report["accuracy"]
