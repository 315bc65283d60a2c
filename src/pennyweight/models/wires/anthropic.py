"""Anthropic's messages format: a request to JSON, JSON to a reply."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from io import StringIO
from typing import Any

from pennyweight.errors import UsageError
from pennyweight.models.failure import CallError, from_status, malformed, read_error, total
from pennyweight.models.json_values import (
    PIECE,
    add,
    compact,
    count,
    known,
    object_of,
    text_of,
    word,
)
from pennyweight.models.model import Message, Reply, Request, Settings, ToolCall, Usage

IGNORES = frozenset({"seed", "logprobs"})
"""The settings that the format does not have."""

VERSION = "2023-06-01"

DEFAULT_MAX_TOKENS = 4096
"""The format requires a limit. This is the default, in addition to the thinking budget."""

_NAME = re.compile(
    r"claude-(?:(?P<before>\d)(?:[-.](?P<before_minor>\d))?-)?(?P<family>[a-z]+)"
    r"(?:-(?P<after>\d{1,2})(?!\d)(?:[-.](?P<after_minor>\d{1,2})(?!\d))?)?"
)
_LEVELS_SINCE, _ONLY_LEVELS_SINCE, _NEVER = (4, 6), (4, 7), (99, 0)
"""Which versions take levels ("adaptive thinking"), and which no longer take budgets."""
_ALWAYS_SINCE = {"opus": (5, 5), "fable": (5, 0), "mythos": (5, 0)}
"""Which versions cannot stop thinking."""

_TRUNCATED = {"max_tokens", "model_context_window_exceeded"}


def headers(key: str | None) -> dict[str, str]:
    """Return the authentication headers."""
    return {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})


def encode(model: str, request: Request) -> tuple[str, dict[str, Any]]:
    """Return the path and body of a request."""
    wanted = request.settings
    budget = wanted.thinking if isinstance(wanted.thinking, int) else 0
    body = {
        "model": model,
        "max_tokens": wanted.max_tokens or DEFAULT_MAX_TOKENS + budget,
        "messages": _turns(request.messages),
        "system": request.system or None,
        "temperature": wanted.temperature,
        "top_p": wanted.top_p,
        "stop_sequences": list(wanted.stop) or None,
        "tools": [_tool(t) for t in wanted.tools] or None,
        "output_config": _output(wanted) or None,
        "thinking": _thinking(model, wanted.thinking),
    }
    return "/v1/messages", {**known(body), **wanted.extra}


def streamed(path: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the path and body of a request for a stream."""
    return path, {**body, "stream": True}


def most_output(body: Mapping[str, Any]) -> int | None:
    """Return the maximum number of output tokens of a request, including thinking."""
    return count(body.get("max_tokens"))


def _output(wanted: Settings) -> dict[str, Any]:
    output: dict[str, Any] = {}
    if wanted.schema is not None:
        output["format"] = {"type": "json_schema", "schema": dict(wanted.schema)}
    if isinstance(wanted.thinking, str):
        output["effort"] = wanted.thinking
    return output


def _thinking(model: str, wanted: int | str | None) -> dict[str, Any] | None:
    if wanted is None:
        return None
    family, version = _release(model)
    if isinstance(wanted, str):
        if version < _LEVELS_SINCE:
            raise UsageError(
                f"thinking: {wanted} is a level, but {model} takes only budgets. Write a number of "
                "tokens, at least 1024."
            )
        return {"type": "adaptive", "display": "summarized"}
    if wanted and version >= _ONLY_LEVELS_SINCE:
        raise UsageError(
            f"thinking: {wanted} is a budget in tokens, but {model} takes only levels. Write low, "
            "medium, high, xhigh or max."
        )
    if wanted:
        return {"type": "enabled", "budget_tokens": wanted}
    if version >= _ALWAYS_SINCE.get(family, _NEVER):
        raise UsageError(
            f"thinking: 0 turns thinking off, but {model} always thinks. Write low, the least "
            "that it takes."
        )
    between = family == "sonnet" and version >= (5, 5)
    return {"type": "between_tools" if between else "disabled"}


