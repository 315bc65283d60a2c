"""The fields of a reply that a user's function or a recording gives."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from numbers import Real
from typing import Any

from pennyweight.models.json_values import MAX_TOKENS
from pennyweight.record import MAX_NUMBER
from pennyweight.schema.kinds import Flag, ListOf, Number, OneOf, ParsedBy, Text
from pennyweight.schema.structs import Field, Struct

STATUSES = ("ok", "timeout", "budget")
_TEXT = Text(strict=True)
_TOKENS = Number(0, MAX_TOKENS, whole=True)


def _json_text(arguments: Any) -> str:
    """Return the arguments of a tool call as JSON text, as a provider gives them."""
    return arguments if isinstance(arguments, str) else _dumped(arguments)


def _dumped(value: Any) -> str:
    if not isinstance(value, Mapping):
        raise ValueError
    try:
        return json.dumps(dict(value), ensure_ascii=False, allow_nan=False)
    except (TypeError, RecursionError):
        raise ValueError from None


def _copied(work: Any) -> Any:
    """Return a copy, because the function may change its value later."""
    return json.loads(_dumped(work))


def _logprob(pair: Any) -> tuple[str, float]:
    token, number = pair
    right = isinstance(number, Real) and not isinstance(number, bool) and math.isfinite(number)
    if not isinstance(token, str) or not right:
        raise ValueError
    return token, float(number)


_JSON = "a mapping that JSON can represent"

TOOL_CALL = Struct(
    "a tool call",
    (
        Field("name", _TEXT, "The name of the tool.", required=True),
        Field("id", _TEXT, "Its id; its position if missing."),
        Field("arguments", ParsedBy(_json_text, {}, f"{_JSON}, or JSON text"), "Its arguments."),
    ),
)

USAGE = Struct(
    "usage",
    tuple(
        Field(f"{name}_tokens", _TOKENS)
        for name in (
            *("prompt", "completion", "cached", "reasoning"),
            *("cache_write", "cache_write_1h"),
        )
    ),
)

REPLY = Struct(
    "a reply",
    (
        Field("text", _TEXT, "The text of the reply.", required=True),
        Field("reasoning", _TEXT),
        Field("tool_calls", ListOf(TOOL_CALL, "a list of tool calls")),
        Field("usage", USAGE),
        Field("truncated", Flag()),
        Field("refused", Flag()),
        Field("finish", _TEXT),
        Field(
            "logprobs", ListOf(ParsedBy(_logprob, {}, "a pair of a token and its log-probability"))
        ),
        Field("model", _TEXT),
        Field("latency_ms", Number(0, MAX_NUMBER)),
        Field("ttft_ms", Number(0, MAX_NUMBER)),
        Field("status", OneOf(STATUSES)),
        Field("lane", OneOf(("live", "batch"))),
        Field("passed", Flag()),
        Field("cost_usd", Number(0, MAX_NUMBER)),
        Field("work", ParsedBy(_copied, {}, _JSON)),
    ),
)
"""What a reply may have; null means that a field is missing."""


_PLAIN_TYPES = {
    **dict.fromkeys(("text", "reasoning", "finish", "model"), str),
    **dict.fromkeys(("truncated", "refused", "passed"), bool),
}


def read_reply(values: Any) -> dict[str, Any]:
    """Read the fields of a reply; raise UsageError with every problem in them.

    Fields that are obviously right are taken as they are; only the others go through the schema.
    """
    read: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, value in _known(values).items():
        if type(value) is _PLAIN_TYPES.get(name) or (name == "status" and value == "ok"):
            read[name] = value
        elif name == "usage":
            usage = _known(value)
            (read if _counts(usage) else rest)[name] = usage
        elif name == "tool_calls" and isinstance(value, list | tuple):
            if value:
                rest[name] = list(map(_known, value))
        elif name == "latency_ms" and type(value) is float and 0 <= value < MAX_TOKENS:
            read[name] = value
        else:
            rest[name] = value
    if rest or "text" not in read:
        read |= REPLY.of({"text": read["text"], **rest} if "text" in read else rest, "reply")
    read["tool_calls"] = [
        {"id": str(number), "arguments": "{}", **call}
        for number, call in enumerate(read.get("tool_calls", ()), 1)
    ]
    return read


def _counts(usage: Any) -> bool:
    return type(usage) is dict and all(
        name in USAGE.kinds and type(count) is int and 0 <= count <= MAX_TOKENS
        for name, count in usage.items()
    )


def _known(value: Any) -> Any:
    """Return a mapping, or a value such as `Usage`, as a dict without its nulls."""
    if is_dataclass(value) and not isinstance(value, type):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
    if not isinstance(value, Mapping):
        return value
    return {name: below for name, below in value.items() if below is not None}
