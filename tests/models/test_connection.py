"""The HTTP of a call: what servers may do, what they may not, and the ways through a proxy."""

import asyncio
import contextlib
import gzip
import json
import ssl
from pathlib import Path

import pytest

from pennyweight.models import connection
from pennyweight.models.failure import CallError
from pennyweight.models.transport import Answer, Transport

PEM = Path(__file__).with_name("localhost.pem")
LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


async def gone(writers):
    for writer in writers:
        writer.transport.abort()
    await asyncio.gather(*(w.wait_closed() for w in writers), return_exceptions=True)


@contextlib.asynccontextmanager
async def answering(*replies, secure=False, close=False):
    """A server that gives these bytes, one for each request, and tells what it was asked."""
    asked, connections = [], []
    left = list(replies)

    async def one(reader, writer):
        connections.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                asked.append(head + await reader.readexactly(size))
                writer.write(left.pop(0) if len(left) > 1 else left[0])
                await writer.drain()
                if close:
                    break
        writer.close()

    context = None
    if secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(PEM)
    server = await asyncio.start_server(one, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1], asked, connections
    finally:
        server.close()
        await gone(connections)


def post(*replies, calls=1, max_body=1 << 20, **how) -> tuple[list[Answer], list, list]:
    async def main():
        async with answering(*replies, **how) as (port, asked, connections):
            transport = Transport(f"http://127.0.0.1:{port}/v1", {"X-Own": "1"}, 5)
            try:
                got = [await transport.post("/a b", {"n": n}, max_body) for n in range(calls)]
            finally:
                await transport.close()
            return got, asked, connections

    return asyncio.run(main())


def failure(*replies, **how) -> CallError:
    with pytest.raises(CallError) as caught:
        post(*replies, **how)
    return caught.value


def test_what_is_sent():
    _, asked, _ = post(LENGTH)
    head, body = asked[0].split(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/a%20b HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nX-Own: 1\r\n" in head
    assert json.loads(body) == {"n": 0}


def test_a_connection_is_used_again():
    got, asked, connections = post(LENGTH, calls=3)
    assert [a.body for a in got] == [b"{}"] * 3
    assert (len(asked), len(connections)) == (3, 1)


def test_each_request_on_a_connection_has_its_whole_time():
    async def main():
        async with answering(LENGTH, b"") as (port, _, connections):
            transport = Transport(f"http://127.0.0.1:{port}/v1", {}, timeout=0.6)
            loop = asyncio.get_running_loop()
            await transport.post("/a", {})
            await asyncio.sleep(0.3)
            began = loop.time()
            with pytest.raises(CallError, match=r"no answer within 0\.6 s") as told:
                await transport.post("/a", {})
            assert told.value.kind == "timeout"
            assert loop.time() - began >= 0.6
            assert len(connections) == 1
            await transport.close()

    asyncio.run(main())


def test_a_connection_that_the_server_will_close_is_not_used_again():
    reply = LENGTH.replace(b"Content-Length", b"Connection: close\r\nContent-Length")
    got, _, connections = post(reply, calls=2, close=True)
    assert (len(got), len(connections)) == (2, 2)


def test_nor_one_that_it_closed_without_a_word():
    async def main():
        async with answering(LENGTH, close=True) as (port, _, connections):
            transport = Transport(f"http://127.0.0.1:{port}", {}, 5)
            await transport.post("/", {})
            while transport._idle[0].open:
                await asyncio.sleep(0.01)
            await transport.post("/", {})
            await transport.close()
            return len(connections)

    assert asyncio.run(main()) == 2


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: trailer\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + LENGTH,
        b"HTTP/1.1 100 Continue\r\n\r\n" + LENGTH,
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 22\r\n\r\n"
        + gzip.compress(b"{}", mtime=0),
    ],
)
def test_ways_to_say_the_same(reply):
    got, _, connections = post(reply, calls=2)
    assert [(a.status, a.body) for a in got] == [(200, b"{}")] * 2
    assert len(connections) == 1


def test_a_body_may_end_with_the_connection():
    got, _, _ = post(b"HTTP/1.0 200 OK\r\nContent-Type: a/b\r\n\r\n{}", close=True)
    assert (got[0].body, dict(got[0].headers)) == (b"{}", {"content-type": "a/b"})


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BOMB = gzip.compress(bytes(2 << 20))
CUT = gzip.compress(b"{}", mtime=0)[:-8]


@pytest.mark.parametrize(
    ("reply", "kind", "says"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{", "connection", "broke off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{", "connection", "broke off"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "malformed", "not valid HTTP"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + bytes(2 << 20),
            "too_large",
            "1 MB",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB)
            + BOMB,
            "too_large",
            "1 MB",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
            "malformed",
            "decompressed",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(CUT)
            + CUT,
            "malformed",
            "compressed body is incomplete",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n{}",
            "malformed",
            "'br'",
        ),
        (b"HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n", "malformed", "protocol"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000, "malformed", "head is larger"),
        (CHUNKED + b"2\r\n{}\r\n0\r\n" + b"X: y\r\n" * 100_000, "malformed", "part after its body"),
        (CHUNKED + b"2\r\n{}\r\n0\r\nX: " + b"y" * 600_000, "malformed", "part after its body"),
        (CHUNKED + b"2\r\n{}\r\n1;x=" + b"y" * 600_000, "malformed", "part after its body"),
        (b"", "connection", "without an answer"),
    ],
)
def test_what_no_server_may_do(reply, kind, says):
    error = failure(reply, close=True)
    assert (error.kind, error.sent) == (kind, True)
    assert says in str(error)


