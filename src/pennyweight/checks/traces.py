"""Tool calls in the output of agents: events of Claude, Codex, Gemini and others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

MAX_DEPTH = 12
_CODEX = {"command_execution": "shell", "file_change": "file_change", "web_search": "web_search"}


def traced(output: str) -> list[dict[str, Any]]:
    r"""Return the tool calls in lines of JSON, or in one JSON value.

    >>> traced('{"type": "tool_use", "name": "Read", "input": {"path": "a"}}\nDone.')
    [{'name': 'Read', 'arguments': {'path': 'a'}}]
    """
    calls: list[dict[str, Any]] = []
    seen: set[str] = set()
    for event in _events(output):
        for call_id, call in _calls(event, 0):
            if call_id is None or call_id not in seen:
                calls.append(call)
            if call_id is not None:
                seen.add(call_id)
    return calls


def _events(output: str) -> Iterator[Any]:
    try:
        yield json.loads(output)
        return
    except (ValueError, RecursionError):
        pass
    for line in output.splitlines():
        if line.lstrip()[:1] in {"{", "["}:
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                continue


def _calls(event: Any, depth: int) -> Iterator[tuple[str | None, dict[str, Any]]]:
    if depth > MAX_DEPTH:
        return
    if isinstance(event, list):
        for one in event:
            yield from _calls(one, depth + 1)
    elif isinstance(event, Mapping):
        call = _call(event)
        if call is not None:
            given = event.get("id", event.get("tool_id"))
            yield (str(given) if given is not None else None), call
            return
        for one in event.values():
            if isinstance(one, Mapping | list):
                yield from _calls(one, depth + 1)


def _call(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read an object as a tool call, in the format of any known agent; None if it is none."""
    kind = event.get("type")
    if kind == "tool_use":
        name = event.get("name", event.get("tool_name"))
        return _tool_call(name, event.get("input", event.get("parameters")))
    if kind == "mcp_tool_call":
        return _tool_call(event.get("tool"), event.get("arguments"))
    if kind in _CODEX:
        return _tool_call(
            _CODEX[kind], {k: v for k, v in event.items() if k in {"command", "changes"}}
        )
    for key in ("function", "functionCall", "function_call"):
        below = event.get(key)
        if isinstance(below, Mapping) and isinstance(below.get("name"), str):
            return _tool_call(below["name"], below.get("arguments", below.get("args")))
    return None


def _tool_call(name: Any, arguments: Any) -> dict[str, Any] | None:
    return {"name": name, "arguments": arguments or {}} if isinstance(name, str) else None
