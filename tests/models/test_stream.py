"""Streamed replies: the same as unstreamed ones, and hostile streams end in the usual errors."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import anthropic
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pennyweight
from models.hostile import GOOD, Behaviour, in_a_thread, response, serve
from models.saved import DATA, ask, saved
from models.streams import EVENTS, openai_events, streaming, written
from pennyweight.models.failure import CallError
from pennyweight.models.model import Reply, Request
from pennyweight.models.providers import find
from pennyweight.models.stream import EventStream
from pennyweight.models.wires.openai import StreamedChat

KEY = "sk-live-4f9a8b7c6d5e4f3a2b1c"
GOOD_PARTS = written(openai_events(GOOD))


def wire_of(name: str) -> str:
    wires = {"anthropic": "anthropic", "google": "google", "responses": "openai-responses"}
    return wires.get(name.partition("_")[0], "openai")


def outcome(behaviour: Behaviour, wire: str, request: Request, **settings: Any) -> Any:
    """Call once: the reply without its times, or the error's kind and text."""

    async def call() -> Reply:
        async with serve(behaviour) as (address, _):
            model = find(f"{wire}/m", base_url=address, key_env="OUR_KEY", **settings)
            try:
                return await model.call(request)
            finally:
                await model.close()

    try:
        return replace(asyncio.run(call()), latency_ms=None, ttft_ms=None)
    except CallError as wrong:
        return wrong.kind, str(wrong)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_KEY", KEY)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("*.json")))
def test_a_streamed_reply_is_the_unstreamed_one(name: str, end: bytes) -> None:
    wire, body = wire_of(name), saved(name)
    plain = outcome(response(body), wire, ask())
    parts = written(EVENTS[wire](body), end)
    assert outcome(streaming(parts), wire, ask(stream=True)) == plain


@given(st.data())
def test_where_the_network_cuts_a_stream_does_not_matter(data: st.DataObject) -> None:
    whole = b"".join(written(openai_events(saved("openai_tools")), b"\r\n"))
    stream = EventStream(StreamedChat())
    while whole:
        size = data.draw(st.integers(1, 400))
        stream.feed(whole[:size])
        whole = whole[size:]
    call = stream.finish("")["choices"][0]["message"]["tool_calls"][0]["function"]
    assert call["arguments"] == '{\n"location": "Boston, MA"\n}'


def test_the_time_of_the_first_token_is_that_of_the_first_output() -> None:
    """A role, a ping and an empty text are no output."""

    async def call() -> Reply:
        async with serve(streaming(GOOD_PARTS, pause=0.2)) as (address, seen):
            model = find("openai/m", base_url=address)
            reply = await model.call(ask(stream=True))
            await model.close()
        sent = json.loads(seen[0].split(b"\r\n\r\n", 1)[1])
        assert sent["stream"] is True
        assert sent["stream_options"] == {"include_usage": True}
        return reply

    reply = asyncio.run(call())
    assert reply.ttft_ms is not None
    assert reply.latency_ms is not None
    assert 190 < reply.ttft_ms <= reply.latency_ms


def test_a_server_that_does_not_stream_is_still_understood() -> None:
    assert outcome(response(), "openai", ask(stream=True)).text == "4"


def test_stream_options_can_be_left_out() -> None:
    model = find("openai/m", base_url="http://127.0.0.1:9")
    _, body = model.encode(ask(stream=True, extra={"stream_options": None})) or ("", {})
    assert body["stream"] is True
    assert "stream_options" not in body
    assert "stream" not in (model.encode(ask()) or ("", {}))[1]


def test_a_key_in_pieces_is_removed() -> None:
    message = {"role": "assistant", "content": f"Your key is {KEY}."}
    body = GOOD | {"choices": [{"message": message, "finish_reason": "stop"}]}
    reply = outcome(streaming(written(openai_events(body))), "openai", ask(stream=True))
    assert KEY not in reply.text
    assert reply.text.startswith("Your key is ")


