"""The HTTP that all wire formats share: JSON out, bytes in, one timeout, one limit of size.

It stands on aiohttp. pyreqwest 0.15.1 needs little more than half the CPU for a call, but with it
3 of 30 runs ended in an abort of the interpreter at exit, and none of aiohttp's did.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from assay import __version__
from assay.models.failure import CallError, malformed

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_TIMEOUT = 120.0
MAX_BODY = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server sent back, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    latency_ms: float


class Transport:
    """Connections to one address. They are opened when first used, in the loop that uses them."""

    __slots__ = ("_base", "_headers", "_proxy", "_session", "_timeout", "_urls", "max_body")

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        timeout: float = DEFAULT_TIMEOUT,
        max_body: int = MAX_BODY,
    ) -> None:
        self._base = base_url.rstrip("/")
        self._headers = {
            "User-Agent": f"assay/{__version__}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            **headers,
        }
        self._timeout = timeout
        self._proxy = _proxy(URL(self._base))
        self._session: aiohttp.ClientSession | None = None
        self._urls: dict[str, URL] = {}
        self.max_body = max_body

    def __repr__(self) -> str:
        return f"Transport({self._base})"

    async def post(self, path: str, body: Any) -> Answer:
        """Send JSON and read the answer to its end; whatever goes wrong is a CallError."""
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = URL(self._base + path)
        data = json.dumps(body).encode()
        try:
            return await self._exchange(url, data)
        except TimeoutError:
            failed = CallError("timeout", f"There was no answer within {self._timeout:g} s.")
        except aiohttp.ClientPayloadError:
            failed = CallError("connection", "The response broke off before its end.")
        except aiohttp.ServerDisconnectedError:
            failed = CallError("connection", "The server closed the connection without an answer.")
        except aiohttp.ClientConnectorError as wrong:
            reason = wrong.os_error.strerror or str(wrong.os_error)
            where = f"{url.host}:{url.port}"
            failed = CallError("connection", f"Cannot connect to {where}: {reason}.")
        except (aiohttp.ClientOSError, ConnectionError):
            failed = CallError("connection", "The connection was reset.")
        except aiohttp.ClientError as wrong:
            failed = malformed(f"it is no proper HTTP ({type(wrong).__name__}).")
        raise failed

    async def _exchange(self, url: URL, data: bytes) -> Answer:
        session = self._opened()
        started = perf_counter()
        async with session.post(
            url, data=data, proxy=self._proxy, allow_redirects=False
        ) as response:
            body = await self._read(response)
            latency_ms = (perf_counter() - started) * 1000
            return Answer(response.status, response.headers, body, latency_ms)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        """Read the body, but no more of it than any honest response has."""
        stream = response.content
        first = await stream.readany()
        if stream.at_eof() and len(first) <= self.max_body:
            return first
        chunks, size = [first], len(first)
        while size <= self.max_body:
            chunk = await stream.readany()
            if not chunk:
                return b"".join(chunks)
            chunks.append(chunk)
            size += len(chunk)
        response.close()
        limit = self.max_body / 1024 / 1024
        raise CallError("too_large", f"The response is larger than {limit:g} MB; it was dropped.")

    def _opened(self) -> aiohttp.ClientSession:
        """Open the session, again if it belongs to a loop that has ended."""
        session = self._session
        if session is None or session.closed or session._loop is not asyncio.get_running_loop():
            session = self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=self._timeout, ceil_threshold=float("inf")),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return session

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


def parse(answer: Answer) -> Any:
    """Read the JSON object of an answer, whatever its content type claims."""
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return value
    kind = answer.headers.get("Content-Type", "no content type")
    start = answer.body[:80].decode("utf-8", "replace")
    raise malformed(f"it is no JSON object but {kind}, starting with {start!r}.")


def _proxy(url: URL) -> str | None:
    """Find the proxy of the environment, once; this machine itself is never behind one."""
    host = url.host or ""
    if host in {"localhost", "127.0.0.1", "::1"} or proxy_bypass(host):
        return None
    return getproxies().get(url.scheme)
