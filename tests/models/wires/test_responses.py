"""OpenAI's responses format: saved replies, and the official package on the same server."""

import asyncio
from typing import Any

import openai as official
import pytest
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

from models.hostile import response, serve
from models.saved import DATA, SCHEMA, WEATHER, ask, conversation, saved
from pennyweight.errors import UsageError
from pennyweight.models.failure import CallError
from pennyweight.models.local import serving
from pennyweight.models.model import Reply, Usage
from pennyweight.models.providers import find
from pennyweight.models.wires import responses

SAVED = sorted(path.stem for path in DATA.glob("responses_*.json"))


@pytest.mark.parametrize("name", SAVED)
def test_saved_replies_are_what_the_official_package_declares(name: str) -> None:
    assert Response.model_validate(saved(name), strict=True).id == "resp_1"


def test_reasoning_text_usage_and_logprobs() -> None:
    reply = responses.decode(saved("responses_reasoning"), 3.0)
    assert reply.text == "The answer is 4."
    assert reply.reasoning == "Two and two.\n\nThat is four."
    assert reply.usage == Usage(75, 186, 64, 128, 0)
    assert (reply.finish, reply.model) == ("completed", "gpt-5.1-2025-11-13")
    assert reply.logprobs == (("The", -0.25), (" answer", -0.5))
    assert (reply.truncated, reply.refused, reply.latency_ms) == (False, False, 3.0)


def test_thoughts_that_a_server_shows_in_full() -> None:
    assert responses.decode(saved("responses_open")).reasoning == "2+2 is 4."


def test_tool_calls() -> None:
    reply = responses.decode(saved("responses_tools"))
    assert (reply.text, reply.reasoning) == ("I will look.", None)
    (call,) = reply.tool_calls
    assert (call.id, call.name, call.parsed()) == ("call_1", "get_weather", {"location": "Zürich"})


def test_refusal_and_truncation() -> None:
    refusal = responses.decode(saved("responses_refusal"))
    assert (refusal.text, refusal.refused) == ("I cannot help with that.", True)
    cut = responses.decode(saved("responses_truncated"))
    assert (cut.text, cut.truncated, cut.refused) == ("", True, False)
    assert (cut.finish, cut.usage.reasoning_tokens) == ("max_output_tokens", 64)
    filtered = responses.decode(saved("responses_filtered"))
    assert (filtered.text, filtered.truncated, filtered.refused) == ("It is", False, True)


@pytest.mark.parametrize(
    ("code", "kind", "again"),
    [("server_error", "server", True), ("rate_limit_exceeded", "rate_limit", True),
     ("invalid_prompt", "bad_request", False), (7, "bad_request", False)],
)  # fmt: skip
def test_a_response_that_failed_is_an_error_with_its_cost(
    code: Any, kind: str, again: bool
) -> None:
    body = saved("responses_failed") | {"error": {"code": code, "message": "It failed."}}
    with pytest.raises(CallError, match="It failed") as caught:
        responses.decode(body)
    assert (caught.value.kind, caught.value.retryable) == (kind, again)
    assert caught.value.usage == Usage(75, 12, 0, 0, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"output": None},
        {"output": []},
        {"output": "4"},
        {"output": [{}]},
        {"output": [{"type": "message"}]},
        {"output": [{"type": "message", "content": [{"type": "output_text", "text": 4}]}]},
        {"status": "in_progress"},
        {"status": None},
    ],
)
def test_a_wrong_shape_is_malformed_and_not_bought_again(change: dict[str, Any]) -> None:
    with pytest.raises(CallError) as caught:
        responses.decode(saved("responses_reasoning") | change)
    assert (caught.value.kind, caught.value.retryable) == ("malformed", False)
    assert caught.value.usage == Usage(75, 186, 64, 128, 0)


def test_no_usage_is_none_and_not_zero() -> None:
    assert responses.decode(saved("responses_open") | {"usage": None}).usage == Usage()


def test_settings_are_written() -> None:
    request = ask(temperature=1, max_tokens=90, logprobs=True, tools=[WEATHER], schema=SCHEMA)
    path, body = responses.encode("gpt", request)
    assert path == "/responses"
    assert body == {
        "model": "gpt",
        "input": [{"role": "user", "content": "What is 2+2?"}],
        "store": False,
        "temperature": 1,
        "max_output_tokens": 90,
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 1,
        "tools": [{"type": "function", "strict": False, **WEATHER}],
        "text": {
            "format": {"type": "json_schema", "name": "output", "strict": True, "schema": SCHEMA}
        },
    }


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [
        ("high", {"effort": "high", "summary": "auto"}),
        ("xhigh", {"effort": "xhigh", "summary": "auto"}),
        (0, {"effort": "none"}),
        (None, None),
    ],
)
def test_thinking(thinking: int | str | None, expected: dict[str, str] | None) -> None:
    assert responses.encode("gpt", ask(thinking=thinking))[1].get("reasoning") == expected


