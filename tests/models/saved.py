"""Saved responses, and the request that most tests send."""

import json
from pathlib import Path
from typing import Any

from pennyweight.models.model import Message, Request, Settings, ToolCall

DATA = Path(__file__).parent / "data"

WEATHER = {
    "name": "get_weather",
    "description": "The weather in a place.",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}},
}

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def saved(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def ask(text: str = "What is 2+2?", attempt: int = 1, **settings: Any) -> Request:
    return Request((Message("user", text),), Settings.of(settings), attempt)


def conversation(**settings: Any) -> Request:
    """One in which two tools were called and have answered."""
    calls = (
        ToolCall("c1", "get_weather", '{"location": "Oslo"}'),
        ToolCall("c2", "get_weather", '{"location": "Rome"}'),
    )
    return Request(
        (
            Message("system", "Be brief."),
            Message("user", "Weather?"),
            Message("assistant", "", tool_calls=calls),
            Message("tool", "cold", tool_call_id="c1"),
            Message("tool", "warm", tool_call_id="c2"),
        ),
        Settings.of(settings),
    )