def test_what_follows_the_body_is_no_header():
    got, _, _ = post(CHUNKED + b"2\r\n{}\r\n0\r\nContent-Encoding: br\r\n\r\n")
    assert (got[0].body, dict(got[0].headers)) == (b"{}", {"transfer-encoding": "chunked"})


def test_a_body_in_many_small_chunks_is_as_good_as_in_one():
    got, _, connections = post(CHUNKED + b"1\r\n{\r\n" * 200_000 + b"0\r\n\r\n", calls=2)
    assert [a.body for a in got] == [b"{" * 200_000] * 2
    assert len(connections) == 1


def test_a_second_response_that_nobody_asked_for_is_never_taken_for_an_answer():
    other = LENGTH.replace(b"{}", b"[]").replace(b"200 OK", b"500 No")
    got, _, connections = post(LENGTH + other, calls=2)
    assert [(a.status, a.body) for a in got] == [(200, b"{}")] * 2
    assert len(connections) == 2


@pytest.fixture
def trusting(monkeypatch):
    """Trust the test's own certificate, as SSL_CERT_FILE does for a user."""
    monkeypatch.setenv("SSL_CERT_FILE", str(PEM))
    connection.trusted.cache_clear()
    yield
    connection.trusted.cache_clear()


def secure(host: str) -> Answer:
    async def main():
        async with answering(LENGTH, secure=True) as (port, _, _):
            transport = Transport(f"https://{host}:{port}", {}, 5)
            try:
                return await transport.post("/", {})
            finally:
                await transport.close()

    return asyncio.run(main())


@pytest.mark.usefixtures("trusting")
def test_tls_with_a_certificate_that_is_trusted():
    assert secure("localhost").body == b"{}"


def test_tls_with_one_that_is_not():
    connection.trusted.cache_clear()
    with pytest.raises(CallError, match="certificate is not trusted") as caught:
        secure("localhost")
    assert (caught.value.kind, caught.value.sent) == ("connection", False)


@pytest.mark.usefixtures("trusting")
def test_tls_with_one_for_another_name():
    with pytest.raises(CallError, match="certificate is not trusted"):
        secure("127.0.0.1")


@contextlib.asynccontextmanager
async def proxy(port: int, answer: bytes = b"HTTP/1.1 200 Connected\r\n\r\n"):
    """A proxy that leads every tunnel to one port of this machine."""
    heads, tasks, writers = [], set(), []

    async def copy(reader, writer):
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
        writer.close()

    async def one(reader, writer):
        writers.append(writer)
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        if b" 200 " in answer:
            there, back = await asyncio.open_connection("127.0.0.1", port)
            writers.append(back)
            for way in (copy(reader, back), copy(there, writer)):
                tasks.add(asyncio.create_task(way))
        else:
            writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], heads
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await gone(writers)


@pytest.mark.usefixtures("trusting")
def test_encrypted_calls_go_through_a_tunnel(monkeypatch):
    async def main():
        async with answering(LENGTH, secure=True) as (port, asked, _), proxy(port) as (way, heads):
            monkeypatch.setenv("HTTPS_PROXY", f"http://me:p%40ss@127.0.0.1:{way}")
            transport = Transport("https://api.test/v1", {"Authorization": "Bearer k"}, 5)
            got = [await transport.post("/x", {}) for _ in range(2)]
            await transport.close()
            return got, asked, heads

    got, asked, heads = asyncio.run(main())
    assert [a.body for a in got] == [b"{}"] * 2
    assert len(heads) == 1
    assert heads[0].startswith(b"CONNECT api.test:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6cEBzcw==\r\n" in heads[0]
    assert b"Bearer" not in heads[0]
    assert b"Host: api.test\r\n" in asked[0]
    assert b"Proxy" not in asked[0]


def test_a_proxy_that_refuses(monkeypatch):
    async def main():
        async with proxy(1, b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n") as (way, _):
            monkeypatch.setenv("https_proxy", f"127.0.0.1:{way}")
            await Transport("https://api.test", {}, 5).post("/", {})

    with pytest.raises(CallError, match=r"refuses api\.test:443 \(HTTP 407\)") as caught:
        asyncio.run(main())
    assert caught.value.sent is False


def test_plain_calls_name_the_whole_address_to_a_proxy(monkeypatch):
    async def main():
        async with answering(LENGTH) as (port, asked, _):
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
            transport = Transport("http://api.test/v1", {}, 5)
            await transport.post("/x", {})
            await transport.close()
            return asked

    assert asyncio.run(main())[0].startswith(
        b"POST http://api.test/v1/x HTTP/1.1\r\nHost: api.test"
    )


@pytest.mark.parametrize("exempt", ["127.0.0.1", "api.test"])
def test_no_proxy(monkeypatch, exempt):
    from urllib.parse import urlsplit

    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "api.test")
    assert connection.proxy_for(urlsplit(f"http://{exempt}:80/")) is None
    assert connection.proxy_for(urlsplit("http://other.test/")) is not None


def test_a_name_that_is_no_host():
    async def main():
        await Transport("http://" + "a" * 70 + ".test", {}, 5).post("/", {})

    with pytest.raises(CallError, match="Cannot connect to") as caught:
        asyncio.run(main())
    assert caught.value.sent is False


@pytest.mark.parametrize("way", ["127.0.0.1:99999", "http://127.0.0.1:abc", "http://[::1", "x:0"])
def test_a_proxy_at_a_wrong_address(monkeypatch, way):
    async def main():
        await Transport("https://api.test", {}, 5).post("/", {})

    monkeypatch.setenv("https_proxy", way)
    with pytest.raises(CallError, match="The proxy for https in the environment is no") as caught:
        asyncio.run(main())
    assert (caught.value.kind, caught.value.sent) == ("connection", False)