def test_a_budget_in_tokens_cannot_be_sent() -> None:
    with pytest.raises(UsageError, match="thinking: 2000 is a budget in tokens"):
        responses.encode("gpt", ask(thinking=2000))


def test_what_is_extra_wins() -> None:
    body = responses.encode("gpt", ask(thinking="low", extra={"reasoning": {"effort": "low"}}))[1]
    assert body["reasoning"] == {"effort": "low"}


def test_a_conversation_with_tools_is_written() -> None:
    items = responses.encode("gpt", conversation())[1]["input"]
    system, user, first, _, answered, _ = items
    assert (system["role"], user["role"]) == ("system", "user")
    assert first == {
        "type": "function_call",
        "call_id": "c1",
        "name": "get_weather",
        "arguments": '{"location": "Oslo"}',
    }
    assert answered == {"type": "function_call_output", "call_id": "c1", "output": "cold"}


@pytest.mark.parametrize(
    "request_",
    [
        ask(temperature=1, max_tokens=90, logprobs=True, tools=[WEATHER], schema=SCHEMA),
        ask(thinking="minimal"),
        conversation(tools=[WEATHER]),
    ],
    ids=["settings", "thinking", "conversation"],
)
def test_requests_are_what_the_official_package_declares(request_: Any) -> None:
    body = responses.encode("gpt", request_)[1]
    declared = TypeAdapter(ResponseCreateParamsNonStreaming)
    declared.validate_python(body)
    assert set(body) <= set(ResponseCreateParamsNonStreaming.__annotations__) | _INHERITED


_INHERITED = {
    name
    for base in ResponseCreateParamsNonStreaming.__orig_bases__
    for name in base.__annotations__
}


@pytest.mark.parametrize("name", [name for name in SAVED if name != "responses_failed"])
def test_the_official_package_reads_the_same_from_the_same_server(name: str) -> None:
    async def both() -> tuple[Any, Reply, list[bytes]]:
        async with serve(response(saved(name))) as (address, seen):
            async with official.AsyncOpenAI(base_url=address, api_key="k", max_retries=0) as client:
                theirs = await client.responses.create(
                    model="m", input=[{"role": "user", "content": "What is 2+2?"}], store=False,
                    reasoning={"effort": "low", "summary": "auto"}, max_output_tokens=64,
                )  # fmt: skip
            model = find("openai-responses/m", base_url=address)
            ours = await model.call(ask(thinking="low", max_tokens=64))
            await model.close()
            return theirs, ours, seen

    theirs, ours, seen = asyncio.run(both())
    sent = [request.partition(b"\r\n\r\n") for request in seen]
    assert sent[0][0].split(b"\r\n")[0] == sent[1][0].split(b"\r\n")[0]
    assert TypeAdapter(dict).validate_json(sent[0][2]) == TypeAdapter(dict).validate_json(
        sent[1][2]
    )
    if not ours.refused:
        assert theirs.output_text == ours.text
    assert theirs.usage.output_tokens == ours.usage.completion_tokens
    details = theirs.usage.output_tokens_details
    assert details.reasoning_tokens == ours.usage.reasoning_tokens
    assert theirs.usage.input_tokens_details.cached_tokens == ours.usage.cached_tokens
    assert (theirs.status == "incomplete") == (ours.truncated or ours.finish == "content_filter")


@pytest.mark.usefixtures("local_model")
def test_a_real_server_answers_us_and_the_official_package_alike() -> None:
    async def both() -> tuple[Any, Reply, Reply]:
        async with serving("smollm2-135m", 2, 1024) as address:
            async with official.AsyncOpenAI(base_url=f"{address}/v1", api_key="k") as client:
                theirs = await client.responses.create(
                    model="m", input="What is 2+2?", temperature=0, max_output_tokens=12
                )
            model = find("openai-responses/m", base_url=f"{address}/v1")
            ours = await model.call(ask(temperature=0, max_tokens=12))
            streamed = await model.call(ask(temperature=0, max_tokens=12, stream=True))
            await model.close()
            return theirs, ours, streamed

    theirs, ours, streamed = asyncio.run(both())
    assert theirs.output_text == ours.text == streamed.text != ""
    assert theirs.usage.output_tokens == ours.usage.completion_tokens
    assert streamed.usage.completion_tokens == ours.usage.completion_tokens
    assert streamed.ttft_ms is not None
