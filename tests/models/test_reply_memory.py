"""Memory does not follow the server: each reply has a limit, and all of them share a cap."""

import asyncio
import gzip
import json
import subprocess
import sys

import pytest

from models.hostile import GOOD, in_a_thread, serve
from pennyweight.models import connection, reply_memory, transport
from pennyweight.models.failure import CallError
from pennyweight.models.model import Message, Request, Settings
from pennyweight.models.providers import find
from pennyweight.models.reply_memory import MAX_BODY, ReplyMemory, ReplyScope, Share, max_bytes

MB = 1024 * 1024


def body(size, character="a"):
    message = {"role": "assistant", "content": character + "a" * size}
    return json.dumps({**GOOD, "choices": [{"message": message}]}, ensure_ascii=False).encode()


def sending(content, more=b""):
    """Answer with a body, in as many pieces as the connection takes."""
    more += b"Connection: close\r\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n" % (len(content), more)

    async def behaviour(writer):
        writer.write(head)
        for at in range(0, len(content), 65536):
            writer.write(content[at : at + 65536])
            await writer.drain()

    return behaviour


@pytest.fixture
def memory(monkeypatch):
    """A cap for two replies of 1 MB and a bit."""
    cap = ReplyMemory(2 * max_bytes(100))
    for module in (connection, transport, reply_memory):
        monkeypatch.setattr(module, "MEMORY", cap)
    return cap


def ask(max_tokens=100):
    return Request((Message("user", "2 + 2?"),), Settings(max_tokens=max_tokens))


@pytest.mark.parametrize(
    ("settings", "bytes_"),
    [
        (Settings(), 9 * MB),
        (Settings(logprobs=True), MAX_BODY),
        (Settings(max_tokens=100), MB + 25_600),
        (Settings(max_tokens=100, logprobs=True), MB + 102_400),
        (Settings(max_tokens=10**9), MAX_BODY),
    ],
)
def test_the_limit_of_a_reply_follows_from_max_tokens(settings, bytes_, monkeypatch):
    limits = []

    async def post(self, path, body, limit, stream=None):
        limits.append(limit)
        raise CallError("server", "x")

    monkeypatch.setattr(transport.Transport, "post", post)
    model = find("openai/m", base_url="http://127.0.0.1:9")
    with pytest.raises(CallError):
        asyncio.run(model.call(Request((Message("user", "x"),), settings)))
    assert limits == [bytes_]


def test_a_reply_beyond_its_limit_is_dropped():
    async def main():
        async with serve(sending(body(2 * MB))) as (address, _):
            model = find("openai/m", base_url=address, timeout=20)
            try:
                await model.call(ask())
            finally:
                await model.close()

    with pytest.raises(CallError, match=r"larger than 1\.02 MB, the limit for this") as caught:
        asyncio.run(main())
    assert (caught.value.kind, caught.value.retryable) == ("too_large", False)


@pytest.mark.parametrize("packed", [False, True])
def test_large_replies_wait_for_each_other_until_they_are_stored(memory, packed):
    content, more = body(MB - 1000), b""
    if packed:
        content, more = gzip.compress(content), b"Content-Encoding: gzip\r\n"
    waiting, most = [], 0

    async def main():
        async with serve(sending(content, more)) as (address, _):
            model = find("openai/m", base_url=address, timeout=20)

            async def call():
                nonlocal most
                with ReplyScope():
                    reply = await model.call(ask())
                    waiting.append(1)
                    most = max(most, len(waiting))
                    await asyncio.sleep(0.01)  # it is written
                    waiting.pop()
                return len(reply.text)

            try:
                lengths = await asyncio.gather(*(call() for _ in range(12)))
            finally:
                await model.close()
        assert set(lengths) == {MB - 999}

    asyncio.run(main())
    assert most == 2
    assert memory.is_free


def test_small_replies_never_wait(memory):
    async def main():
        loop_shares = [Share(max_bytes(100)) for _ in range(2)]
        assert all(memory.request(share) for share in loop_shares)
        async with serve(sending(body(1000))) as (address, _):
            model = find("openai/m", base_url=address, timeout=5)
            try:
                assert len((await model.call(ask())).text) == 1001
            finally:
                await model.close()
        for share in loop_shares:
            memory.give_back(share)

    asyncio.run(main())
    assert memory.is_free


def test_a_reply_that_waits_too_long_times_out_and_gives_its_turn_up(memory):
    async def main():
        blocking = Share(2 * max_bytes(100))
        assert memory.request(blocking)
        async with serve(sending(body(MB - 1000))) as (address, _):
            model = find("openai/m", base_url=address, timeout=0.3)
            with pytest.raises(CallError, match="no answer within"):
                await model.call(ask())
            memory.give_back(blocking)
            assert memory.is_free
            assert len((await model.call(ask())).text) > 1000
            await model.close()

    asyncio.run(main())
    assert memory.is_free


def test_the_calls_of_one_attempt_do_not_wait_for_each_other(memory):
    async def main():
        async with serve(sending(body(MB - 1000))) as (address, _):
            model = find("openai/m", base_url=address, timeout=20)

            async def conversation():
                with ReplyScope():
                    for _ in range(3):
                        await model.call(ask())

            try:
                await asyncio.wait_for(asyncio.gather(*(conversation() for _ in range(4))), 60)
            finally:
                await model.close()

    asyncio.run(main())
    assert memory.is_free


MAKE = """
import sys
from pennyweight.engine.execution import execute, new_run, open_suite
from pennyweight.store.store import Store

suite, store = open_suite("s.yaml"), Store("s.db")
run = new_run(suite)
store.add_run(run)
result = execute(suite, run, store, watch=lambda *_: None)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(peak.split()[1], result.tally.done, *result.tally.errors)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads its peak from /proc")
@pytest.mark.parametrize(("more", "says"), [("", "12 too_large"), ("max_tokens: 200000", "12")])
def test_twelve_replies_of_31_mb_at_a_time_take_less_than_a_gigabyte(tmp_path, more, says):
    """It was 5.9 GB before each reply had a limit, and all of them a cap."""
    with in_a_thread({"m": sending(body(31 * MB, "é"))}) as served:
        tasks = ", ".join(f"{{id: t{i}, input: x}}" for i in range(12))
        (tmp_path / "s.yaml").write_text(
            f"suite: s\ntasks: [{tasks}]\nlimits: {{concurrency: 12}}\nsettings: {{{more}}}\n"
            f"subjects: [{{name: m, model: openai/m, base_url: '{served['m'][0]}'}}]\n"
        )
        command = [sys.executable, "-c", MAKE]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    peak, _, printed = done.stdout.strip().partition(" ")
    assert printed == says, done.stderr
    assert int(peak) < (1024 if more else 256) * 1024  # in KB
