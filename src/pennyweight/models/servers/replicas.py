"""One model on several servers: calls go to the one with the fewest in flight that is healthy."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import SplitResult, urlsplit

from pennyweight.models.failure import CallError
from pennyweight.models.model import Model, Reply, Request, Settings

SHORTEST, LONGEST = 0.5, 30.0
"""Seconds until a server that failed is checked: at first, and after many failures in a row."""
ILL = frozenset({"connection", "timeout", "server", "malformed"})
"""Errors after which a server gets no calls for a while."""
TIMEOUT = 5.0
"""Seconds for one health check."""
RESOLVED = 30.0
"""Seconds after which the addresses behind a name are looked up again."""
DNS = "dns+"
"""Begins an address whose host name stands for several servers."""


@dataclass(eq=False, slots=True)
class _Server:
    """One of the servers."""

    address: str
    model: Model
    in_flight: int = 0
    last: int = 0
    """When it was chosen last, as a number of calls."""
    checking: asyncio.Task[None] | None = field(default=None, repr=False)
    """Waits until the server is healthy again; None while it is."""
    failures: int = 0
    """How often it was ill since its last reply, however healthy it looked in between."""
    has_left: bool = False
    """Whether its name does not stand for it any more: it is closed when its calls have ended."""


class ReplicatedModel(Model):
    """A model on several servers, called as one."""

    def __init__(self, addresses: Sequence[str], build: Callable[[str], Model]) -> None:
        self._name = addresses[0].removeprefix(DNS) if addresses[0].startswith(DNS) else None
        self._build = build
        self._servers = [_Server(url, build(url.removeprefix(DNS))) for url in addresses]
        first = self._servers[0].model
        self.name, self.ignores = first.name, first.ignores
        self.account = f"{first.account} and {len(addresses) - 1} more" if addresses[1:] else ""
        self.account = self.account or first.account
        self._turns = count(1)
        self._resolved: float | None = None

    def encode(self, request: Request) -> tuple[str, dict[str, Any]] | None:
        """Return the request as every server gets it."""
        return self._servers[0].model.encode(request)

    def most_output(self, settings: Settings) -> int | None:
        """Return the maximum number of output tokens of a call."""
        return self._servers[0].model.most_output(settings)

    async def call(self, request: Request) -> Reply:
        """Answer once. A server that cannot be reached is replaced by another one at once."""
        if self._name:
            await self._resolve(self._name)
        tried: set[str] = set()
        while True:
            server = self._choose(tried)
            tried.add(server.address)
            server.in_flight += 1
            try:
                reply = await server.model.call(request)
                server.failures = 0
                return reply
            except CallError as error:
                if error.kind in ILL:
                    self._check(server)
                others = any(one.address not in tried for one in self._servers)
                if error.kind != "connection" or error.sent or not others:
                    raise
            finally:
                server.in_flight -= 1
                if server.has_left and not server.in_flight:
                    await server.model.close()

    def _choose(self, tried: set[str]) -> _Server:
        """Choose the least loaded healthy server; an ill one only if all are."""
        left = [server for server in self._servers if server.address not in tried]
        chosen = min(left, key=lambda one: (one.checking is not None, one.in_flight, one.last))
        chosen.last = next(self._turns)
        return chosen

    def _check(self, server: _Server) -> None:
        if server.checking is None and not server.has_left:
            server.checking = asyncio.create_task(self._healthy(server))

    async def _healthy(self, server: _Server) -> None:
        """Wait until a server answers again, ever longer if it fails each time it is called."""
        while True:
            await asyncio.sleep(min(SHORTEST * 2 ** min(server.failures, 9), LONGEST))
            server.failures += 1
            if await answers(server.address.removeprefix(DNS)):
                break
        server.checking = None

    async def _resolve(self, name: str) -> None:
        """Look up which servers a name stands for, now and then."""
        loop = asyncio.get_running_loop()
        if self._resolved is not None and loop.time() - self._resolved < RESOLVED:
            return
        self._resolved = loop.time()
        found = await _addresses(name)
        known = {server.address: server for server in self._servers}
        kept = [known.pop(url) if url in known else _Server(url, self._build(url)) for url in found]
        if kept:
            self._servers = kept
            for server in known.values():
                server.has_left = True
                if server.checking:
                    server.checking.cancel()
                if not server.in_flight:
                    await server.model.close()

    async def close(self) -> None:
        """Close the connections and end the health checks."""
        for server in self._servers:
            if server.checking:
                server.checking.cancel()
            await server.model.close()


async def answers(address: str) -> bool:
    """Whether a server answers a request for its models, with whatever but an error of its own."""
    parts = urlsplit(address)
    path = f"{parts.path.rstrip('/')}/models"
    head = f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n"
    with suppress(OSError, TimeoutError, ValueError):
        async with asyncio.timeout(TIMEOUT):
            reader, writer = await asyncio.open_connection(
                parts.hostname, _port(parts), ssl=parts.scheme == "https" or None
            )
            try:
                writer.write(head.encode("latin-1"))
                status = (await reader.readline()).split()
                return len(status) > 1 and status[0][:5] == b"HTTP/" and int(status[1]) < 500
            finally:
                writer.close()
    return False


async def _addresses(address: str) -> list[str]:
    """Return an address for each server that a host name stands for."""
    parts, loop = urlsplit(address), asyncio.get_running_loop()
    with suppress(OSError):
        found = await loop.getaddrinfo(parts.hostname, _port(parts), type=socket.SOCK_STREAM)
        hosts = sorted({str(entry[4][0]) for entry in found})
        named = [f"[{host}]" if ":" in host else host for host in hosts]
        return [parts._replace(netloc=f"{host}:{_port(parts)}").geturl() for host in named]
    return []


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)
