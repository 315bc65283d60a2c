"""Runs as trajectories in the folders of Harbor jobs, as our own reader reads them."""

import json
from contextlib import closing

import pytest

from exports.runs import filled
from exports.tools import ask
from pennyweight.api.export import export
from sources.logs.reading import records
from store.samples import RUN


@pytest.fixture
def jobs(tmp_path):
    with closing(filled(tmp_path / "s.db")) as store:
        export(RUN, tmp_path / "jobs", format="atif", store=store)
    return tmp_path / "jobs"


def test_verdicts_attempts_tokens_and_cost_are_read_back(jobs):
    rows = records(jobs / "n_T0")
    assert [(row["task_id"], row["attempt"], row["status"], row["passed"]) for row in rows] == [
        ("a", 1, "ok", True), ("a", 2, "ok", False), ("b/ü", 1, "ok", True),
        ("c", 1, "timeout", False), ("d", 1, "error", None), ("e", 1, "ok", None),
    ]  # fmt: skip
    assert [row["cost_usd"] for row in rows] == [0.000123] * 4 + [None] * 2
    assert [row["cached_tokens"] for row in rows] == [100] * 4 + [None, 100]
    assert len({(row["run"], row["task_id"], row["attempt"]) for row in records(jobs)}) == 18


def test_results_of_tools_are_observations_of_the_step_that_called_them(jobs):
    (path,) = (jobs / "n_T0").glob("b_*/agent/trajectory.json")
    whole = json.loads(path.read_text())
    assert whole["schema_version"] == "ATIF-v1.8"
    steps = whole["steps"]
    assert [one["step_id"] for one in steps] == [1, 2, 3, 4]
    assert [one["source"] for one in steps] == ["system", "user", "agent", "agent"]
    (call,) = steps[2]["tool_calls"]
    assert (call["function_name"], call["arguments"]) == ("find", {"q": "Lima"})
    assert steps[2]["observation"]["results"] == [
        {"content": "Peru", "source_call_id": call["tool_call_id"]}
    ]
    assert whole["final_metrics"]["total_prompt_tokens"] == 120
    assert whole["extra"] == {"tier": "T0", "attempt": 1, "task": "b/ü"}


VALIDATE = """
import json, sys
from pathlib import Path
from harbor.models.trial.result import TrialResult
from harbor.utils.trajectory_validator import TrajectoryValidator
for path in sorted(Path(sys.argv[1]).rglob("trajectory.json")):
    validator = TrajectoryValidator()
    print(json.dumps([validator.validate(path), validator.get_errors()]))
for path in sorted(Path(sys.argv[1]).glob("*/*/result.json")):
    print(json.dumps([bool(TrialResult.model_validate_json(path.read_text())), []]))
"""


def test_harbor_itself_takes_the_trajectories_and_the_results_of_trials(jobs):
    told = [json.loads(line) for line in ask("harbor", VALIDATE, jobs).splitlines()]
    found = [*jobs.rglob("trajectory.json"), *jobs.glob("*/*/result.json")]
    assert len(told) == len(found) > 18
    assert [one for one in told if one != [True, []]] == []
