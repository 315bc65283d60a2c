"""Studies of AgentLab."""

import json
from pathlib import Path
from typing import Any

from sources.logs.fixtures import expected, fixture
from sources.logs.reading import records


def experiment(study: Path, name: str, **more: Any) -> None:
    folder = study / f"2026-01-02_03-04-05_clerk_on_{name}"
    folder.mkdir(parents=True)
    summary = {"n_steps": 3, "cum_reward": 1.0, "err_msg": None, "terminated": True}
    summary |= {"stats.cum_input_tokens": 100, "stats.cum_cost": 0.5, "truncated": False}
    (folder / "summary_info.json").write_text(json.dumps(summary | more))


def test_an_experiment_is_a_record(tmp_path: Path) -> None:
    experiment(tmp_path / "study", "shop.order_0")
    experiment(tmp_path / "study", "shop.order_1", cum_reward=0.0, truncated=True, terminated=False)
    experiment(tmp_path / "study", "shop.other_0", err_msg="boom")
    right, limit, broken = records(tmp_path)
    assert (right["run"], right["subject"], right["task_id"]) == ("study", "clerk", "shop.order")
    assert (right["attempt"], right["passed"], right["cost_usd"]) == (1, True, 0.5)
    assert (limit["attempt"], limit["status"], limit["passed"]) == (2, "budget", False)
    assert (broken["status"], broken["error"], broken["passed"]) == ("error", "boom", None)


def test_a_study_of_the_known_shape_gives_its_numbers() -> None:
    rows, report = records(fixture("agentlab")), expected("agentlab")
    assert len(rows) == report["experiments"]
    assert sum(row["passed"] or 0 for row in rows) / len(rows) == report["avg_reward"]
    assert sum(row["status"] == "error" for row in rows) == report["errors"]
