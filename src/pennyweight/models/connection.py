"""One HTTP/1.1 connection on the event loop."""

from __future__ import annotations

import asyncio
import base64
import ssl
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, NoReturn, cast
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

import httptools

from pennyweight.models.failure import CallError, malformed, too_large
from pennyweight.models.providers import LOOPBACK
from pennyweight.models.reply_memory import MAX_BODY, MEMORY, SMALL, Share

if TYPE_CHECKING:
    from pennyweight.models.stream import EventStream

CONNECT = 30.0
"""Seconds to wait for a connection to open."""
MAX_HEAD = 256 * 1024
STREAMED = 16
"""How many times as large a stream may be as what is kept of it: an event repeats a lot."""
_PORTS = {"http": 80, "https": 443}


class Connection(asyncio.Protocol):
    """Sends one request at a time and reads its response, which may be malformed."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.reusable = self.is_stream = False
        self._stream: EventStream | None = None
        self._max_body = MAX_BODY
        self._share: Share | None = None
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[bytes] | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._body: bytes | bytearray = b""
        self._size = self._head = 0
        self._left = self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._whole = self._begun = self._bodiless = False

    async def exchange(
        self,
        data: bytes,
        left: float,
        max_body: int = MAX_BODY,
        stream: EventStream | None = None,
        *,
        bodiless: bool = False,
    ) -> bytes:
        """Send a request and return the body of the response. Raise CallError if there is none.

        `left` is the number of seconds it may take. A `stream` reads the events of a response as
        they arrive, unless it is an error or JSON; `is_stream` says if it did. Only a response to
        CONNECT has no body: what follows its head is not HTTP.
        """
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        self.status, self.headers, self._body = 0, {}, b""
        self._size = self._head = 0
        self.reusable = self._whole = self._begun = False
        self._bodiless, self._max_body = bodiless, max_body
        self._stream, self.is_stream = stream, False
        self._parser = httptools.HttpResponseParser(self)
        self._waiter = loop.create_future()
        if self._transport.is_closing():
            self._fail(_closed(None))
        else:
            self._transport.write(data)
        self._watch(loop, left)
        try:
            return await self._waiter
        except BaseException:
            if share := self.take_share():
                MEMORY.give_back(share)
            raise
        finally:
            self._waiter = self._stream = None  # they hold the body
            if not self.reusable:
                self.close()

    def take_share(self) -> Share | None:
        """Return the share of the process's memory that the response uses, once."""
        share, self._share = self._share, None
        return share

    def _watch(self, loop: asyncio.AbstractEventLoop, left: float) -> None:
        """Set the deadline. One timer serves all requests, as long as it fires early enough."""
        self._left, self._deadline = left, loop.time() + left
        if self._timer is not None and self._timer.when() > self._deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = loop.call_at(self._deadline, self._expire)

    @property
    def open(self) -> bool:
        """Whether the connection can be used for a request."""
        return self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        """Close at once, without waiting."""
        if self._transport is not None:
            self._transport.abort()

    async def start_tls(self, host: str) -> None:
        """Continue encrypted, through the tunnel that a proxy has opened."""
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        secured = await loop.start_tls(self._transport, self, trusted(), server_hostname=host)
        self._transport = cast("asyncio.Transport", secured)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, error: Exception | None) -> None:
        """Finish the current request. A response of unknown length ends like this."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        has_length = self.headers.keys() & {"content-length", "transfer-encoding"}
        if self._begun and not self._whole and error is None and not has_length:
            self._done()
        elif self._begun:
            why = f": {error}" if error else ""
            self._fail(CallError("connection", f"The response broke off before its end{why}."))
        else:
            self._fail(_closed(error))

    def data_received(self, data: bytes) -> None:
        """Parse received data. Unexpected data closes the connection."""
        if self._waiter is None or self._waiter.done() or self._parser is None:
            self.close()
            return
        before = self._size
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(malformed("it changes the protocol."))
        except httptools.HttpParserError as wrong:
            self._fail(malformed(f"it is not valid HTTP ({wrong})."))
        self._head = 0 if self._size > before else self._head + len(data)
        if self._head > MAX_HEAD and not self._whole:
            part = "the part after its body" if self._begun else "its head"
            self._fail(malformed(f"{part} is larger than {MAX_HEAD // 1024} KB."))

    def on_message_begin(self) -> None:
        """Reject an unexpected second response."""
        if self._whole:
            self._reject(malformed("it is followed by a second response."))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header under its lower-case name. Trailers are ignored."""
        if not self._begun:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Note the status and whether the connection can be kept."""
        assert self._parser is not None
        self.status = self._parser.get_status_code()
        self._begun = self.status >= 200
        if self._stream is not None and self.status == 200:
            self.is_stream = not self._is_json()
        if self._bodiless and self._begun:
            self.reusable = True
            self._done()

    def on_body(self, data: bytes) -> None:
        """Store a part of the body, up to the size limit."""
        self._size += len(data)
        held = self._size if self._stream is None else self._read_events(data)
        if held > self._max_body:
            self._reject(too_large(self._max_body))
        if held > SMALL and self._share is None:
            self._share = Share(self._max_body, self._resume)
            if not MEMORY.request(self._share) and self._transport is not None:
                self._transport.pause_reading()
        if self.is_stream:
            return
        if not self._body:
            self._body = data
            return
        if isinstance(self._body, bytes):
            self._body = bytearray(self._body)
        self._body += data

    def _read_events(self, data: bytes) -> int:
        """Read events, and return how many bytes are held of the body so far."""
        if not self.is_stream or self._stream is None:
            return self._size
        if self._size > STREAMED * self._max_body:
            self._reject(too_large(STREAMED * self._max_body))
        try:
            self._stream.feed(data)
        except CallError as wrong:
            self._reject(wrong)
        return self._stream.held

    def _is_json(self) -> bool:
        kind, packed = (self.headers.get(f"content-{n}", "").lower() for n in ("type", "encoding"))
        return "json" in kind or packed not in {"", "identity"}

    def _resume(self) -> None:
        """Read on, now that there is memory for the rest of the body."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def on_message_complete(self) -> None:
        """Return the response, unless it is an interim one."""
        if not self._begun:
            self.headers = {}
            return
        assert self._parser is not None
        self.reusable = self._parser.should_keep_alive()
        if self._share and not self._share.is_granted:
            self._resume()  # nothing is left to wait for
        self._done()

    def _done(self) -> None:
        self._whole = True
        body, self._body = self._body, b""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(bytes(body))

    def _expire(self) -> None:
        """Fail if the deadline has passed; the timer may belong to an earlier request."""
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        loop = self._waiter.get_loop()
        if loop.time() < self._deadline:
            self._timer = loop.call_at(self._deadline, self._expire)
            return
        self._fail(CallError("timeout", f"There was no answer within {self._left:g} s."))

    def _reject(self, error: CallError) -> NoReturn:
        """Fail, and stop the parser by an exception.

        The parser's own error does not carry this one safely: Python overwrites its context when
        the loop runs inside an `except` block.
        """
        self._fail(error)
        raise error

    def _fail(self, error: CallError) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
        self.close()


