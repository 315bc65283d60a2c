"""Calls to servers that behave badly: each gets the right error, soon, and nothing is invented."""

import asyncio
import json
from typing import Any

import pytest

from models.hostile import (
    GOOD,
    Behaviour,
    endless,
    half_a_head,
    hang,
    no_http,
    reset,
    response,
    serve,
    trickle,
)
from models.saved import ask
from pennyweight.models.failure import CallError
from pennyweight.models.model import Reply, Usage
from pennyweight.models.providers import find
from pennyweight.models.transport import Answer, Transport, parse

KEY = "sk-live-4f9a8b7c6d5e4f3a2b1c"


async def call(behaviour: Behaviour, name: str = "openai/m", timeout: float = 5.0) -> Reply:
    key_env = "OUR_KEY"
    async with serve(behaviour) as (address, _):
        model = find(name, base_url=address, key_env=key_env, timeout=timeout)
        try:
            return await model.call(ask())
        finally:
            await model.close()


def failure(behaviour: Behaviour, name: str = "openai/m", timeout: float = 5.0) -> CallError:
    with pytest.raises(CallError) as caught:
        asyncio.run(call(behaviour, name, timeout))
    assert KEY not in f"{caught.value} {caught.value!r} {vars(caught.value)}"
    return caught.value


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_KEY", KEY)


def test_a_good_answer() -> None:
    reply = asyncio.run(call(response()))
    assert reply.text == "4"
    assert reply.usage == Usage(5, 1)
    assert reply.latency_ms is not None
    assert 0 < reply.latency_ms < 5000


def test_no_usage() -> None:
    body = {k: v for k, v in GOOD.items() if k != "usage"}
    assert asyncio.run(call(response(body))).usage == Usage()


def test_json_under_a_wrong_content_type_is_still_an_answer() -> None:
    assert asyncio.run(call(response(kind="text/plain"))).text == "4"


@pytest.mark.parametrize(("given", "expected"), [({"Retry-After": "2"}, 2.0), ({}, None)])
def test_429(given: dict[str, str], expected: float | None) -> None:
    error = failure(response({"error": {"message": "slow"}}, 429, headers=given))
    assert (error.kind, error.retry_after, error.retryable) == ("rate_limit", expected, True)


@pytest.mark.parametrize(
    ("behaviour", "kind", "says"),
    [
        (response(b"<html>", 500, "text/html"), "server", "HTTP 500"),
        (response(b"", 503), "server", "HTTP 503"),
        (response(b"", 404), "not_found", "no such model"),
        (response(b"", 302, headers={"Location": "http://else"}), "bad_request", "base_url"),
        (reset, "connection", "closed|reset"),
        (half_a_head, "connection|malformed", ""),
        (no_http, "malformed", "HTTP"),
        (response(length=4000), "connection", "broke off"),
        (response(b'{"choices": [{"mess'), "malformed", "not a JSON"),
        (response(b""), "malformed", "not a JSON"),
        (response(b"[" * 100_000), "malformed", "not a JSON"),
        (response([1]), "malformed", "not a JSON object"),
        (response(b"<html>hello", kind="text/html"), "malformed", "text/html"),
        (response(b"\xff\xfe{}"), "malformed", "not a JSON"),
        (response({"choices": []}), "malformed", "no choices"),
    ],
)
def test_bad_answers(behaviour: Behaviour, kind: str, says: str) -> None:
    import re

    error = failure(behaviour)
    assert error.kind in kind.split("|")
    assert re.search(says, str(error))
    retryable = {"server", "connection", "malformed"}
    assert error.retryable is (error.kind in retryable)


@pytest.mark.parametrize("behaviour", [hang, trickle])
def test_hanging_ends_at_the_timeout(behaviour: Behaviour) -> None:
    error = failure(behaviour, timeout=0.3)
    assert (error.kind, error.retryable) == ("timeout", True)


def test_an_endless_body_is_dropped() -> None:
    async def main() -> None:
        async with serve(endless) as (address, _):
            transport = Transport(address, {}, timeout=20)
            try:
                await transport.post("/", {}, 1024 * 1024)
            finally:
                await transport.close()

    with pytest.raises(CallError, match="larger than 1 MB") as caught:
        asyncio.run(main())
    assert (caught.value.kind, caught.value.retryable) == ("too_large", False)


def test_nobody_listens() -> None:
    async def main() -> None:
        async with serve(hang) as (address, _):
            pass
        model = find("openai/m", base_url=address, timeout=5)
        try:
            await model.call(ask())
        finally:
            await model.close()

    with pytest.raises(CallError, match="Cannot connect to") as caught:
        asyncio.run(main())
    assert caught.value.kind == "connection"


@pytest.mark.parametrize("name", ["openai/m", "openai-responses/m", "anthropic/m", "google/m"])
@pytest.mark.parametrize("status", [400, 401, 500, 200])
def test_an_echoed_key_is_removed(name: str, status: int) -> None:
    body = {"error": {"message": f"Incorrect API key provided: {KEY}. " * 30, "type": "x"}}
    error = failure(response(body, status), name)
    assert "sk-live" not in str(error)
    if status == 401:
        assert "OUR_KEY" in str(error)