def _release(model: str) -> tuple[str, tuple[int, int]]:
    """Return family and version of a Claude model; an unknown one counts as one that takes all.

    >>> _release("claude-3-7-sonnet-20250219"), _release("us.anthropic.claude-opus-4-7-v1:0")
    (('sonnet', (3, 7)), ('opus', (4, 7)))
    >>> _release("claude-sonnet-4-20250514"), _release("claude-mythos-preview"), _release("ours")
    (('sonnet', (4, 0)), ('mythos', (5, 0)), ('', (4, 6)))
    """
    found = _NAME.search(model)
    if not found:
        return "", _LEVELS_SINCE
    family, major = found["family"], found["before"] or found["after"]
    if major is None:
        return family, (5, 0) if family in {"fable", "mythos"} else _LEVELS_SINCE
    return family, (int(major), int(found["before_minor"] or found["after_minor"] or 0))


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
    texts = [{"type": "text", "text": message.content}] if message.content else []
    uses = [
        {"type": "tool_use", "id": c.id, "name": c.name, "input": c.parsed() or {}}
        for c in message.tool_calls
    ]
    return {"role": message.role, "content": [*texts, *uses]}


def spent(body: Any) -> Usage:
    """Read the usage of a reply. The format's `input_tokens` excludes cached ones."""
    usage = object_of(body.get("usage"))
    fresh, cached = count(usage.get("input_tokens")), count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    thought = object_of(usage.get("output_tokens_details")).get("thinking_tokens")
    prompt = None if fresh is None else add(fresh, cached, written)
    hour = count(object_of(usage.get("cache_creation")).get("ephemeral_1h_input_tokens"))
    output = count(usage.get("output_tokens"))
    return Usage(prompt, output, cached, count(thought), written, hour)


@total(spent)
def decode(body: Any, latency_ms: float | None = None) -> Reply:
    """Read a reply."""
    if body.get("type") == "error":
        raise _error(502, {}, body.get("error") or {}, "")
    blocks = body["content"]
    if not isinstance(blocks, list):
        raise malformed("its content is not a list of blocks.")
    finish = word(body.get("stop_reason"))
    thoughts = [text_of(b.get("thinking")) for b in blocks if b.get("type") == "thinking"]
    return Reply(
        text="".join(text_of(b["text"]) for b in blocks if b.get("type") == "text"),
        reasoning="\n\n".join(t for t in thoughts if t) or None,
        tool_calls=tuple(
            ToolCall(text_of(b.get("id")), text_of(b["name"]), compact(b["input"]))
            for b in blocks
            if b.get("type") == "tool_use"
        ),
        usage=spent(body),
        truncated=finish in _TRUNCATED,
        refused=finish == "refusal",
        finish=finish,
        model=word(body.get("model")),
        latency_ms=latency_ms,
    )


_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
"""What the deltas of a stream bring pieces of."""


class StreamedMessage:
    """The events of a streamed reply, put together."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._texts: dict[int, StringIO] = {}
        self.complete = False

    def add(self, event: Any) -> tuple[bool, int]:
        """Add an event."""
        kind = event.get("type")
        if kind == "error":
            raise _error(502, {}, object_of(event.get("error")), "")
        if kind == "content_block_delta":
            name = _DELTAS.get(event["delta"]["type"])
            piece = text_of(event["delta"][name]) if name else ""
            self._texts[event["index"]].write(piece)
            return bool(piece), len(piece)
        if kind == "content_block_start":
            block = self._blocks[event["index"]] = dict(event["content_block"])
            self._texts[event["index"]] = StringIO()
            return bool(block.get("text") or block.get("name")), len(compact(block)) + 8 * PIECE
        if kind == "message_start":
            self._message |= event["message"]
            self._usage |= known(object_of(event["message"].get("usage")))
        elif kind == "message_delta":
            self._message |= known(object_of(event.get("delta")))
            self._usage |= known(object_of(event.get("usage")))
        self.complete = self.complete or kind == "message_stop"
        return False, 0

    def body(self) -> dict[str, Any]:
        """Return the body as it would have come without streaming."""
        blocks = [
            _whole_block(block, self._texts[number].getvalue())
            for number, block in sorted(self._blocks.items())
        ]
        return {**self._message, "content": blocks, "usage": self._usage}


streamed_body = StreamedMessage


def _whole_block(block: dict[str, Any], text: str) -> dict[str, Any]:
    name = {"text": "text", "thinking": "thinking"}.get(block["type"])
    if name:
        return {**block, name: text_of(block.get(name)) + text}
    if not text:
        return block
    try:
        return {**block, "input": json.loads(text)}
    except ValueError:
        return {**block, "input": text}  # the model wrote no valid JSON, or was cut off


def error(status: int, headers: Mapping[str, str], body: bytes) -> CallError:
    """Read an error."""
    return _error(status, headers, *read_error(body))


def _error(
    status: int, headers: Mapping[str, str], error: Mapping[str, Any], detail: str
) -> CallError:
    message = str(error.get("message") or detail)
    return from_status(status, headers, message, str(error.get("type") or ""))
