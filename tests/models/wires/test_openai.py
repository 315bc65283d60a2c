"""OpenAI's format, on saved responses in the documented shapes."""

from typing import Any

import pytest

from models.saved import SCHEMA, WEATHER, ask, conversation, saved
from pennyweight.errors import UsageError
from pennyweight.models.failure import CallError
from pennyweight.models.model import Usage
from pennyweight.models.wires import openai


def test_a_plain_reply() -> None:
    reply = openai.decode(saved("openai_plain"), 12.5)
    assert reply.text == "4"
    assert reply.reasoning is None
    assert reply.usage == Usage(19, 10, 8, 6)
    assert reply.logprobs == (("4", -0.01),)
    assert reply.finish == "stop"
    assert reply.model == "gpt-4.1-2025-04-14"
    assert reply.latency_ms == 12.5
    assert not reply.truncated
    assert not reply.refused


def test_tool_calls_keep_what_the_model_wrote() -> None:
    (call,) = openai.decode(saved("openai_tools")).tool_calls
    assert (call.id, call.name) == ("call_abc123", "get_weather")
    assert call.arguments == '{\n"location": "Boston, MA"\n}'
    assert call.parsed() == {"location": "Boston, MA"}


def test_broken_arguments_are_not_hidden() -> None:
    body = saved("openai_tools")
    body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = '{"location": '
    (call,) = openai.decode(body).tool_calls
    assert call.parsed() is None


@pytest.mark.parametrize(
    ("name", "text", "reasoning"),
    [
        ("deepseek_reasoning", "9.8 is", "Compare the tenths."),
        ("openrouter_reasoning", "4", "two and two"),
        ("mistral_parts", "The sum is 4.", "Add them."),
        ("think_tags", "4", "2+2"),
    ],
)
def test_reasoning_is_kept_apart(name: str, text: str, reasoning: str) -> None:
    reply = openai.decode(saved(name))
    assert (reply.text, reply.reasoning) == (text, reasoning)


def test_a_cut_response_says_so() -> None:
    reply = openai.decode(saved("deepseek_reasoning"))
    assert reply.truncated
    assert reply.usage == Usage(16, 40, 4, 36)


def test_reasoning_counted_beside_the_completion_is_added() -> None:
    assert openai.decode(saved("grok_reasoning")).usage == Usage(37, 763, 0, 233)


def test_refusals() -> None:
    refusal = openai.decode(saved("openai_refusal"))
    assert refusal.refused
    assert refusal.text.startswith("I'm sorry")
    assert openai.decode(saved("openai_filtered")).refused


def test_no_usage_is_none_and_not_zero() -> None:
    assert openai.decode(saved("think_tags")).usage == Usage(None, None, None, None)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": None},
        {"choices": [{}]},
        {"choices": [{"message": {}}]},
        {"choices": [{"message": {"content": None}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": 4}}]},
        {"choices": [{"message": {"content": [7]}}]},
        {"choices": "no"},
        {"choices": [{"message": {"content": "4", "tool_calls": [{}]}}]},
    ],
)
def test_a_wrong_shape_is_malformed(body: object) -> None:
    with pytest.raises(CallError) as caught:
        openai.decode(body)
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize("wrong", [7, ["stop"], {"a": 1}, True, None])
def test_a_word_that_is_no_word_is_none(wrong: object) -> None:
    body = saved("openai_plain")
    body["model"] = body["choices"][0]["finish_reason"] = wrong
    reply = openai.decode(body)
    assert (reply.text, reply.model, reply.finish) == ("4", None, None)


def test_what_is_nested_too_deep_is_malformed() -> None:
    deep: object = "x"
    for _ in range(5000):
        deep = [{"type": "thinking", "thinking": deep}]
    body = {"choices": [{"message": {"content": deep}}]}
    with pytest.raises(CallError) as caught:
        openai.decode(body)
    assert caught.value.kind == "malformed"
    assert caught.value.retryable


def test_a_malformed_reply_that_was_paid_is_not_bought_again() -> None:
    body = {"choices": [{"message": {}}], "usage": {"prompt_tokens": 5, "completion_tokens": 9}}
    with pytest.raises(CallError) as caught:
        openai.decode(body)
    assert (caught.value.kind, caught.value.retryable) == ("malformed", False)
    assert caught.value.usage == Usage(5, 9)
    for usage in (None, {}, 5, {"prompt_tokens": 0, "completion_tokens": 0}):
        with pytest.raises(CallError) as caught:
            openai.decode({**body, "usage": usage})
        assert caught.value.retryable
        assert caught.value.usage is None


def test_a_response_cut_before_its_first_word_is_empty() -> None:
    choice = {"finish_reason": "length", "message": {"role": "assistant"}}
    reply = openai.decode({"choices": [choice], "usage": {"prompt_tokens": 5}})
    assert (reply.text, reply.truncated) == ("", True)
    choice["finish_reason"] = "content_filter"
    assert openai.decode({"choices": [choice]}).refused


def test_an_error_in_a_successful_response_is_an_error() -> None:
    with pytest.raises(CallError) as caught:
        openai.decode(saved("openrouter_error"))
    assert caught.value.kind == "rate_limit"
    assert caught.value.retryable


@pytest.mark.parametrize(
    "failed",
    [
        {"choices": [{"finish_reason": "error", "error": {"code": 502, "message": "upstream"}}]},
        {"choices": [{"finish_reason": "error", "message": {"content": "half an ans"}}]},
        {"error": {"code": 429, "message": "slow down"}},
    ],
)
def test_what_an_error_cost_is_kept_and_it_may_be_tried_again(failed: dict[str, Any]) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 500}
    with pytest.raises(CallError) as caught:
        openai.decode({**failed, "usage": usage})
    assert (caught.value.usage, caught.value.retryable) == (Usage(1000, 500), True)
    with pytest.raises(CallError) as caught:
        openai.decode(failed)
    assert (caught.value.usage, caught.value.retryable) == (None, True)