def _not_sent(text: str) -> CallError:
    return CallError("connection", text, sent=False)


def _closed(error: Exception | None) -> CallError:
    why = f": {error}" if error else ""
    return CallError("connection", f"The connection was closed without an answer{why}.")


async def connect(base: SplitResult, timeout: float) -> Connection:
    """Open a connection to an address, through the proxy that the environment names for it."""
    proxy = proxy_for(base)
    at = proxy or base
    try:
        async with asyncio.timeout(min(timeout, CONNECT)):
            _, connection = await asyncio.get_running_loop().create_connection(
                Connection,
                at.hostname or "",
                _port(at),
                ssl=trusted() if at.scheme == "https" else None,
            )
            if proxy and base.scheme == "https":
                await _tunnel(connection, base, proxy)
                await connection.start_tls(base.hostname or "")
    except (OSError, UnicodeError) as error:  # a TimeoutError is an OSError
        text = f"Cannot connect to {at.hostname}:{_port(at)}: {_reason(error)}."
        raise _not_sent(text) from None
    return connection


async def _tunnel(connection: Connection, base: SplitResult, proxy: SplitResult) -> None:
    target = f"{base.hostname}:{_port(base)}"
    head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{proxy_login(proxy)}\r\n"
    try:
        await connection.exchange(head.encode("latin-1"), CONNECT, bodiless=True)
    except CallError as wrong:
        text = f"The proxy {proxy.hostname} did not connect to {target}: {wrong}"
        raise _not_sent(text) from None
    if connection.status != 200:
        connection.close()
        status = connection.status
        raise _not_sent(f"The proxy {proxy.hostname} refuses {target} (HTTP {status}).")


def proxy_for(base: SplitResult) -> SplitResult | None:
    """Return the proxy that the environment sets for an address. Loopback never uses one."""
    host = base.hostname or ""
    if host in LOOPBACK:
        return None
    proxies = getproxies_environment()
    address = proxies.get(base.scheme) or proxies.get("all")
    if not address or proxy_bypass_environment(f"{host}:{_port(base)}", proxies):
        return None
    with suppress(ValueError):
        proxy = urlsplit(address if "://" in address else f"http://{address}")
        if proxy.scheme in _PORTS and proxy.hostname and proxy.port != 0:
            return proxy
    name = f"The proxy for {base.scheme} in the environment"
    raise _not_sent(f"{name} is not an http:// or https:// address.")


def proxy_login(proxy: SplitResult) -> str:
    """Return the header with the credentials in a proxy's address, if it has any."""
    if proxy.username is None:
        return ""
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"


def _port(at: SplitResult) -> int:
    return at.port or _PORTS[at.scheme]


def _reason(error: OSError | UnicodeError) -> str:
    if isinstance(error, TimeoutError) and not error.strerror:
        return "it took too long"
    if isinstance(error, UnicodeError):
        return "this is not a valid host name"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    return (error.strerror or str(error) or type(error).__name__).rstrip(".")


@cache
def trusted() -> ssl.SSLContext:
    """Return the TLS context: the system's authorities, or SSL_CERT_FILE, and certifi's."""
    import certifi  # noqa: PLC0415

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context