ERROR = {"error": {"message": "overloaded", "type": "server_error", "code": 503}}
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
BROKEN = [b'data: {"choices": [\n\n']
LATIN = ['data: {"choices": [{"delta": {"content": "é"}}]}\n\n'.encode("latin-1")]
NO_SHAPE = [b'data: {"choices": [{"delta": {"tool_calls": [{"index": []}]}}]}\n\n']
PAGE = [b"<html><body>Sign in</body></html>"]


@pytest.mark.parametrize(
    ("behaviour", "wire", "kind", "says"),
    [
        (streaming(GOOD_PARTS[:3]), "openai", "connection", "ended before the reply did"),
        (streaming(GOOD_PARTS[:3], cut_off=True), "openai", "connection", "broke off"),
        (streaming(BROKEN), "openai", "malformed", "no JSON object"),
        (streaming(GOOD_PARTS[:3] + LATIN), "openai", "malformed", "no JSON object"),
        (streaming(NO_SHAPE), "openai", "malformed", "documented shape"),
        (streaming([b"data: [1]\n\n"]), "openai", "malformed", "no JSON object"),
        (streaming(PAGE), "openai", "malformed", "not a stream of events"),
        (streaming([]), "openai", "malformed", "not a stream of events"),
        (streaming([b"data: [DONE]\n\n"]), "openai", "malformed", "no choices"),
        (streaming(written(iter([ERROR]))), "openai", "server", "overloaded"),
        (streaming(written(iter([OVERLOADED]))), "anthropic", "server", "Overloaded"),
        (streaming(GOOD_PARTS[:3] + written(iter([ERROR]))), "openai", "connection", "overloaded"),
        (response(ERROR, 429), "openai", "rate_limit", "overloaded"),
        (response({"error": {"code": 403, "message": "no"}}, 403), "google", "auth", "no"),
    ],
)
def test_a_hostile_stream_ends_in_the_usual_error(
    behaviour: Behaviour, wire: str, kind: str, says: str
) -> None:
    """An error after the first output may have been charged, as a connection that broke off."""
    found = outcome(behaviour, wire, ask(stream=True), timeout=5.0)
    assert found[0] == kind, found
    assert says in found[1]
    assert KEY not in found[1]


def endless(part: bytes) -> Behaviour:
    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        while True:
            writer.write(part)
            await writer.drain()

    return say


DELTA = json.dumps({"choices": [{"index": 0, "delta": {"content": "x" * 60_000}}]}).encode()


@pytest.mark.parametrize(
    "part",
    [b"data: " + DELTA + b"\n\n", b"data: " + DELTA + b"\n", b": ping\n" * 9999, b"x" * 9999],
    ids=["text", "one event", "comments", "one line"],
)
def test_an_endless_stream_is_given_up_at_a_size(part: bytes) -> None:
    kind, _ = outcome(endless(part), "openai", ask(stream=True, max_tokens=10), timeout=20.0)
    assert kind == "too_large"


def test_a_stream_that_never_ends_is_given_up_at_the_timeout() -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        while True:
            writer.write(GOOD_PARTS[2])
            await writer.drain()
            await asyncio.sleep(0.02)

    assert outcome(drip, "openai", ask(stream=True), timeout=0.3)[0] == "timeout"


def _pieces(name: str) -> Iterator[bytes]:
    yield from written(EVENTS[wire_of(name)](saved(name)))


