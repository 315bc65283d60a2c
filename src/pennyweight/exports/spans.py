"""An attempt as GenAI spans of OpenTelemetry: the agent, its calls and tools, its evaluation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pennyweight.exports.export_format import RecordRow
from pennyweight.exports.values import arguments, asked, conversation, dumped, mappings, parsed

_INTERNAL, _CLIENT, _FAILED, _INFO = 1, 3, 2, 9
_RESULT = "gen_ai.evaluation.result"
_TOKENS = {
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
    "cost_usd": "gen_ai.usage.cost",
}
Value = dict[str, Any]
"""A message of OTLP, as its JSON writes it."""


@dataclass(frozen=True, slots=True)
class TracedRun:
    """What the spans of a run have in common."""

    id: str
    suite: str
    created: float
    version: str
    """The version of Pennyweight that made them."""

    def traces(self, spans: Sequence[Value]) -> Value:
        """Return a request with spans."""
        return {"resourceSpans": [self._of("scopeSpans", "spans", spans)]}

    def logs(self, events: Sequence[Value]) -> Value:
        """Return a request with log events."""
        return {"resourceLogs": [self._of("scopeLogs", "logRecords", events)]}

    def _of(self, scopes: str, name: str, values: Sequence[Value]) -> Value:
        resource = {"service.name": "pennyweight", "service.version": self.version}
        scope = {"name": "pennyweight", "version": self.version}
        return {
            "resource": {"attributes": _attributes(resource)},
            scopes: [{"scope": scope, name: list(values)}],
        }


def spans_of(row: RecordRow, run: TracedRun, *, evaluated: bool = True) -> list[Value]:
    """Return the spans of an attempt, its own first; with its evaluation if that is known."""
    key = _key(row, run)
    trace, root = _mark(16, *key), _mark(8, *key)
    times = _times(row, run)
    agent: Value = {
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
        "events": [],
        "status": _status(row),
    }  # fmt: skip
    if evaluated:
        at = times["endTimeUnixNano"]
        agent["events"] = [
            {"name": _RESULT, "timeUnixNano": at, "attributes": one} for one in _results(row)
        ]
    below = {"traceId": trace, "parentSpanId": root}
    calls = list(_calls(row))
    if len(calls) > 1:  # what each of them used is not known
        agent["attributes"] += _attributes(_used(row))
    spans = [agent]
    for number, call in enumerate(calls, 1):
        used = _used(row) if len(calls) == 1 else {}
        spans.append({**below, "spanId": _mark(8, *key, "chat", str(number)), **call, **times})
        spans[-1]["attributes"] = _attributes({**call["attributes"], **used})
    for number, tool in enumerate(_tools(row), 1):
        spans.append({**below, "spanId": _mark(8, *key, str(number)), **tool, **times})
    return spans


def events_of(row: RecordRow, run: TracedRun, at: float) -> list[Value]:
    """Return the evaluation of an attempt as log events, for one that was sent without it."""
    key = _key(row, run)
    about = {
        "timeUnixNano": _nanoseconds(at),
        "observedTimeUnixNano": _nanoseconds(at),
        "severityNumber": _INFO,
        "eventName": _RESULT,
        "traceId": _mark(16, *key),
        "spanId": _mark(8, *key),
    }
    return [{**about, "attributes": one} for one in _results(row)]


def _key(row: RecordRow, run: TracedRun) -> tuple[str, ...]:
    return run.id, row["subject"], row["tier"], row["task_id"], str(row["attempt"])


def _calls(row: RecordRow) -> Iterator[Value]:
    """Yield the calls: one for each message of the model, with all that was said before it."""
    if row.get("response") is None:
        return
    model = row.get("model") or row["subject"]
    before = list(asked(row))
    said = conversation(row)[len(before) :]
    replies = [n for n, one in enumerate(said) if one.get("role") == "assistant"]
    for n in replies or [0]:
        is_last = n == (replies or [0])[-1]
        finish = "length" if is_last and row.get("truncated") else "stop"
        parts = _parts(said[n]) if replies else [_text(row["response"])]
        if is_last and row.get("reasoning"):
            parts.insert(0, {"type": "reasoning", "content": row["reasoning"]})
        told = {"role": "assistant", "parts": parts, "finish_reason": finish}
        given = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": model,
            "gen_ai.response.model": model,
            "gen_ai.response.finish_reasons": [finish],
            "gen_ai.input.messages": _json([_message(one) for one in (*before, *said[:n])]),
            "gen_ai.output.messages": _json([told]),
        }
        yield {"name": f"chat {model}", "kind": _CLIENT, "attributes": given}


def _tools(row: RecordRow) -> Iterator[Value]:
    """Yield the tool calls, each with the result that came back, if any."""
    told = conversation(row)
    results = {one["call_id"]: one.get("content") for one in told if one.get("call_id")}
    for one in told:
        for call in mappings(one.get("tool_calls")):
            name = str(call.get("name") or "")
            given = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": name,
                "gen_ai.tool.call.id": call["id"],
                "gen_ai.tool.call.arguments": _json(arguments(call)),
                "gen_ai.tool.call.result": results.get(call["id"], call.get("result")),
            }
            about = {"name": f"execute_tool {name}".strip(), "kind": _INTERNAL}
            yield {**about, "attributes": _attributes(given)}


def _results(row: RecordRow) -> Iterator[list[Value]]:
    """Yield the verdict first, then the scores that scorers gave, each as attributes."""
    if row.get("passed") is not None and row["status"] != "error":
        yield _result("passed", float(row["passed"]), "pass" if row["passed"] else "fail")
    given = parsed(row.get("scores"))
    for name, value in given.items() if isinstance(given, dict) else ():
        if isinstance(value, int | float):
            yield _result(name, float(value))


def _result(name: str, value: float, label: str | None = None) -> list[Value]:
    return _attributes({
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.value": value,
        "gen_ai.evaluation.score.label": label,
    })  # fmt: skip


def _used(row: RecordRow) -> dict[str, Any]:
    return {theirs: row.get(ours) for ours, theirs in _TOKENS.items()}


def _status(row: RecordRow) -> Value:
    if row["status"] == "error":
        return {"code": _FAILED, "message": row.get("error") or "error"}
    return {}


def _message(one: Mapping[str, Any]) -> Value:
    if one.get("role") == "tool":
        content = one.get("content")
        part = {"type": "tool_call_response", "id": one.get("call_id"), "response": content}
        return {"role": "tool", "parts": [part]}
    return {"role": one.get("role"), "parts": _parts(one)}


def _parts(one: Mapping[str, Any]) -> list[Value]:
    parts = [_text(one.get("content"))] if one.get("content") else []
    for call in mappings(one.get("tool_calls")):
        about = {"type": "tool_call", "id": call.get("id"), "name": call.get("name")}
        parts.append({**about, "arguments": arguments(call)})
    return parts or [_text("")]


def _text(content: Any) -> Value:
    return {"type": "text", "content": str(content or "")}


def _json(value: Any) -> str:
    return dumped(value).decode()


def _attributes(given: Mapping[str, Any]) -> list[Value]:
    known = ((key, value) for key, value in given.items() if value is not None)
    return [{"key": key, "value": _value(value)} for key, value in known]


def _value(value: Any) -> Value:
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


def _times(row: RecordRow, run: TracedRun) -> dict[str, str]:
    start = row.get("started") or run.created
    latency = row.get("latency_ms")
    end = row.get("ended") or start if latency is None else start + latency / 1000
    return {
        "startTimeUnixNano": _nanoseconds(start),
        "endTimeUnixNano": _nanoseconds(max(start, end)),
    }


def _nanoseconds(seconds: float) -> str:
    return str(round(seconds * 1e6) * 1000)


def _mark(size: int, *parts: str) -> str:
    """Return an id that the same attempt gets again."""
    text = "\0".join(parts).encode("utf-8", "replace")
    return hashlib.blake2b(text, digest_size=size).hexdigest()
