"""Requests, settings and replies."""

from typing import Any

import pytest

from models.saved import ask
from pennyweight.errors import UsageError
from pennyweight.models.model import Reply, Settings, ToolCall, Usage


def test_an_unknown_setting_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="Did you mean 'temperature'"):
        Settings.of({"temprature": 0})


def test_a_reply_survives_as_plain_data() -> None:
    reply = Reply(
        "4", "2+2", (ToolCall("1", "f", "{}"),), Usage(1, 2, 3, 4), logprobs=(("4", -1.0),)
    )
    assert Reply.of(reply.plain()) == reply


def test_a_reply_needs_its_text() -> None:
    with pytest.raises(UsageError, match="text"):
        Reply.of({"reasoning": "none"})
    with pytest.raises(UsageError, match="Did you mean 'text'"):
        Reply.of({"texts": "4"})


def test_the_text_of_a_request() -> None:
    assert ask("one").text == "one"


def test_a_reply_takes_numbers_of_other_kinds() -> None:
    reply = Reply.of({"text": "4", "usage": {"prompt_tokens": 12.0}, "latency_ms": 3})
    assert (reply.usage.prompt_tokens, reply.latency_ms) == (12, 3.0)


WRONG: list[tuple[str, Any]] = [
    ("text", 4),
    ("text", None),
    ("reasoning", ["why"]),
    ("usage", {"prompt_tokens": "12"}),
    ("usage", {"prompt_tokens": 10**30}),
    ("usage", {"prompt_tokens": 10**400}),
    ("usage", {"completion_tokens": -1}),
    ("usage", {"completion_tokens": True}),
    ("usage", {"completion_tokens": 1.5}),
    ("usage", {"tokens": 1}),
    ("usage", 12),
    ("latency_ms", "fast"),
    ("latency_ms", float("nan")),
    ("latency_ms", -1),
    ("cost_usd", float("inf")),
    ("cost_usd", 1e110),
    ("model", 5),
    ("finish", {"reason": "stop"}),
    ("truncated", "no"),
    ("passed", 1),
    ("status", "fine"),
    ("status", ["ok"]),
    ("tool_calls", 5),
    ("tool_calls", [{"id": "1", "name": "f", "arguments": 5}]),
    ("tool_calls", [{"id": "1", "name": "f", "arguments": {"a": {1}}}]),
    ("tool_calls", [{"id": 1, "name": "f", "arguments": {}}]),
    ("tool_calls", [{"arguments": {}}]),
    ("tool_calls", ["f"]),
    ("logprobs", [("4",)]),
    ("logprobs", [("4", "high")]),
    ("logprobs", 0.5),
    ("work", {"made": {1, 2}}),
    ("work", "none"),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_field_of_another_type_is_named(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=name):
        Reply.of({"text": "4", name: value})


def test_a_tool_call_needs_no_more_than_its_name() -> None:
    calls = [
        {"name": "f", "arguments": {"a": "ä"}},
        {"name": "g", "arguments": "{}"},
        {"name": "h"},
    ]
    made = Reply.of({"text": "", "tool_calls": calls}).tool_calls
    assert [(c.id, c.name, c.arguments) for c in made] == [
        ("1", "f", '{"a": "ä"}'),
        ("2", "g", "{}"),
        ("3", "h", "{}"),
    ]


def test_settings_that_no_wire_knows_go_as_they_are() -> None:
    made = Settings.from_suite({"top_p": 0.5, "top_k": 3, "extra": {"user": "u"}})
    assert (made.top_p, made.extra) == (0.5, {"user": "u", "top_k": 3})
