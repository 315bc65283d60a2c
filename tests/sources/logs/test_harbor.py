"""Jobs of Harbor, and trajectories."""

import json
from pathlib import Path
from typing import Any

import pytest

from pennyweight.render.transcript.trajectory import TrajectoryStep, trajectory
from pennyweight.stored_runs.imported import steps_of
from sources.logs.fixtures import expected, fixture
from sources.logs.reading import notes_of, records

CALL = {"tool_call_id": "c", "function_name": "bash", "arguments": {"command": "ls"}}
ASKED = {"source": "user", "message": "2 + 2?"}
TRAJECTORY = {
    "schema_version": "ATIF-v1.8",
    "agent": {"name": "adder", "model_name": "lab/mini"},
    "steps": [
        ASKED,
        {"source": "agent", "message": "", "reasoning_content": "I look.", "tool_calls": [CALL],
         "observation": {"results": [{"content": "a.txt"}]}},
        {"source": "agent", "message": "4"},
    ],
    "final_metrics": {"total_prompt_tokens": 14, "total_cost_usd": 0.5},
}  # fmt: skip


def trial(job: Path, name: str, at: int, reward: float | None = 1.0, error: str = "") -> None:
    folder = job / name
    (folder / "agent").mkdir(parents=True)
    (folder / "agent/trajectory.json").write_text(json.dumps(TRAJECTORY))
    used = {"n_input_tokens": 14, "n_cache_tokens": 4, "n_output_tokens": 2, "cost_usd": 0.5}
    result: dict[str, Any] = {
        "task_name": f"lab/{name.partition('__')[0]}",
        "trial_name": name,
        "source": "dsA",
        "agent_info": {"name": "adder", "model_info": {"name": "mini"}},
        "agent_result": used,
        "started_at": f"2026-01-02T03:04:0{at}Z",
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
    }
    if error:
        result["exception_info"] = {"exception_type": error, "exception_message": "why"}
    (folder / "result.json").write_text(json.dumps(result))


def job(folder: Path, mean: float) -> Path:
    made = folder / "job"
    trial(made, "a__2", 2)
    trial(made, "a__1", 1, 0.0)
    trial(made, "b__1", 3, 0.0, "AgentTimeoutError")
    trial(made, "c__1", 4, None, "RuntimeError")
    stats = {"evals": {"adder__mini__dsA": {"metrics": [{"mean": mean}]}}}
    whole = {"n_total_trials": 4, "stats": stats, "started_at": "2026-01-02T03:04:00Z"}
    (made / "result.json").write_text(json.dumps(whole))
    (made / "config.json").write_text('{"agents": []}')
    return made


def test_a_trial_is_a_record(tmp_path: Path) -> None:
    path = job(tmp_path, 0.25)
    wrong, right, late, broken = records(path)
    assert (wrong["task_id"], wrong["attempt"], wrong["passed"]) == ("lab/a", 1, False)
    assert (right["task_id"], right["attempt"], right["passed"]) == ("lab/a", 2, True)
    assert (late["status"], late["passed"]) == ("timeout", False)
    assert (broken["status"], broken["passed"], broken["error"]) == ("error", None, "why")
    assert (right["subject"], right["suite"], right["prompt_tokens"]) == ("adder/mini", "dsA", 14)
    assert (right["input"], right["response"], right["reasoning"]) == ("2 + 2?", "4", "I look.")
    roles = [one["role"] for one in json.loads(right["messages"])]
    assert roles == ["user", "assistant", "tool", "assistant"]
    (note,) = notes_of(path)
    assert "1 of 4 passed" in note
    assert "1 of 3 passed" in note


@pytest.mark.parametrize(
    ("error", "status", "passed"),
    [
        ("ContextLengthExceededError", "budget", None),
        ("OutputTokenExceeded", "budget", None),
        ("NonZeroAgentExitCodeError", "ok", False),
        ("VerifierTimeoutError", "error", None),
        ("EnvironmentStartError", "error", None),
    ],
)
def test_errors_are_failures_only_of_the_agent(
    error: str, status: str, passed: bool | None, tmp_path: Path
) -> None:
    trial(tmp_path / "job", "a__1", 1, None, error)
    (row,) = records(tmp_path)
    assert (row["status"], row["passed"]) == (status, passed)


