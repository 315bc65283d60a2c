"""A server on loopback that says exactly the bytes it is told to, or nothing."""

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Any

Behaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]

GOOD = {
    "model": "m",
    "choices": [{"message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 1},
}


class Seen(list[bytes]):
    """The requests that arrived, as bytes."""


@contextlib.asynccontextmanager
async def serve(behaviour: Behaviour) -> AsyncIterator[tuple[str, Seen]]:
    seen = Seen()
    open_now: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        open_now[task] = writer
        with contextlib.suppress(
            ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError
        ):
            head = await reader.readuntil(b"\r\n\r\n")
            lengths = [ln for ln in head.lower().split(b"\r\n") if ln.startswith(b"content-length")]
            size = int(lengths[0].split(b":")[1]) if lengths else 0
            seen.append(head + await reader.readexactly(size))
            await behaviour(writer)
        writer.close()
        del open_now[task]

    server = await asyncio.start_server(one, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}", seen
    finally:
        server.close()
        for task, writer in list(open_now.items()):
            task.cancel()
            writer.transport.abort()
        await asyncio.gather(*open_now, return_exceptions=True)
        await asyncio.sleep(0.01)


@contextmanager
def in_a_thread(behaviours: Mapping[str, Behaviour]) -> Iterator[dict[str, tuple[str, Seen]]]:
    """Serve each behaviour at an address of its own, for whoever does not share this loop."""
    ready, found = threading.Event(), dict[str, tuple[str, Seen]]()
    ends: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def main() -> None:
        end = asyncio.Event()
        async with AsyncExitStack() as stack:
            for name, behaviour in behaviours.items():
                found[name] = await stack.enter_async_context(serve(behaviour))
            ends.append((asyncio.get_running_loop(), end))
            ready.set()
            await end.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert ready.wait(10)
    try:
        yield found
    finally:
        loop, end = ends[0]
        loop.call_soon_threadsafe(end.set)
        thread.join(10)


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """Behave in several ways, one request after the other; the last goes on for ever."""
    left = list(behaviours)

    async def say(writer: asyncio.StreamWriter) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(writer)

    return say


def response(
    body: Any = GOOD,
    status: int = 200,
    kind: str = "application/json",
    headers: dict[str, str] | None = None,
    length: int | None = None,
) -> Behaviour:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {
        "Content-Type": kind,
        "Content-Length": str(len(data) if length is None else length),
        "Connection": "close",
        **(headers or {}),
    }
    head = f"HTTP/1.1 {status} X\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items())

    async def say(writer: asyncio.StreamWriter) -> None:
        writer.write(head.encode() + b"\r\n" + data)
        await writer.drain()

    return say


async def hang(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(30)


async def reset(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def half_a_head(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Ty")
    await writer.drain()


async def no_http(writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    await writer.drain()


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    writer.write(b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
        await writer.drain()


async def trickle(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1\r\n \r\n")
        await writer.drain()
        await asyncio.sleep(0.02)
