"""τ-bench and τ²-bench: the results of conversations between an agent and a simulated user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pennyweight.sources.json_array import JsonArray, loads
from pennyweight.sources.log_format import PROBLEM, Log, LogFormat, Row
from pennyweight.sources.log_values import check, count, items, mapping, message, number, verdict
from pennyweight.sources.peek import Peek

_ENDINGS = {
    "max_steps": "budget",
    "context_window_exceeded": "budget",
    "context_length_exceeded": "budget",
    "max_errors": "ok",
    "too_many_errors": "ok",
    "agent_error": "ok",
    "timeout": "timeout",
    "infrastructure_error": "error",
    "unexpected_error": "error",
    "user_error": "error",
}
"""The status of an attempt by the reason why it ended; others ended as they should."""


def recognise(peek: Peek) -> bool:
    """Whether a file is a list of results of τ-bench."""
    return peek.has("task_id", "reward", "info", "traj")


def recognise_second(peek: Peek) -> bool:
    """Whether a file is a file of results, or a simulation, of τ²-bench."""
    return (
        (peek.inside("info", "agent_info") is not None and peek.has("tasks"))
        or peek.has("simulations", "tasks")
        or peek.has("task_id", "termination_reason", "reward_info", "messages")
    )


def home_second(path: Path) -> Path:
    """Return the results; since 2026 the simulations may stand in a folder beside them."""
    return path.parent.with_name("results.json") if path.parent.name == "simulations" else path


def read(log: Log) -> Iterator[Row]:
    """Yield the attempts of τ-bench."""
    for path in log.files:
        subject = _model(path)
        for place, text in enumerate(JsonArray(path), 1):
            result = loads(text)
            if not isinstance(result, dict) or "reward" not in result:
                yield {PROBLEM: f"result {place}: not JSON, or no result."}
                continue
            yield {"run": path.stem, "subject": subject, **_first_row(result, log)}


def _model(path: Path) -> str:
    """Return the model in a name such as `tool-calling-gpt-4o-0.0_range_0-4_user-….json`."""
    return path.stem.partition("_range_")[0].rpartition("-")[0] or path.stem


def _first_row(result: Mapping[str, Any], log: Log) -> Row:
    info, chat = mapping(result.get("info")), items(result.get("traj"))
    trial = count(result.get("trial"))
    row: Row = {
        "task_id": str(result.get("task_id")),
        "attempt": None if trial is None else trial + 1,
        "input": mapping(info.get("task")).get("instruction"),
        "response": _last_reply(chat),
    }
    if not chat and info.get("error"):
        return {**row, "status": "error", "error": info["error"]}
    if log.wants("messages"):
        row["messages"] = [_message(one) for one in map(mapping, chat)]
    if log.wants("tool_calls"):
        row["tool_calls"] = _calls(chat)
    return {**row, "status": "ok", **verdict(result.get("reward"))}


def read_second(log: Log) -> Iterator[Row]:
    """Yield the simulations of τ²-bench, from the results or from files of their own."""
    about: Row = {}
    for path in sorted(log.files, key=lambda p: p != log.path):
        if not Peek.of(path).has("termination_reason"):
            array = JsonArray(path, "simulations")
            for place, text in enumerate(array, 1):
                about = about or _about(array.head, path)
                yield _simulation(loads(text), f"simulation {place}", about, log)
            about = about or _about(array.rest, path)
        else:
            yield _simulation(loads(path.read_bytes()), path.name, about, log)


def _about(head: Mapping[str, Any], path: Path) -> Row:
    info = mapping(head.get("info"))
    agent = mapping(info.get("agent_info"))
    tasks = {mapping(one).get("id"): one for one in items(head.get("tasks"))}
    return {
        "run": path.stem,
        "subject": agent.get("llm") or agent.get("implementation"),
        "suite": mapping(info.get("environment_info")).get("domain_name"),
        "tasks": tasks,
    }


def _simulation(value: Any, place: str, about: Row, log: Log) -> Row:
    if not isinstance(value, dict) or "task_id" not in value:
        return {PROBLEM: f"{place}: not JSON, or no simulation."}
    trial, chat = count(value.get("trial")), items(value.get("messages"))
    agent = [mapping(one) for one in chat if mapping(one).get("role") == "assistant"]
    used = [mapping(one["usage"]) for one in agent if one.get("usage")]
    reward = mapping(value.get("reward_info"))
    task = mapping(mapping(about.get("tasks")).get(value["task_id"]))
    told = mapping(mapping(task.get("user_scenario")).get("instructions"))
    ended = str(value.get("termination_reason"))
    row: Row = {
        **{name: about.get(name) for name in ("run", "subject", "suite")},
        "task_id": str(value["task_id"]),
        "attempt": None if trial is None else trial + 1,
        "status": _ENDINGS.get(ended, "ok"),
        "input": told.get("reason_for_call") or told.get("task_instructions"),
        "response": _last_reply(chat),
        "prompt_tokens": _sum(used, "prompt_tokens"),
        "completion_tokens": _sum(used, "completion_tokens"),
        "cost_usd": number(value.get("agent_cost")),
        "duration_seconds": number(value.get("duration")),
        "start_time": value.get("start_time"),
        "end_time": value.get("end_time"),
    }
    if row["status"] == "error":
        return {**row, "error": f"The simulation ended with {ended}."}
    if log.wants("messages"):
        row["messages"] = [_message(one) for one in map(mapping, chat)]
    if log.wants("tool_calls"):
        row["tool_calls"] = _calls(chat)
    if log.wants("checks"):
        row["checks"] = _checks(reward) or None
    return {**row, **verdict(reward.get("reward"))}


def _checks(reward: Mapping[str, Any]) -> list[Row]:
    """Return every check of a simulation."""
    made = []
    if database := mapping(reward.get("db_check")):
        made.append(check("database", database.get("db_match")))
    for one in map(mapping, items(reward.get("action_checks"))):
        name = mapping(one.get("action")).get("name")
        made.append(check(f"action: {name}", one.get("action_match")))
    made += [
        check(one.get("nl_assertion"), one.get("met"), one.get("justification"))
        for one in map(mapping, items(reward.get("nl_assertions")))
    ]
    for one in map(mapping, items(reward.get("env_assertions"))):
        name = mapping(one.get("env_assertion")).get("func_name")
        made.append(check(f"environment: {name}", one.get("met")))
    made += [
        check(f"says: {one.get('info')}", one.get("met"), one.get("justification"))
        for one in map(mapping, items(reward.get("communicate_checks")))
    ]
    return made


def _last_reply(chat: list[Any]) -> str | None:
    said = (mapping(one) for one in reversed(chat))
    found = (one.get("content") for one in said if one.get("role") == "assistant")
    return next((content for content in found if content), None)


def _message(one: Mapping[str, Any]) -> Row:
    made = message(one.get("role"), one.get("content"))
    made |= {"tool_calls": calls} if (calls := _calls([one])) else {}
    return made | ({"name": one["name"]} if one.get("name") else {})


def _calls(chat: list[Any]) -> list[Row] | None:
    """Return the tool calls of the agent; those of the simulated user are not its own."""
    made = []
    for one in map(mapping, chat):
        if one.get("role") != "assistant":
            continue
        for call in map(mapping, items(one.get("tool_calls"))):
            function = mapping(call.get("function")) or call
            made.append({"name": function.get("name"), "arguments": function.get("arguments")})
    return made or None


def _sum(used: list[Mapping[str, Any]], name: str) -> int | None:
    counts = [count(one.get(name)) for one in used]
    return sum(one or 0 for one in counts) if any(one is not None for one in counts) else None


FORMAT = LogFormat(
    "tau_bench", "τ-bench", recognise, read, counts_errors=True, lost="the user's cost, data hashes"
)
SECOND = LogFormat(
    "tau2_bench",
    "τ²-bench",
    recognise_second,
    read_second,
    home_second,
    lost="the simulated user's tokens and cost, policies, seeds",
)
