"""Results of τ-bench and τ²-bench."""

import json
from pathlib import Path
from typing import Any

import pytest

import pennyweight
from sources.logs.fixtures import expected, fixture
from sources.logs.reading import notes_of, records

CALL = {"function": {"name": "cancel", "arguments": '{"id": 1}'}}
CHAT = [
    {"role": "user", "content": "Cancel it."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "name": "cancel", "content": "done"},
    {"role": "assistant", "content": "It is cancelled."},
]


def first(task: int, trial: int, reward: float, **more: Any) -> dict[str, Any]:
    info = {"task": {"instruction": "Cancel."}}
    return {"task_id": task, "reward": reward, "info": info, "traj": CHAT, "trial": trial, **more}


def test_a_result_is_a_record_and_a_crash_an_error(tmp_path: Path) -> None:
    path = tmp_path / "tool-calling-mini-0.0_range_0-2_user-x_01.json"
    crash = first(1, 1, 0.0, traj=[], info={"error": "boom", "traceback": "…"})
    path.write_text(json.dumps([first(0, 0, 1.0), first(1, 0, 0.0), crash]))
    right, wrong, broken = records(path)
    assert (right["subject"], right["task_id"], right["attempt"]) == ("tool-calling-mini", "0", 1)
    assert (right["passed"], wrong["passed"], broken["passed"]) == (True, False, None)
    assert (right["input"], right["response"]) == ("Cancel.", "It is cancelled.")
    assert (broken["attempt"], broken["status"], broken["error"]) == (2, "error", "boom")
    assert len(notes_of(path)) == 1


def simulation(task: str, trial: int, ended: str = "user_stop", reward: float = 1.0) -> Any:
    chat = [{**one, "usage": {"prompt_tokens": 10, "completion_tokens": 3}} for one in CHAT]
    given = {"reward": reward, "db_check": {"db_match": reward == 1}}
    given["nl_assertions"] = [{"nl_assertion": "It is kind.", "met": True, "justification": "yes"}]
    return {"task_id": task, "trial": trial, "termination_reason": ended, "agent_cost": 0.5,
            "duration": 6.0, "reward_info": given, "messages": chat}  # fmt: skip


INFO = {"agent_info": {"llm": "mini"}, "environment_info": {"domain_name": "shop"}}
TASKS = [{"id": "t", "user_scenario": {"instructions": {"reason_for_call": "Cancel."}}}]
SIMULATIONS = [
    simulation("t", 0),
    simulation("t", 1, "max_steps", 0.0),
    simulation("t", 2, "infrastructure_error", 0.0),
]


def test_a_simulation_is_a_record(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"info": INFO, "tasks": TASKS, "simulations": SIMULATIONS}))
    right, limit, broken = records(path)
    assert (right["subject"], right["suite"], right["input"]) == ("mini", "shop", "Cancel.")
    assert (right["attempt"], right["passed"], right["cost_usd"]) == (1, True, 0.5)
    assert (right["prompt_tokens"], right["completion_tokens"]) == (20, 6)  # the agent's alone
    assert [one["name"] for one in json.loads(right["checks"])] == ["database", "It is kind."]
    assert (limit["status"], limit["passed"]) == ("budget", False)
    assert (broken["status"], broken["passed"]) == ("error", None)


def test_simulations_in_files_of_their_own_belong_to_the_results(tmp_path: Path) -> None:
    (tmp_path / "simulations").mkdir()
    head = {"info": INFO, "tasks": TASKS, "simulations": []}
    (tmp_path / "results.json").write_text(json.dumps(head))
    for number, one in enumerate(SIMULATIONS):
        (tmp_path / "simulations" / f"{number}.json").write_text(json.dumps(one))
    rows = records(tmp_path)
    assert [row["attempt"] for row in rows] == [1, 2, 3]
    assert {row["subject"] for row in rows} == {"mini"}


def test_real_results_give_the_tools_numbers() -> None:
    report = expected("tau_bench")
    rows = records(fixture("tau_bench"))
    assert len(rows) == report["results"]
    assert sum(row["passed"] or 0 for row in rows) / len(rows) == report["average_reward"]
    assert sum(row["status"] == "error" for row in rows) == report["errors"]
    report = expected("tau2_bench")
    scores = pennyweight.score(fixture("tau2_bench"))
    assert scores["impl_rate_mean"].value == pytest.approx(report["average_reward_evaluated"])
    assert scores["cost_usd_total"].value == pytest.approx(report["agent_cost"])
    assert scores["pass_rate"].records == report["evaluated"]