def test_a_trajectory_alone_has_no_verdict(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(TRAJECTORY))
    (row,) = records(path)
    assert (row["subject"], row["response"], row["passed"]) == ("lab/mini", "4", None)
    assert (row["prompt_tokens"], row["cost_usd"]) == (14, 0.5)


STEP = {
    "source": "agent",
    "message": "",
    "reasoning_content": "I look.",
    "timestamp": "2026-01-02T03:04:05Z",
    "tool_calls": [CALL, CALL | {"tool_call_id": "d"}],
    "observation": {"results": [{"source_call_id": "d", "content": "b.txt"}]},
    "metrics": {"prompt_tokens": 10, "completion_tokens": 2, "cached_tokens": 4, "cost_usd": 0.25},
}
LAST = {
    "source": "agent",
    "message": "4",
    "timestamp": "2026-01-02T03:04:09Z",
    "metrics": {"prompt_tokens": 20, "completion_tokens": 3, "cost_usd": 0.5},
}
COPIED = LAST | {"is_copied_context": True, "timestamp": "2026-01-02T03:04:00Z"}
TIMED = {**TRAJECTORY, "steps": [ASKED, COPIED, STEP, LAST], "final_metrics": {}}


def steps(row: dict[str, Any]) -> list[TrajectoryStep]:
    """Return the steps of an imported record as the page shows them."""
    _, turns = steps_of(json.loads(row["messages"]))
    return trajectory({"work": {"turns": turns}})


def test_steps_have_their_thoughts_times_tokens_and_cost(tmp_path: Path) -> None:
    made = tmp_path / "job"
    trial(made, "a__1", 1)
    alone = tmp_path / "alone.json"
    for path in (made / "a__1/agent/trajectory.json", alone):
        path.write_text(json.dumps(TIMED))
    for path in (made, alone):
        (row,) = records(path)
        shown = steps(row)
        assert [(one.thought, one.facts) for one in shown] == [
            ("", "+0 s, $0.50, 23 tokens"),
            ("I look.", "+5 s, $0.25, 12 tokens"),
            ("", "+9 s, $0.50, 23 tokens"),
        ]
        assert [call.result for call in shown[1].calls] == [None, "b.txt"]


def test_without_totals_the_steps_of_a_trajectory_are_added_up(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(TIMED))
    (row,) = records(path)
    used = [row[n] for n in ("prompt_tokens", "cached_tokens", "completion_tokens", "cost_usd")]
    assert used == [30, 4, 5, 0.75]
    assert row["end_time"] - row["start_time"] == 9
    path.write_text(json.dumps({**TIMED, "final_metrics": {"total_cost_usd": 2.0}}))
    (row,) = records(path)
    assert (row["prompt_tokens"], row["cost_usd"]) == (30, 2.0)


def test_a_trial_that_does_not_tell_what_it_used_has_the_sums_of_its_steps(tmp_path: Path) -> None:
    made = tmp_path / "job"
    trial(made, "a__1", 1)
    (made / "a__1/agent/trajectory.json").write_text(json.dumps(TIMED))
    result = json.loads((made / "a__1/result.json").read_text()) | {"agent_result": None}
    (made / "a__1/result.json").write_text(json.dumps(result))
    (row,) = records(made)
    assert (row["prompt_tokens"], row["cost_usd"]) == (30, 0.75)


def test_a_real_job_gives_the_tool_s_numbers() -> None:
    report, rows = expected("harbor"), records(fixture("harbor"))
    (summary,) = report["stats"]["evals"].values()
    passed = sum(row["passed"] is True for row in rows)
    assert len(rows) == report["n_total_trials"]
    assert passed / len(rows) == pytest.approx(summary["metrics"][0]["mean"])
    assert sum(row["cost_usd"] or 0 for row in rows) == pytest.approx(report["stats"]["cost_usd"])
    assert sum(row["prompt_tokens"] or 0 for row in rows) == report["stats"]["n_input_tokens"]
    assert sum(row["status"] == "error" for row in rows) == 3
    assert len(notes_of(fixture("harbor"))) == 1  # errors counted as failures, nothing that differs
