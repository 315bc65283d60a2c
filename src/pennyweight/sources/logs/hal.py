"""HAL: an uploaded run of the Holistic Agent Leaderboard."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pennyweight.errors import InputError
from pennyweight.sources.json_array import JsonArray, loads
from pennyweight.sources.log_format import Log, LogFormat, Row
from pennyweight.sources.log_tally import Expectation
from pennyweight.sources.log_values import count, items, mapping, number, text_of, verdict
from pennyweight.sources.peek import Peek

_SCORES = ("reward", "score", "resolved", "success", "correct", "passed", "accuracy")
"""The names of a task's verdict, by benchmark."""


def recognise(peek: Peek) -> bool:
    """Whether a file is an uploaded run."""
    return peek.has("raw_eval_results", "config") or (
        peek.has("config", "results") and peek.inside("config", "benchmark_name") is not None
    )


def read(log: Log) -> Iterator[Row]:
    """Yield one record a task."""
    for path in log.files:
        yield from _run(log, path)


def _run(log: Log, path: Path) -> Iterator[Row]:
    calls = JsonArray(path, "raw_logging_results")
    used: dict[str, Row] = {}
    for text in calls:
        _add(used, mapping(loads(text)))
    whole = calls.rest
    config, results = mapping(whole.get("config")), mapping(whole.get("results"))
    right = {str(one) for one in items(results.get("successful_tasks"))}
    wrong = {str(one) for one in items(results.get("failed_tasks"))}
    found = _tasks(whole.get("raw_eval_results"))
    if not (found or right or wrong):
        raise InputError([f"{path}: the run has no results by task."])
    costs = _costs(found, number(whole.get("total_cost")), log)
    prompts, times = mapping(whole.get("task_prompts")), mapping(results.get("latencies"))
    arguments = mapping(config.get("agent_args"))
    for task in dict.fromkeys([*found, *sorted(right | wrong)]):
        value = found.get(task)
        row: Row = {
            "run": config.get("run_id") or path.stem,
            "subject": config.get("agent_name") or arguments.get("model_name"),
            "suite": config.get("benchmark_name"),
            "task_id": task,
            "status": "ok",
            "input": prompts.get(task),
            "cost_usd": costs.get(task),
            "duration_seconds": number(mapping(times.get(task)).get("total_time")),
            **used.get(task, {}),
        }
        decided = True if task in right else False if task in wrong else None
        if isinstance(value, str):
            row |= {"status": "error", "error": value}
        else:
            row |= verdict(_score(value), decided)
        yield row
    if (accuracy := number(results.get("accuracy"))) is not None:
        log.expect(Expectation("accuracy", accuracy, lambda tally: _share(tally.of())))


def _costs(found: Mapping[str, Any], total: float | None, log: Log) -> dict[str, float | None]:
    """Return the cost of each task, if they add up to what the run cost."""
    costs = {task: number(mapping(value).get("cost")) for task, value in found.items()}
    known = [cost for cost in costs.values() if cost is not None]
    if known and total is not None and not math.isclose(sum(known), total, rel_tol=0.01):
        log.note(
            f"costs are left out: HAL reports ${total:.6g} for the run, and its tasks add up to "
            f"${sum(known):.6g}."
        )
        return {}
    return costs


def _share(counts: Any) -> float | None:
    decided = counts.passed + counts.failed + counts.errors
    return counts.passed / decided if decided else None


def _tasks(raw: Any) -> dict[str, Any]:
    """Return what each task got; some benchmarks list the resolved ones."""
    if "resolved_ids" in mapping(raw):
        resolved = {str(one) for one in items(raw["resolved_ids"])}
        listed = items(raw.get("submitted_ids")) or items(raw.get("completed_ids"))
        return {str(one): str(one) in resolved for one in listed or sorted(resolved)}
    return {str(task): value for task, value in mapping(raw).items()}


def _score(value: Any) -> Any:
    """Return the verdict of one task: a number, or the first that is called like one."""
    if isinstance(value, dict):
        return next((value[name] for name in _SCORES if value.get(name) is not None), None)
    return value


def _add(used: dict[str, Row], call: Mapping[str, Any]) -> None:
    """Add the tokens of one call of the model to its task."""
    task = call.get("weave_task_id") or mapping(call.get("attributes")).get("weave_task_id")
    output = mapping(call.get("output"))
    usage = mapping(output.get("usage"))
    if task is None:
        return
    row = used.setdefault(str(task), {})
    for name in ("prompt_tokens", "completion_tokens"):
        if (tokens := count(usage.get(name))) is not None:
            row[name] = row.get(name, 0) + tokens
    choice = mapping(next(iter(items(output.get("choices"))), None))
    if said := text_of(mapping(choice.get("message")).get("content")):
        row["response"] = said


FORMAT = LogFormat(
    "hal",
    "HAL",
    recognise,
    read,
    counts_errors=True,
    lost="the single calls of the models beyond their tokens, rubrics of later analyses",
)