def test_an_echoed_key_is_removed_from_an_answer_too() -> None:
    body = json.loads(json.dumps(GOOD).replace('"4"', f'"it is {KEY}"'))
    assert asyncio.run(call(response(body))).text == "it is [key]"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32-be"])
@pytest.mark.parametrize("key", [KEY, "sk-short"])
def test_nor_does_an_encoding_keep_it(
    encoding: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_KEY", key)
    for body in (json.dumps({"error": {"message": f"No: {key}"}}), f"No: {key}"):
        error = failure(response(body.encode(encoding), 401))
        assert str(error).startswith("The key was not accepted (HTTP 401): ")
        assert "No: [key]" in str(error)
    assert "'No: [key]'" in str(failure(response(f"No: {key}".encode(encoding))))


def test_an_escaped_key_beside_deep_nesting_is_removed() -> None:
    escaped = "".join(f"\\u{ord(c):04x}" for c in KEY)
    deep = "[" * 900 + "]" * 900
    body = json.dumps(GOOD).replace('"4"', f'"it is {escaped}"')[:-1] + f', "x": {deep}}}'
    assert asyncio.run(call(response(body.encode()))).text == "it is [key]"


@pytest.mark.parametrize(
    ("status", "name"), [(302, "Location"), (200, "Content-Type"), (200, "Content-Encoding")]
)
def test_a_long_header_is_shortened(status: int, name: str) -> None:
    said = f"http://x/{'a' * 480}{KEY}{'a' * 100_000}"
    error = failure(response(b"[]", status, headers={name: said}))
    assert len(str(error)) < 800
    assert "sk-live" not in str(error) or name != "Location"


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("openai/m", f"authorization: bearer {KEY}"),
        ("openai-responses/m", f"authorization: bearer {KEY}"),
        ("anthropic/m", f"x-api-key: {KEY}"),
        ("google/m", f"x-goog-api-key: {KEY}"),
    ],
)
def test_the_key_is_sent_in_its_header_only(name: str, header: str) -> None:
    async def main() -> bytes:
        async with serve(response(b"{}", 500)) as (address, seen):
            model = find(name, base_url=address, key_env="OUR_KEY", timeout=5)
            with pytest.raises(CallError):
                await model.call(ask())
            await model.close()
            assert KEY not in f"{model!r} {model.name} {model.account}"
            return seen[0]

    sent = asyncio.run(main()).decode().lower()
    assert header in sent
    assert sent.count(KEY) == 1


def test_one_model_serves_two_loops_and_closes_twice() -> None:
    async def main() -> None:
        async with serve(response()) as (address, _):
            model = find("openai/m", base_url=address)
            assert (await model.call(ask())).text == "4"
            await model.close()
            assert (await model.call(ask())).text == "4"
            await model.close()
            await model.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("body", "read"),
    [
        (rb'{"x": "\ud83d\ude00"}', "\U0001f600"),
        (rb'{"x": "half \ud83d", "y": NaN}', "half \ud83d"),
        ('{"x": "☃"}'.encode("utf-16"), "☃"),
        (b'\xef\xbb\xbf{"x": "after a mark"}', "after a mark"),
    ],
)
@pytest.mark.parametrize("exact", [True, False])
def test_json_that_not_every_reader_takes(body: bytes, read: str, exact: bool) -> None:
    assert parse(Answer(200, {}, body, 1.0), exact=exact)["x"] == read


@pytest.mark.parametrize("through", ["tools", "extra"])
def test_numbers_of_any_size_in_calls_of_tools(through: str) -> None:
    number = 123456789012345678901234567890
    use = {"type": "tool_use", "id": "1", "name": "look", "input": {"number": number}}
    said = {"content": [use], "stop_reason": "tool_use"}
    own: dict[str, Any] = {"tools": ({"name": "look", "parameters": {"type": "object"}},)}
    native: dict[str, Any] = {
        "extra": {"tools": [{"name": "look", "input_schema": {"type": "object"}}]}
    }
    settings = own if through == "tools" else native

    async def main() -> Reply:
        async with serve(response(json.dumps(said).encode())) as (address, _):
            model = find("anthropic/m", base_url=address, key_env="OUR_KEY", timeout=5.0)
            reply = await model.call(ask(max_tokens=100, **settings))
            await model.close()
            return reply

    assert json.loads(asyncio.run(main()).tool_calls[0].arguments) == {"number": number}


@pytest.mark.parametrize("text", ["☃ and \U0001f600", "half \ud83d", "\0", "x" * 100_000])
def test_any_text_reaches_the_server_as_it_is(text: str) -> None:
    async def main() -> list[bytes]:
        async with serve(response()) as (address, seen):
            transport = Transport(address, {}, 5.0)
            await transport.post("/x", {"text": text})
            await transport.close()
            return seen

    (sent,) = asyncio.run(main())
    assert json.loads(sent.partition(b"\r\n\r\n")[2]) == {"text": text}
