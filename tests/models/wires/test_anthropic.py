"""Anthropic's format, on saved responses in the documented shapes."""

import pytest
from anthropic.types import OutputConfigParam, ThinkingConfigParam
from pydantic import TypeAdapter

from models.saved import SCHEMA, WEATHER, ask, conversation, saved
from pennyweight.errors import UsageError
from pennyweight.models.failure import CallError
from pennyweight.models.model import Usage
from pennyweight.models.wires import anthropic


def test_thinking_text_and_usage() -> None:
    reply = anthropic.decode(saved("anthropic_thinking"), 3.0)
    assert reply.text == "The answer is 4."
    assert reply.reasoning == "The sum of two and two."
    assert reply.usage == Usage(309, 93, 188, 60, 100)
    assert reply.finish == "end_turn"
    assert reply.latency_ms == 3.0


def test_tool_calls() -> None:
    reply = anthropic.decode(saved("anthropic_tools"))
    assert reply.text == "I will look."
    assert reply.tool_calls[0].parsed() == {"location": "Zürich"}
    assert reply.usage == Usage(472, 91, None, None)


def test_refusal_and_truncation() -> None:
    assert anthropic.decode(saved("anthropic_refusal")).refused
    cut = anthropic.decode(saved("anthropic_truncated"))
    assert cut.truncated
    assert not cut.refused


@pytest.mark.parametrize(
    "body",
    [{}, {"content": None}, {"content": "4"}, {"content": [4]}, {"content": [{"type": "text"}]}],
)
def test_a_wrong_shape_is_malformed(body: object) -> None:
    with pytest.raises(CallError) as caught:
        anthropic.decode(body)
    assert caught.value.kind == "malformed"


def test_no_usage_is_none_and_not_zero() -> None:
    assert anthropic.decode({"content": []}).usage == Usage()


def test_settings_are_written() -> None:
    request = ask(temperature=1, max_tokens=9000, stop=["END"], tools=[WEATHER], schema=SCHEMA)
    path, body = anthropic.encode("claude", request)
    assert path == "/v1/messages"
    assert body == {
        "model": "claude",
        "max_tokens": 9000,
        "messages": [{"role": "user", "content": "What is 2+2?"}],
        "temperature": 1,
        "stop_sequences": ["END"],
        "tools": [
            {
                "name": "get_weather",
                "description": "The weather in a place.",
                "input_schema": WEATHER["parameters"],
            }
        ],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    }


@pytest.mark.parametrize(
    ("thinking", "expected", "limit"),
    [
        (2048, {"type": "enabled", "budget_tokens": 2048}, 6144),
        (0, {"type": "disabled"}, 4096),
        ("high", {"type": "adaptive", "display": "summarized"}, 4096),
    ],
)
def test_thinking(thinking: int | str, expected: dict[str, object], limit: int) -> None:
    body = anthropic.encode("claude", ask(thinking=thinking))[1]
    assert body["thinking"] == expected
    assert body["max_tokens"] == limit
    assert body.get("output_config") == ({"effort": "high"} if thinking == "high" else None)


REFUSED = {
    ("claude-opus-4-7", 2048): "takes only levels",
    ("claude-sonnet-5-5", 2048): "takes only levels",
    ("us.anthropic.claude-mythos-preview", 2048): "takes only levels",
    ("claude-sonnet-4-5-20250929", "low"): "takes only budgets",
    ("claude-3-7-sonnet-20250219", "low"): "takes only budgets",
    ("claude-opus-5-5", 0): "always thinks",
    ("claude-fable-5", 0): "always thinks",
}


@pytest.mark.parametrize(("model", "thinking"), REFUSED)
def test_what_a_model_is_documented_to_refuse_is_told_before_a_call(
    model: str, thinking: int | str
) -> None:
    with pytest.raises(UsageError, match=REFUSED[model, thinking]) as caught:
        anthropic.encode(model, ask(thinking=thinking))
    assert f"thinking: {thinking}" in str(caught.value)
    assert model in str(caught.value)


@pytest.mark.parametrize(
    ("model", "thinking", "kind"),
    [
        ("claude-opus-4-5-20251101", 2048, "enabled"),
        ("claude-haiku-4-5", 0, "disabled"),
        ("claude-opus-4-6", 2048, "enabled"),
        ("claude-opus-4-6", "high", "adaptive"),
        ("claude-opus-4-7", "xhigh", "adaptive"),
        ("claude-opus-5", 0, "disabled"),
        ("claude-sonnet-5-5", 0, "between_tools"),
        ("claude-opus-latest", 2048, "enabled"),
        ("claude-opus-latest", "low", "adaptive"),
        ("ours", 2048, "enabled"),
    ],
)
def test_thinking_as_the_model_takes_it(model: str, thinking: int | str, kind: str) -> None:
    body = anthropic.encode(model, ask(thinking=thinking))[1]
    assert body["thinking"]["type"] == kind
    TypeAdapter(ThinkingConfigParam).validate_python(body["thinking"])
    TypeAdapter(OutputConfigParam).validate_python(body.get("output_config", {}))


def test_a_conversation_with_tools_is_written() -> None:
    body = anthropic.encode("claude", conversation())[1]
    assert body["system"] == "Be brief."
    user, assistant, results = body["messages"]
    assert user == {"role": "user", "content": "Weather?"}
    assert [b["type"] for b in assistant["content"]] == ["tool_use", "tool_use"]
    assert assistant["content"][0]["input"] == {"location": "Oslo"}
    assert results["role"] == "user"
    assert [b["tool_use_id"] for b in results["content"]] == ["c1", "c2"]


@pytest.mark.parametrize(
    ("status", "word", "kind"),
    [
        (401, "authentication_error", "auth"),
        (429, "rate_limit_error", "rate_limit"),
        (529, "overloaded_error", "server"),
        (400, "invalid_request_error", "bad_request"),
        (413, "request_too_large", "too_large"),
    ],
)
def test_errors(status: int, word: str, kind: str) -> None:
    body = f'{{"type": "error", "error": {{"type": "{word}", "message": "no"}}}}'
    error = anthropic.error(status, {"retry-after": "7"}, body.encode())
    assert (error.kind, error.retry_after) == (kind, 7.0)


@pytest.mark.parametrize("wrong", [7, ["end_turn"], {"a": 1}, True, None])
def test_a_word_that_is_no_word_is_none(wrong: object) -> None:
    content = [{"type": "text", "text": "4"}]
    reply = anthropic.decode({"content": content, "model": wrong, "stop_reason": wrong})
    assert (reply.text, reply.model, reply.finish) == ("4", None, None)


def test_a_malformed_reply_that_was_paid_is_not_bought_again() -> None:
    usage = {"input_tokens": 5, "output_tokens": 9, "output_tokens_details": 7}
    with pytest.raises(CallError) as caught:
        anthropic.decode({"content": "4", "usage": usage})
    assert (caught.value.kind, caught.value.retryable) == ("malformed", False)
    assert caught.value.usage == Usage(5, 9)


def test_what_an_error_cost_is_kept_and_it_may_be_tried_again() -> None:
    usage = {"input_tokens": 5, "output_tokens": 9}
    with pytest.raises(CallError) as caught:
        anthropic.decode({"type": "error", "error": {"type": "overloaded_error"}, "usage": usage})
    assert (caught.value.usage, caught.value.retryable) == (Usage(5, 9), True)
