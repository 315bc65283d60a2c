"""The HTTP client of batches: files go out and come in piece by piece, never as a whole."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import SplitResult, urlsplit

from pennyweight import __version__
from pennyweight.models.connection import proxy_for, proxy_login, trusted
from pennyweight.models.failure import CallError, malformed, too_large
from pennyweight.models.keys import Key
from pennyweight.models.reply_memory import MAX_BODY

PIECE = 256 * 1024
GONE = 404
"""The HTTP status of what the provider does not have."""
TIMEOUT = 120.0
"""Seconds without a byte after which a connection is given up."""
Body = bytes | Iterable[bytes] | None


@dataclass(frozen=True, slots=True)
class BatchClient:
    """Calls to one address with one key. Every failure is a CallError without the key."""

    base_url: str
    headers: Mapping[str, str]
    error: Callable[[int, Mapping[str, str], bytes], CallError]
    """Reads an error of the provider."""
    key: Key | None = None
    timeout: float = TIMEOUT

    def json(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Call with JSON, and return the JSON object of the response."""
        data = None if body is None else json.dumps(body).encode()
        return self.send(method, path, data, {"Content-Type": "application/json"})[0]

    def send(
        self,
        method: str,
        path: str,
        body: Body = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[dict[str, Any], Mapping[str, str]]:
        """Call, and return the JSON object and the headers of the response."""
        with self._answer(method, path, body, headers or {}) as answer:
            received, given = self._read(answer), _headers(answer)
            if not received:
                return {}, given
            try:
                value = json.loads(received)
            except (ValueError, RecursionError):
                value = None
        if not isinstance(value, dict):
            raise malformed("it is not a JSON object.")
        return value, given

    def delete(self, path: str) -> None:
        """Delete something; what is gone already is no error."""
        try:
            self.send("DELETE", path)
        except CallError as error:
            if error.status != GONE:
                raise

    @contextmanager
    def cleaning(self, path: str) -> Iterator[None]:
        """Delete an uploaded file if the provider refuses to use it."""
        try:
            yield
        except CallError as error:
            if error.status is not None and error.status < 500:
                with suppress(CallError):
                    self.delete(path)
            raise

    def lines(self, path: str) -> Iterator[bytes]:
        """Yield the lines of a file, with the key removed. A line that is too long is empty."""
        with self._answer("GET", path, None, {}) as answer:
            begun, skips = b"", False
            while piece := self._guarded(lambda: answer.read(PIECE)):
                *whole, begun = (begun + piece).split(b"\n")
                for line in whole:
                    if skips or line.strip():
                        yield b"" if skips else self._redacted(line)
                    skips = False
                if len(begun) > MAX_BODY:
                    begun, skips = b"", True
            if answer.length:  # http.client does not raise for this
                raise CallError("connection", "The results broke off before their end.")
            if skips or begun.strip():
                yield b"" if skips else self._redacted(begun)

    def _redacted(self, body: bytes) -> bytes:
        return self.key.redact_body(body) if self.key else body

    @contextmanager
    def _answer(
        self, method: str, path: str, body: Body, headers: Mapping[str, str]
    ) -> Iterator[http.client.HTTPResponse]:
        url = path if path.startswith(("http://", "https://")) else f"{self.base_url}{path}"
        own, at = urlsplit(self.base_url), urlsplit(url)
        if (at.scheme, at.netloc) != (own.scheme, own.netloc):  # the key goes nowhere else
            raise malformed(f"it refers to another address, {at.netloc}.")
        target = f"{at.path}?{at.query}" if at.query else at.path
        sent = {
            "User-Agent": f"pennyweight/{__version__}",
            "Accept-Encoding": "identity",
            "Connection": "close",
            **self.headers,
            **headers,
        }
        proxy = proxy_for(at)
        if proxy and at.scheme == "http":  # it gets the whole address
            target = f"http://{at.netloc}{target}"
            sent |= _login(proxy)
        with closing(self._connection(at, proxy)) as connection:
            answer: http.client.HTTPResponse = self._guarded(
                lambda: _exchange(connection, method, target, body, sent)
            )
            with closing(answer):
                if answer.status not in {200, 204}:
                    raise self._refused(answer)
                yield answer

    def _connection(self, at: SplitResult, proxy: SplitResult | None) -> http.client.HTTPConnection:
        where = proxy or at
        host, port = where.hostname or "", where.port or (443 if where.scheme == "https" else 80)
        if where.scheme == at.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=self.timeout)
        secure = http.client.HTTPSConnection(host, port, timeout=self.timeout, context=trusted())
        if proxy and at.scheme == "https":
            if proxy.scheme == "https":  # the tunnel would be asked for in the clear
                text = f"Batches cannot go through the https:// proxy {host}. Name an http:// one."
                raise CallError("connection", text, sent=False)
            secure.set_tunnel(at.hostname or "", at.port or 443, _login(proxy))
        return secure

    def _read(self, answer: http.client.HTTPResponse) -> bytes:
        received: bytes = self._guarded(lambda: answer.read(MAX_BODY + 1))
        if len(received) > MAX_BODY:
            raise too_large(MAX_BODY)
        return self._redacted(received)

    def _refused(self, answer: http.client.HTTPResponse) -> CallError:
        if answer.status < 400:
            text = f"The server answered HTTP {answer.status}. Check base_url."
            return CallError("bad_request", text, status=answer.status)
        wrong = self.error(answer.status, _headers(answer), self._read(answer))
        return wrong.redacted(self.key.redact) if self.key else wrong

    def _guarded(self, call: Callable[[], Any]) -> Any:
        """Turn what a connection raises into a CallError."""
        try:
            return call()
        except TimeoutError:
            text = f"There was no answer within {self.timeout:g} s."
            raise CallError("timeout", text) from None
        except ConnectionRefusedError:
            place = urlsplit(self.base_url).netloc
            raise CallError("connection", f"Cannot connect to {place}.", sent=False) from None
        except (http.client.HTTPException, ssl.SSLError, OSError) as error:
            text = f"The connection failed ({type(error).__name__}: {error})."
            raise CallError("connection", text) from None


def _exchange(
    connection: http.client.HTTPConnection,
    method: str,
    target: str,
    body: Body,
    headers: Mapping[str, str],
) -> http.client.HTTPResponse:
    # a server that refuses a large file answers before it has read all of it
    with suppress(BrokenPipeError, ConnectionResetError):
        connection.request(method, target, body, dict(headers))
    return connection.getresponse()


def _login(proxy: SplitResult) -> dict[str, str]:
    name, _, value = proxy_login(proxy).strip().partition(": ")
    return {name: value} if name else {}


def _headers(answer: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.getheaders()}


def pieces(file: BinaryIO) -> Iterator[bytes]:
    """Yield a file from its beginning, piece by piece."""
    file.seek(0)
    while piece := file.read(PIECE):
        yield piece
