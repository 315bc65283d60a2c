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

_SPENT = "\0spent"
"""What the calls of a task cost, while they are added up."""


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
    spent = {task: row.pop(_SPENT) for task, row in used.items() if _SPENT in row}
    costs, stated = _costs(found, spent, number(whole.get("total_cost")), log)
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
            "task_cost_usd": stated.get(task),
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


def _costs(
    found: Mapping[str, Any], calls: Mapping[str, float], total: float | None, log: Log
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the cost of each task, and what the log says of costs that do not add up.

    The results of a task may state a cost that is not all of it, such as that of a simulated user.
    Only costs that add up to what the run cost are true: those of the results, or of the calls.
    """
    told = {task: number(mapping(value).get("cost")) for task, value in found.items()}
    stated = {task: cost for task, cost in told.items() if cost is not None}
    for costs in (stated, calls):
        if costs and (total is None or math.isclose(sum(costs.values()), total, rel_tol=0.01)):
            return dict(costs), {}
    if stated and total is not None:
        parts = sum(stated.values())
        log.note(
            f"HAL reports ${total:.6g} for the run, and its tasks add up to ${parts:.6g}: "
            f"${abs(total - parts):.6g} {'less' if parts < total else 'more'}. No task has a cost "
            "here; the column task_cost_usd has what the log says."
        )
    return {}, stated


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
    priced = mapping(mapping(mapping(call.get("summary")).get("weave")).get("costs"))
    for cost in map(mapping, priced.values()):
        for name in ("prompt_tokens_total_cost", "completion_tokens_total_cost"):
            row[_SPENT] = row.get(_SPENT, 0.0) + (number(cost.get(name)) or 0.0)
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
