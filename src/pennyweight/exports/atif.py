"""ATIF: the trajectory of each attempt, in the folders of a Harbor job, which hold the verdicts."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pennyweight.exports.export_format import ExportedRun, ExportFormat, RecordRow
from pennyweight.exports.values import (
    arguments,
    conversation,
    dumped,
    file_name,
    iso,
    mappings,
    side_of,
)

SCHEMA = "ATIF-v1.8"
_UNKNOWN = "unknown"
_SOURCES = {"assistant": "agent", "system": "system"}
_EXCEPTIONS = {"timeout": "AgentTimeoutError", "budget": "OutputTokenExceededError"}


@dataclass(slots=True)
class _HarborJob:
    """The trials of one subject in one tier."""

    run: ExportedRun
    side: tuple[str, str]
    folder: Path
    trials: int = 0

    @property
    def identity(self) -> str:
        """The id of the job. Tiers have ids of their own: they try the same tasks."""
        return file_name(self.run.id, *self.side)

    def add(self, row: RecordRow) -> None:
        """Write one trial."""
        name = f"{file_name(row['task_id'])}__{row['attempt']}"
        agent = self.folder / name / "agent"
        agent.mkdir(parents=True)
        (agent / "trajectory.json").write_bytes(dumped(self._trajectory(row, name)))
        (self.folder / name / "result.json").write_bytes(dumped(self._trial(row, name)))
        self.trials += 1

    def finish(self) -> None:
        """Write the job."""
        job = {
            "id": self.identity,
            "started_at": iso(self.run.created),
            "n_total_trials": self.trials,
            "stats": {"n_trials": self.trials, "evals": {}},
        }
        (self.folder / "result.json").write_bytes(dumped(job))

    def _trajectory(self, row: RecordRow, name: str) -> dict[str, Any]:
        agent = {"name": self.side[0], "version": _UNKNOWN}
        if row.get("model"):
            agent["model_name"] = row["model"]
        totals = {
            "total_prompt_tokens": row.get("prompt_tokens"),
            "total_completion_tokens": row.get("completion_tokens"),
            "total_cached_tokens": row.get("cached_tokens"),
            "total_cost_usd": row.get("cost_usd"),
        }
        found = steps_of(row)
        known = {key: value for key, value in totals.items() if value is not None}
        return {
            "schema_version": SCHEMA,
            "session_id": f"{self.identity}__{name}",
            "agent": agent,
            "steps": found,
            "final_metrics": {**known, "total_steps": len(found)},
            "extra": {"tier": self.side[1], "attempt": row["attempt"], "task": row["task_id"]},
        }

    def _trial(self, row: RecordRow, name: str) -> dict[str, Any]:
        used = {
            "n_input_tokens": row.get("prompt_tokens"),
            "n_cache_tokens": row.get("cached_tokens"),
            "n_output_tokens": row.get("completion_tokens"),
            "cost_usd": row.get("cost_usd"),
        }
        return {
            "task_name": row["task_id"],
            "trial_name": name,
            "trial_uri": "",
            "task_id": {"path": row["task_id"]},
            "task_checksum": "",
            "source": self.run.suite,
            "config": {
                "task": {"path": row["task_id"]},
                "trial_name": name,
                "job_id": _uuid(self.identity),
            },
            "agent_info": {"name": self.side[0], "version": _UNKNOWN},
            "agent_result": used,
            "verifier_result": _verdict(row),
            "exception_info": _exception(row),
            "started_at": iso(row.get("started")),
            "finished_at": iso(row.get("ended")),
        }


def write(folder: Path, run: ExportedRun, rows: Iterator[RecordRow]) -> None:
    """Write a job for each subject and tier."""
    jobs: dict[tuple[str, str], _HarborJob] = {}
    for row in rows:
        side = side_of(row)
        if side not in jobs:
            jobs[side] = _HarborJob(run, side, folder / file_name(*side))
        jobs[side].add(row)
    for job in jobs.values():
        job.finish()


def steps_of(row: RecordRow) -> list[dict[str, Any]]:
    """Return the steps: results of tools are observations of the step that called them."""
    made: list[dict[str, Any]] = []
    for one in conversation(row):
        if one.get("role") == "tool" and made and made[-1]["source"] == "agent":
            result = {"content": str(one.get("content") or "")}
            if one.get("call_id"):
                result["source_call_id"] = one["call_id"]
            made[-1].setdefault("observation", {"results": []})["results"].append(result)
        else:
            made.append(_step(len(made) + 1, one))
    said = [step for step in made if step["source"] == "agent"]
    if said and row.get("reasoning"):
        said[-1]["reasoning_content"] = row["reasoning"]
    return made


def _step(number: int, one: Mapping[str, Any]) -> dict[str, Any]:
    step: dict[str, Any] = {
        "step_id": number,
        "source": _SOURCES.get(str(one.get("role")), "user"),
        "message": str(one.get("content") or ""),
    }
    if step["source"] == "agent" and (calls := mappings(one.get("tool_calls"))):
        step["tool_calls"] = [
            {
                "tool_call_id": call["id"],
                "function_name": str(call.get("name") or ""),
                "arguments": arguments(call),
            }
            for call in calls
        ]
    return step


def _uuid(text: str) -> str:
    """Return the id of a job as Harbor writes it."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, text))


def _verdict(row: RecordRow) -> dict[str, Any] | None:
    if row.get("passed") is None or row["status"] == "error":
        return None
    rewards = {"reward": float(row["passed"])}
    if row.get("impl_rate") is not None:
        rewards["impl_rate"] = row["impl_rate"]
    return {"rewards": rewards}


def _exception(row: RecordRow) -> dict[str, Any] | None:
    if row["status"] == "ok":
        return None
    kind = _EXCEPTIONS.get(row["status"]) or row.get("error_kind") or "Error"
    return {
        "exception_type": kind,
        "exception_message": row.get("error") or row["status"],
        "exception_traceback": "",
        "occurred_at": iso(row.get("ended")),
    }


FORMAT = ExportFormat(
    "atif",
    "ATIF",
    write,
    lost="targets, answers, checks, judges' scores, latency, log-probabilities; which step used "
    "which tokens; an exceeded budget is an `OutputTokenExceededError`",
)
