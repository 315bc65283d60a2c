"""Gemini's format, on saved responses in the documented shapes."""

import json

import pytest

from models.saved import SCHEMA, WEATHER, ask, conversation, saved
from pennyweight.models.failure import CallError
from pennyweight.models.model import Usage
from pennyweight.models.wires import google


def test_thoughts_text_usage_and_logprobs() -> None:
    reply = google.decode(saved("google_thinking"), 3.0)
    assert reply.text == "The sum is 4."
    assert reply.reasoning == "Adding them up."
    assert reply.usage == Usage(15, 46, 5, 40)
    assert reply.logprobs == (("The", -0.25), (" sum", -0.5))
    assert reply.model == "gemini-2.5-flash"


def test_tool_calls() -> None:
    (call,) = google.decode(saved("google_tools")).tool_calls
    assert (call.name, call.parsed()) == ("get_weather", {"location": "Oslo"})


def test_cut_while_thinking() -> None:
    reply = google.decode(saved("google_truncated"))
    assert reply.truncated
    assert reply.text == ""
    assert reply.usage == Usage(15, 30, None, 30)


def test_refusals() -> None:
    unsafe, blocked = google.decode(saved("google_unsafe")), google.decode(saved("google_blocked"))
    assert unsafe.refused
    assert unsafe.usage == Usage(9, 0, None, None)
    assert blocked.refused
    assert blocked.finish == "PROHIBITED_CONTENT"


@pytest.mark.parametrize(
    "body",
    [{}, {"candidates": []}, {"candidates": [{}]}, {"candidates": [4]},
     {"candidates": [{"content": {"parts": [{"text": 4}]}}]}],
)  # fmt: skip
def test_a_wrong_shape_is_malformed(body: object) -> None:
    with pytest.raises(CallError) as caught:
        google.decode(body)
    assert caught.value.kind == "malformed"


def test_no_usage_is_none_and_not_zero() -> None:
    body = saved("google_thinking")
    del body["usageMetadata"]
    assert google.decode(body).usage == Usage()


def test_settings_are_written() -> None:
    request = ask(
        temperature=0, top_p=0.9, max_tokens=7, stop="END", seed=3, logprobs=True,
        tools=[WEATHER], schema=SCHEMA, thinking=128,
    )  # fmt: skip
    path, body = google.encode("gemini-2.5-pro", request)
    assert path == "/models/gemini-2.5-pro:generateContent"
    assert body["generationConfig"] == {
        "temperature": 0,
        "topP": 0.9,
        "maxOutputTokens": 7,
        "stopSequences": ["END"],
        "seed": 3,
        "responseLogprobs": True,
        "thinkingConfig": {"thinkingBudget": 128, "includeThoughts": True},
        "responseMimeType": "application/json",
        "responseJsonSchema": SCHEMA,
    }
    (declared,) = body["tools"][0]["functionDeclarations"]
    assert declared["parametersJsonSchema"] == WEATHER["parameters"]
    assert "generationConfig" not in google.encode("g", ask())[1]


def test_a_conversation_with_tools_is_written() -> None:
    body = google.encode("g", conversation())[1]
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    user, model, results = body["contents"]
    assert (user["role"], model["role"], results["role"]) == ("user", "model", "user")
    assert model["parts"][1] == {
        "functionCall": {"name": "get_weather", "args": {"location": "Rome"}}
    }
    assert [p["functionResponse"]["name"] for p in results["parts"]] == ["get_weather"] * 2


def test_the_delay_is_in_the_body() -> None:
    error = google.error(429, {}, json.dumps(saved("google_exhausted")).encode())
    assert (error.kind, error.retry_after) == ("rate_limit", 37.0)


def test_a_wrong_key_is_an_auth_error() -> None:
    body = {"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT",
                      "details": [{"reason": "API_KEY_INVALID"}]}}  # fmt: skip
    assert google.error(400, {}, json.dumps(body).encode()).kind == "auth"


@pytest.mark.parametrize("wrong", [7, ["STOP"], {"a": 1}, True])
def test_a_word_that_is_no_word_is_none(wrong: object) -> None:
    candidate = {"content": {"parts": [{"text": "4"}]}, "finishReason": wrong}
    reply = google.decode({"candidates": [candidate], "modelVersion": wrong})
    assert (reply.text, reply.model, reply.finish) == ("4", None, None)
    blocked = google.decode({"promptFeedback": {"blockReason": wrong}})
    assert (blocked.refused, blocked.finish) == (True, None)


def test_a_malformed_reply_that_was_paid_is_not_bought_again() -> None:
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 9}
    with pytest.raises(CallError) as caught:
        google.decode({"candidates": [{}], "usageMetadata": usage})
    assert (caught.value.kind, caught.value.retryable) == ("malformed", False)
    assert caught.value.usage == Usage(5, 9)


@pytest.mark.parametrize("details", [5, "soon", [7], [{"retryDelay": "²s"}], [{"retryDelay": []}]])
def test_an_error_with_strange_details_is_an_error(details: object) -> None:
    body = json.dumps({"error": {"message": "slow down", "details": details}}).encode()
    assert google.error(429, {}, body).kind == "rate_limit"


def test_what_an_error_cost_is_kept_and_it_may_be_tried_again() -> None:
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 9}
    with pytest.raises(CallError) as caught:
        google.decode({"error": {"code": 503, "message": "overloaded"}, "usageMetadata": usage})
    assert (caught.value.usage, caught.value.retryable) == (Usage(5, 9), True)
