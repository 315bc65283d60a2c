"""Anthropic's messages format: a request to JSON, JSON to a reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pennyweight.models.failure import CallError, from_status, malformed, read_error, total
from pennyweight.models.json_values import add, compact, count, text_of, word
from pennyweight.models.model import Message, Reply, Request, Settings, ToolCall, Usage

IGNORES = frozenset({"seed", "logprobs"})
"""The settings that the format does not have."""

VERSION = "2023-06-01"

DEFAULT_MAX_TOKENS = 4096
"""The format requires a limit. This is the default, in addition to the thinking budget."""

_TRUNCATED = {"max_tokens", "model_context_window_exceeded"}


def headers(key: str | None) -> dict[str, str]:
    """Return the authentication headers."""
    return {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})


def encode(model: str, request: Request) -> tuple[str, dict[str, Any]]:
    """Return the path and body of a request."""
    wanted = request.settings
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": wanted.max_tokens or _default_limit(wanted),
        "messages": _turns(request.messages),
    }
    if system := request.system:
        body["system"] = system
    if wanted.temperature is not None:
        body["temperature"] = wanted.temperature
    if wanted.top_p is not None:
        body["top_p"] = wanted.top_p
    if wanted.stop:
        body["stop_sequences"] = list(wanted.stop)
    if wanted.tools:
        body["tools"] = [_tool(t) for t in wanted.tools]
    output = _output(wanted)
    if output:
        body["output_config"] = output
    if wanted.thinking is not None:
        body["thinking"] = _thinking(wanted.thinking)
    body.update(wanted.extra)
    return "/v1/messages", body


def most_output(body: Mapping[str, Any]) -> int | None:
    """Return the maximum number of output tokens of a request, including thinking."""
    return count(body.get("max_tokens"))


def _default_limit(wanted: Settings) -> int:
    budget = wanted.thinking if isinstance(wanted.thinking, int) else 0
    return DEFAULT_MAX_TOKENS + budget


def _output(wanted: Settings) -> dict[str, Any]:
    output: dict[str, Any] = {}
    if wanted.schema is not None:
        output["format"] = {"type": "json_schema", "schema": dict(wanted.schema)}
    if isinstance(wanted.thinking, str):
        output["effort"] = wanted.thinking
    return output


def _thinking(wanted: int | str) -> dict[str, Any]:
    if isinstance(wanted, str):
        return {"type": "adaptive", "display": "summarized"}
    return {"type": "enabled", "budget_tokens": wanted} if wanted else {"type": "disabled"}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    plain = tool.get("function", tool)
    schema = plain.get("parameters") or {"type": "object", "properties": {}}
    described = {"description": plain["description"]} if plain.get("description") else {}
    return {"name": plain["name"], **described, "input_schema": schema}


def _turns(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Return the conversation. Consecutive results of tools belong in one turn."""
    turns: list[dict[str, Any]] = []
    before = ""
    for message in messages:
        if message.role == "system":
            continue
        turn = _turn(message)
        if message.role == before == "tool":
            turns[-1]["content"] += turn["content"]
        else:
            turns.append(turn)
        before = message.role
    return turns


def _turn(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        result = {"type": "tool_result", "tool_use_id": message.tool_call_id or ""}
        return {"role": "user", "content": [{**result, "content": message.content}]}
    if not message.tool_calls:
        return {"role": message.role, "content": message.content}
    said = [{"type": "text", "text": message.content}] if message.content else []
    uses = [
        {"type": "tool_use", "id": c.id, "name": c.name, "input": c.parsed() or {}}
        for c in message.tool_calls
    ]
    return {"role": message.role, "content": [*said, *uses]}


def spent(body: Any) -> Usage:
    """Read the usage of a reply."""
    return _usage(body.get("usage"))


@total(spent)
def decode(body: Any, latency_ms: float | None = None) -> Reply:
    """Read a reply."""
    if body.get("type") == "error":
        raise _error(502, {}, body.get("error") or {}, "")
    blocks = body["content"]
    if not isinstance(blocks, list):
        raise malformed("its content is no list of blocks.")
    finish = word(body.get("stop_reason"))
    thoughts = [text_of(b.get("thinking")) for b in blocks if b.get("type") == "thinking"]
    return Reply(
        text="".join(text_of(b["text"]) for b in blocks if b.get("type") == "text"),
        reasoning="\n\n".join(t for t in thoughts if t) or None,
        tool_calls=tuple(_call(b) for b in blocks if b.get("type") == "tool_use"),
        usage=spent(body),
        truncated=finish in _TRUNCATED,
        refused=finish == "refusal",
        finish=finish,
        model=word(body.get("model")),
        latency_ms=latency_ms,
    )


def _call(block: Mapping[str, Any]) -> ToolCall:
    return ToolCall(text_of(block.get("id")), text_of(block["name"]), compact(block["input"]))


def _usage(usage: Any) -> Usage:
    """Count all input tokens: the format's `input_tokens` excludes cached ones."""
    if not isinstance(usage, dict):
        return Usage()
    fresh, cached = count(usage.get("input_tokens")), count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    details = usage.get("output_tokens_details")
    thought = details.get("thinking_tokens") if isinstance(details, dict) else None
    return Usage(
        prompt_tokens=None if fresh is None else add(fresh, cached, written),
        completion_tokens=count(usage.get("output_tokens")),
        cached_tokens=cached,
        reasoning_tokens=count(thought),
    )


def error(status: int, headers: Mapping[str, str], body: bytes) -> CallError:
    """Read an error."""
    found, detail = read_error(body)
    return _error(status, headers, found, detail)


def _error(
    status: int, headers: Mapping[str, str], found: Mapping[str, Any], detail: str
) -> CallError:
    said = str(found.get("message") or detail)
    return from_status(status, headers, said, str(found.get("type") or ""))
