"""OpenTelemetry: a trace of GenAI spans for each attempt, as OTLP JSON, with its evaluation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from pennyweight.exports.export_format import ExportedRun, ExportFormat, RecordRow
from pennyweight.exports.values import (
    arguments,
    asked,
    conversation,
    dumped,
    file_name,
    mappings,
    parsed,
    side_of,
)

_INTERNAL, _CLIENT = 1, 3
_FAILED = {"code": 2}
_TOKENS = {
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
    "cost_usd": "gen_ai.usage.cost",
}


def write(folder: Path, run: ExportedRun, rows: Iterator[RecordRow]) -> None:
    """Write a file for each subject and tier, one request a line, each with one trace."""
    made: dict[tuple[str, str], IO[bytes]] = {}
    with ExitStack() as files:
        for row in rows:
            side = side_of(row)
            if side not in made:
                path = folder / f"{file_name(*side).replace('.', '-')}.traces.jsonl"
                made[side] = files.enter_context(path.open("wb"))
            made[side].write(dumped(_request(row, run)) + b"\n")


def _request(row: RecordRow, run: ExportedRun) -> dict[str, Any]:
    resource = {"service.name": "pennyweight", "service.version": run.version}
    scope = {"name": "pennyweight", "version": run.version}
    spans = {"scope": scope, "spans": _spans(row, run)}
    return {
        "resourceSpans": [
            {"resource": {"attributes": _attributes(resource)}, "scopeSpans": [spans]}
        ]
    }


def _spans(row: RecordRow, run: ExportedRun) -> list[dict[str, Any]]:
    key = (run.id, row["subject"], row["tier"], row["task_id"], str(row["attempt"]))
    trace = _mark(16, *key)
    root = _mark(8, *key)
    start = row.get("started") or run.created
    latency = row.get("latency_ms")
    end = row.get("ended") or start if latency is None else start + latency / 1000
    times = _times(start, end)
    agent = {
        "traceId": trace,
        "spanId": root,
        "name": f"invoke_agent {row['subject']}",
        "kind": _INTERNAL,
        **times,
        "attributes": _attributes({
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": row["subject"],
            "gen_ai.conversation.id": row["task_id"],
            "pennyweight.run": run.id,
            "pennyweight.suite": run.suite,
            "pennyweight.tier": row["tier"],
            "pennyweight.attempt": row["attempt"],
            "pennyweight.status": row["status"],
            "error.type": row.get("error_kind"),
        }),
        "events": _evaluation(row, times["endTimeUnixNano"]),
        "status": _status(row),
    }  # fmt: skip
    below = {"traceId": trace, "parentSpanId": root}
    spans = [agent]
    if row.get("response") is not None:
        spans.append({**below, "spanId": _mark(8, *key, "chat"), **_chat(row), **times})
    for number, call in enumerate(_calls(row), 1):
        spans.append({**below, "spanId": _mark(8, *key, str(number)), **_tool(call), **times})
    return spans


def _chat(row: RecordRow) -> dict[str, Any]:
    model = row.get("model") or row["subject"]
    finish = "length" if row.get("truncated") else "stop"
    said: dict[str, Any] = {"role": "assistant", "parts": [], "finish_reason": finish}
    if row.get("reasoning"):
        said["parts"].append({"type": "reasoning", "content": row["reasoning"]})
    said["parts"].append({"type": "text", "content": row["response"]})
    given = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": model,
        "gen_ai.response.model": model,
        "gen_ai.response.finish_reasons": [finish],
        "gen_ai.input.messages": dumped([_message(one) for one in asked(row)]).decode(),
        "gen_ai.output.messages": dumped([said]).decode(),
        **{theirs: row.get(ours) for ours, theirs in _TOKENS.items()},
    }
    return {"name": f"chat {model}", "kind": _CLIENT, "attributes": _attributes(given)}


def _calls(row: RecordRow) -> Iterator[Mapping[str, Any]]:
    """Yield the tool calls, each with the result that came back, if any."""
    told = conversation(row)
    results = {one["call_id"]: one.get("content") for one in told if one.get("call_id")}
    for one in told:
        for call in mappings(one.get("tool_calls")):
            yield {**call, "result": results.get(call["id"])}


def _tool(call: Mapping[str, Any]) -> dict[str, Any]:
    given = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": str(call.get("name") or ""),
        "gen_ai.tool.call.id": call["id"],
        "gen_ai.tool.call.arguments": dumped(arguments(call)).decode(),
        "gen_ai.tool.call.result": call["result"],
    }
    name = f"execute_tool {call.get('name') or ''}".strip()
    return {"name": name, "kind": _INTERNAL, "attributes": _attributes(given)}


def _evaluation(row: RecordRow, at: str) -> list[dict[str, Any]]:
    """Return the verdict first, then the scores that scorers gave."""
    found = []
    if row.get("passed") is not None and row["status"] != "error":
        label = "pass" if row["passed"] else "fail"
        found.append(_result("passed", float(row["passed"]), at, label))
    given = parsed(row.get("scores"))
    for name, value in given.items() if isinstance(given, dict) else ():
        if isinstance(value, int | float):
            found.append(_result(name, float(value), at))
    return found


def _result(name: str, value: float, at: str, label: str | None = None) -> dict[str, Any]:
    given = {
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.value": value,
        "gen_ai.evaluation.score.label": label,
    }
    attributes = _attributes(given)
    return {"name": "gen_ai.evaluation.result", "timeUnixNano": at, "attributes": attributes}


def _status(row: RecordRow) -> dict[str, Any]:
    if row["status"] == "error":
        return {**_FAILED, "message": row.get("error") or "error"}
    return {}


def _message(one: Mapping[str, Any]) -> dict[str, Any]:
    parts = [{"type": "text", "content": str(one.get("content") or "")}]
    return {"role": one.get("role"), "parts": parts}


def _attributes(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    known = ((key, value) for key, value in given.items() if value is not None)
    return [{"key": key, "value": _value(value)} for key, value in known]


def _value(value: Any) -> dict[str, Any]:
    """Return a value as OTLP JSON writes it: whole numbers as text."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": str(value)}


def _times(start: float, end: float) -> dict[str, str]:
    nanos = (str(round(seconds * 1e6) * 1000) for seconds in (start, max(start, end)))
    return dict(zip(("startTimeUnixNano", "endTimeUnixNano"), nanos, strict=True))


def _mark(size: int, *parts: str) -> str:
    """Return an id that the same attempt gets again."""
    text = "\0".join(parts).encode("utf-8", "replace")
    return hashlib.blake2b(text, digest_size=size).hexdigest()


FORMAT = ExportFormat(
    "otel",
    "OpenTelemetry",
    write,
    lost="targets, answers, checks, judges' scores, log-probabilities, timeouts and budgets; the "
    "turns of a conversation are one call; tools have no times of their own",
)