def test_a_number_that_is_none_of_tokens_is_none() -> None:
    body = saved("openai_plain")
    body["usage"] = {"prompt_tokens": 2**53, "completion_tokens": 2**40}
    assert openai.decode(body).usage == Usage(None, 2**40)


def test_half_a_character_does_not_break_the_record() -> None:
    body = saved("openai_plain")
    body["choices"][0]["message"]["content"] = "4 \ud83d"
    openai.decode(body).text.encode()


def test_settings_are_written() -> None:
    request = ask(
        temperature=0, top_p=0.9, max_tokens=7, stop="END", seed=3, logprobs=True,
        tools=[WEATHER], schema=SCHEMA, thinking="low", extra={"user": "u"},
    )  # fmt: skip
    path, body = openai.encode("m", request)
    assert path == "/chat/completions"
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "What is 2+2?"}],
        "temperature": 0,
        "top_p": 0.9,
        "max_tokens": 7,
        "stop": ["END"],
        "seed": 3,
        "logprobs": True,
        "top_logprobs": 1,
        "tools": [{"type": "function", "function": WEATHER}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "output", "strict": True, "schema": SCHEMA},
        },
        "reasoning_effort": "low",
        "user": "u",
    }
    assert openai.encode("o", ask(max_tokens=7), "max_completion_tokens")[1] == {
        "model": "o",
        "messages": [{"role": "user", "content": "What is 2+2?"}],
        "max_completion_tokens": 7,
    }


def test_a_conversation_with_tools_is_written() -> None:
    messages = openai.encode("m", conversation())[1]["messages"]
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "tool", "tool"]
    assert messages[2]["tool_calls"][0]["function"]["name"] == "get_weather"
    assert messages[3] == {"role": "tool", "content": "cold", "tool_call_id": "c1"}


def test_a_budget_of_thoughts_is_refused_with_advice() -> None:
    with pytest.raises(UsageError, match="have only levels"):
        openai.encode("m", ask(thinking=1024))


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, b'{"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}', "auth"),
        (429, b'{"error": {"message": "Slow down", "code": "rate_limit_exceeded"}}', "rate_limit"),
        (429, b'{"error": {"message": "Pay", "code": "insufficient_quota"}}', "quota"),
        (429, b'{"error": {"message": "too many tokens a minute"}}', "rate_limit"),
        (400, b'{"error": {"message": "x", "code": "context_length_exceeded"}}', "too_large"),
        (400, b'{"error": {"message": "x", "type": "exceed_context_size_error"}}', "too_large"),
        (400, b'{"error": {"message": "x", "code": "content_filter"}}', "content_filter"),
        (400, b'{"error": "no such parameter"}', "bad_request"),
        (404, b'{"detail": "Not Found"}', "not_found"),
        (402, b"", "quota"),
        (413, b"<html>", "too_large"),
        (500, b"<html>oops</html>", "server"),
        (503, b'[{"error": {"message": "busy"}}]', "server"),
    ],
)
def test_errors(status: int, body: bytes, kind: str) -> None:
    error = openai.error(status, {}, body)
    assert (error.kind, error.status) == (kind, status)
    assert f"HTTP {status}" in str(error)
    assert error.retryable is (kind in {"rate_limit", "server"})
