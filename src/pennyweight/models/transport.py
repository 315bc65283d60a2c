"""The HTTP transport of all wire formats: JSON out, bytes in, with a timeout and a size limit."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, urlsplit

import orjson

from pennyweight import __version__
from pennyweight.models.connection import Connection, connect, proxy_for, proxy_login
from pennyweight.models.failure import malformed, shorten, too_large
from pennyweight.models.providers import DEFAULT_TIMEOUT
from pennyweight.models.reply_memory import MAX_BODY, MEMORY, Share, begin_reply, keep

if TYPE_CHECKING:
    from pennyweight.models.stream import EventStream


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete response of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    latency_ms: float
    ttft_ms: float | None = None


class Transport:
    """Connections to one address, opened when needed and reused."""

    __slots__ = ("_base", "_head", "_idle", "_prefix", "_starts", "_timeout")

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        self._base = urlsplit(base_url.rstrip("/"))
        self._timeout = timeout
        self._idle: list[Connection] = []
        self._head = "".join(
            f"{name}: {value}\r\n"
            for name, value in {
                "Host": _host(self._base),
                "User-Agent": f"pennyweight/{__version__}",
                "Content-Type": "application/json",
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                **headers,
            }.items()
        )
        self._prefix: str | None = None
        self._starts: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Transport({self._base.geturl()})"

    async def post(
        self, path: str, body: Any, max_body: int = MAX_BODY, stream: EventStream | None = None
    ) -> Answer:
        """Send JSON and read the complete response. Every failure is a CallError.

        A `stream` reads the events of a response that has some, and gives its body.
        """
        begin_reply()
        data = _written(body)
        start = self._starts.get(path) or self._start(path)
        head = f"{start}{len(data)}\r\n\r\n".encode("latin-1")
        started = perf_counter()
        while self._idle and not self._idle[-1].open:
            self._idle.pop()
        if self._idle:
            connection = self._idle.pop()
        else:
            connection = await connect(self._base, self._timeout)
        received = await connection.exchange(head + data, self._timeout, max_body, stream)
        share = connection.take_share()
        if connection.reusable:
            self._idle.append(connection)
        headers = connection.headers
        encoding = headers.get("content-encoding")
        packed = encoding is not None and encoding.lower() not in {"", "identity"}
        if packed:
            share = share or await _granted(max_body)
        if share is not None:
            keep(share)
        if packed and encoding:
            received = _unpacked(received, encoding.lower(), max_body)
        latency, first = (perf_counter() - started) * 1000, None
        if connection.is_stream and stream is not None:
            received = _written(stream.finish(headers.get("content-type", "")))
            first = None if stream.first is None else (stream.first - started) * 1000
        return Answer(connection.status, headers, received, latency, first)

    def _start(self, path: str) -> str:
        """Return the part of a request's head that is the same for all calls of a path."""
        if self._prefix is None:
            self._prefix = self._base.path
            # a proxy for plain HTTP gets the whole address; encrypted calls go through a tunnel
            if self._base.scheme == "http" and (proxy := proxy_for(self._base)):
                self._prefix = f"http://{_host(self._base)}{self._base.path}"
                self._head += proxy_login(proxy)
        target = quote(f"{self._prefix}{path}", safe="/:?&=%+,;@~!$'()*")
        start = self._starts[path] = f"POST {target} HTTP/1.1\r\n{self._head}Content-Length: "
        return start

    async def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop().close()
        await asyncio.sleep(0)  # the loop lets go of them


async def _granted(size: int) -> Share:
    """Wait for a share of the memory for large replies."""
    granted = asyncio.Event()
    share = Share(size, granted.set)
    try:
        if not MEMORY.request(share):
            await granted.wait()
    except BaseException:
        MEMORY.give_back(share)
        raise
    return share


def _unpacked(body: bytes, encoding: str, max_body: int) -> bytes:
    """Decompress a body that was compressed without request, up to the size limit."""
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise malformed(f"it is encoded as {shorten(encoding)!r}, which was not requested.")
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        whole = unpack.decompress(body, max_body)
    except zlib.error as wrong:
        raise malformed(f"it cannot be decompressed ({wrong}).") from None
    if unpack.unconsumed_tail:
        raise too_large(max_body)
    if not unpack.eof:
        raise malformed("its compressed body is incomplete.")
    return whole


def _host(base: SplitResult) -> str:
    """Return the host and port of an address for a header."""
    host = base.netloc.rpartition("@")[2]
    return host if host.isascii() else host.encode("idna").decode()


def parse(answer: Answer, *, exact: bool = False) -> Any:
    """Read the JSON object of a response, regardless of its content type.

    With `exact`, integers of more than 64 bits stay exact; only tool calls contain such.
    """
    value = read_json(answer.body, exact=exact)
    if isinstance(value, dict):
        return value
    kind = shorten(answer.headers.get("content-type", "no content type"))
    start = answer.body[:80].decode(json.detect_encoding(answer.body), "replace")
    raise malformed(f"it is not a JSON object but {kind}, starting with {start!r}.")


def read_json(body: bytes, *, exact: bool = False) -> Any:
    """Read JSON, falling back to a slower parser for what the fast one rejects, such as NaN."""
    try:
        return json.loads(body) if exact else orjson.loads(body)
    except (ValueError, RecursionError):
        return None if exact else read_json(body, exact=True)


def _written(body: Any) -> bytes:
    """Write JSON, with escapes for what the fast writer rejects, such as a lone surrogate."""
    try:
        return orjson.dumps(body)
    except TypeError:
        return json.dumps(body).encode()