def test_openai_reads_the_streams_of_these_tests_alike() -> None:
    async def final(name: str) -> Any:
        async with serve(streaming(list(_pieces(name)))) as (address, _):
            client = openai.AsyncOpenAI(base_url=address, api_key=KEY, max_retries=0)
            async with client.chat.completions.stream(
                model="m", messages=[{"role": "user", "content": "?"}]
            ) as stream:
                whole = await stream.get_final_completion()
            await client.close()
        return whole

    for name in ("openai_plain", "openai_tools", "openai_refusal", "think_tags"):
        whole = asyncio.run(final(name))
        ours = outcome(streaming(list(_pieces(name))), "openai", ask(stream=True))
        message = whole.choices[0].message
        assert (message.content or message.refusal or "").endswith(ours.text)
        assert whole.choices[0].finish_reason == ours.finish
        assert [c.function.arguments for c in message.tool_calls or ()] == [
            c.arguments for c in ours.tool_calls
        ]
        assert (whole.usage and whole.usage.completion_tokens) == ours.usage.completion_tokens


def test_openai_reads_the_streamed_responses_of_these_tests_alike() -> None:
    async def final(name: str) -> Any:
        async with serve(streaming(list(_pieces(name)))) as (address, _):
            client = openai.AsyncOpenAI(base_url=address, api_key=KEY, max_retries=0)
            async with client.responses.stream(model="m", input="?") as stream:
                whole = await stream.get_final_response()
            await client.close()
        return whole

    for name in ("responses_reasoning", "responses_tools", "responses_open"):
        whole = asyncio.run(final(name))
        ours = outcome(streaming(list(_pieces(name))), "openai-responses", ask(stream=True))
        assert (whole.output_text, whole.model) == (ours.text, ours.model)
        calls = [i.arguments for i in whole.output if i.type == "function_call"]
        assert calls == [c.arguments for c in ours.tool_calls]
        assert whole.usage.output_tokens == ours.usage.completion_tokens


def test_anthropic_reads_the_streams_of_these_tests_alike() -> None:
    async def final(name: str) -> Any:
        async with serve(streaming(list(_pieces(name)))) as (address, _):
            client = anthropic.AsyncAnthropic(base_url=address, api_key=KEY, max_retries=0)
            async with client.messages.stream(
                model="m", max_tokens=9, messages=[{"role": "user", "content": "?"}]
            ) as stream:
                whole = await stream.get_final_message()
            await client.close()
        return whole

    for name in ("anthropic_thinking", "anthropic_tools", "anthropic_truncated"):
        whole = asyncio.run(final(name))
        ours = outcome(streaming(list(_pieces(name))), "anthropic", ask(stream=True))
        assert "".join(b.text for b in whole.content if b.type == "text") == ours.text
        inputs = [b.input for b in whole.content if b.type == "tool_use"]
        assert inputs == [json.loads(c.arguments) for c in ours.tool_calls]
        assert whole.stop_reason == ours.finish
        assert whole.usage.output_tokens == ours.usage.completion_tokens


def test_a_run_stores_the_time_and_costs_the_same(tmp_path: Any) -> None:
    body = saved("openai_plain") | {"choices": GOOD["choices"]}
    answers = {"plain": response(body), "streamed": streaming(written(openai_events(body)))}
    with in_a_thread(answers) as servers:
        subjects = [
            {"name": name, "model": "openai/m", "base_url": servers[name][0], "stream": streamed}
            for name, streamed in (("plain", False), ("streamed", True))
        ]
        suite = {
            "suite": "sums",
            "tasks": [{"input": "2+2?", "target": "4"}],
            "answer": "last_line",
            "subjects": subjects,
            "prices": {"openai/m": {"input": 1, "output": 10, "cached_input": 0.1}},
        }
        run = pennyweight.run(suite, store=str(tmp_path / "runs.db"))
    rows = {row["subject"]: row for row in run.records().to_dicts()}
    columns = ("response", "prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")
    plain, streamed = ([rows[n][c] for c in columns] for n in ("plain", "streamed"))
    assert plain == streamed
    assert plain[-1] is not None
    assert rows["plain"]["ttft_ms"] is None
    assert 0 < rows["streamed"]["ttft_ms"] <= rows["streamed"]["latency_ms"]
    assert run.scores(by="subject")["streamed"]["ttft_p50_ms"].value == rows["streamed"]["ttft_ms"]
