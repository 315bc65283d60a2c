"""The HTTP that all wire formats share: JSON out, bytes in, one timeout, one limit of size.

It stands on pyreqwest, which needs half the CPU of aiohttp for a call and does most of it outside
the interpreter's lock.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import timedelta
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pyreqwest.client import ClientBuilder
from pyreqwest.exceptions import (
    BodyDecodeError,
    DecodeError,
    PyreqwestError,
    RequestTimeoutError,
)

from assay import __version__
from assay.models.failure import CallError, malformed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyreqwest.client import Client
    from pyreqwest.request import StreamRequest

DEFAULT_TIMEOUT = 120.0
MAX_BODY = 32 * 1024 * 1024
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_SETTLE = 0.05
"""Seconds that the client's thread is given to let go of the interpreter after its last call.

Without them one process in fifty that exits right then is aborted; with them none of 150 was.
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server sent back, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    latency_ms: float


class Transport:
    """Connections to one address, opened when first used."""

    __slots__ = ("_base", "_client", "_headers", "_timeout", "max_body")

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        timeout: float = DEFAULT_TIMEOUT,
        max_body: int = MAX_BODY,
    ) -> None:
        self._base = base_url.rstrip("/")
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            **headers,
        }
        self._timeout = timeout
        self._client: Client | None = None
        self.max_body = max_body

    def __repr__(self) -> str:
        return f"Transport({self._base})"

    async def post(self, path: str, body: Any) -> Answer:
        """Send JSON and read the answer to its end; whatever goes wrong is a CallError."""
        client = self._client
        if client is None:
            client = self._client = self._opened()
        data = json.dumps(body).encode()
        try:
            return await self._exchange(
                client.post(self._base + path).body_bytes(data).build_streamed()
            )
        except RequestTimeoutError:
            failed = CallError("timeout", f"There was no answer within {self._timeout:g} s.")
        except PyreqwestError as wrong:
            failed = self._failed(wrong)
        raise failed

    async def _exchange(self, request: StreamRequest) -> Answer:
        started = perf_counter()
        async with request as response:
            read = response.body_reader.read_chunk
            chunks: list[bytes] = []
            size = 0
            while (chunk := await read()) is not None:
                chunks.append(bytes(chunk))
                size += len(chunk)
                if size > self.max_body:
                    limit = f"{self.max_body / 1024 / 1024:g} MB"
                    message = f"The response is larger than {limit}; it was dropped."
                    raise CallError("too_large", message)
            body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
            latency_ms = (perf_counter() - started) * 1000
            return Answer(response.status, response.headers, body, latency_ms)

    def _failed(self, wrong: PyreqwestError) -> CallError:
        """Say in a person's words what the client noticed; its own name the whole address."""
        details = getattr(wrong, "details", None) or {}
        causes = [str(cause["message"]) for cause in details.get("causes") or ()] or [str(wrong)]
        reason = causes[-1].partition(" (os error")[0]
        if "client error (Connect)" in causes:
            where = urlsplit(self._base).netloc.rpartition("@")[2]
            return CallError("connection", f"Cannot connect to {where}: {reason}.", sent=False)
        if isinstance(wrong, BodyDecodeError):
            return CallError("connection", f"The response broke off before its end: {reason}.")
        if isinstance(wrong, DecodeError):
            return malformed(f"it is no proper HTTP ({reason}).")
        return CallError("connection", f"The connection was closed without an answer: {reason}.")

    def _opened(self) -> Client:
        builder = (
            ClientBuilder()
            .user_agent(f"assay/{__version__}")
            .default_headers(self._headers)
            .timeout(timedelta(seconds=self._timeout))
            .follow_redirects(enable=False)
        )
        if urlsplit(self._base).hostname in _LOOPBACK:  # never behind a proxy
            builder = builder.no_proxy()
        return builder.build()

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
            await asyncio.sleep(_SETTLE)


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
