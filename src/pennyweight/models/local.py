"""`local/…`: a GGUF file on this machine, served by llama.cpp and called in OpenAI's format.

A server starts at the first call, is shared by everything in this process that names the same file,
and ends with its last user.

With one slot, a reply depends on its request alone: the same prompt, settings and seed give the
same tokens. With several slots, the server computes their tokens together, so that concurrent
requests change the last digits of the sums and, now and then, a token. Use `slots=1` or a recording
where that matters.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pennyweight.errors import PennyweightError, UsageError
from pennyweight.models.failure import CallError
from pennyweight.models.gguf import pull, resolve
from pennyweight.models.model import Model, Reply, Request
from pennyweight.models.remote import RemoteModel
from pennyweight.models.server import Server
from pennyweight.models.threads import Threads
from pennyweight.models.wires import openai

SLOTS = 8
CONTEXT = 2048
TIMEOUT = 600.0

_Wanted = tuple[str, int, int]
_running: dict[_Wanted, tuple[Server, int]] = {}
_lock = threading.Lock()


class LocalModel(Model):
    """A model on this machine."""

    def __init__(
        self,
        name: str,
        *,
        slots: int | None = None,
        context: int | None = None,
        timeout: float | None = None,
        folder: Path | None = None,
    ) -> None:
        if find_spec("xllamacpp") is None:
            raise UsageError(f"local/{name} needs the package xllamacpp: pip install xllamacpp.")
        path = resolve(name, folder)
        self.name = self.account = f"local/{name}"
        self.limit = slots or SLOTS
        file = str(path) if name.endswith(".gguf") else name
        self._wanted = (file, slots or SLOTS, context or CONTEXT)
        self._timeout = timeout or TIMEOUT
        self._starting = asyncio.Lock()
        self._server: Server | None = None
        self._remote: RemoteModel | None = None
        self._broken: CallError | None = None

    def encode(self, request: Request) -> tuple[str, dict[str, Any]]:
        """Return the request as it is sent. Raise UsageError if a setting cannot be expressed."""
        return openai.encode(self._wanted[0], request)

    async def call(self, request: Request) -> Reply:
        """Answer once. The first call fetches the file and starts the server."""
        remote = self._remote
        if remote is None or self._server is None or not self._server.alive:
            remote = await self._start()
        return await remote.call(request)

    async def _start(self) -> RemoteModel:
        async with self._starting:
            if self._remote is not None and self._server is not None and self._server.alive:
                return self._remote
            if self._broken is not None:  # another start would fail in the same way
                raise self._broken
            await self.close()
            server = self._server = await self._acquired()
            self._remote = RemoteModel(
                self.name,
                self._wanted[0],
                f"{server.address}/v1",
                openai,
                openai.encode,
                account=self.account,
                timeout=self._timeout,
            )
            return self._remote

    async def _acquired(self) -> Server:
        """Acquire the server in a thread that does not delay the end of the process."""
        threads = Threads(self.name)
        try:
            result = await threads.run(_take, self._wanted)
        finally:
            threads.close()
        if isinstance(result.error, PennyweightError | OSError):
            self._broken = CallError("not_found", str(result.error), sent=False)
            raise self._broken
        if result.error is not None:
            raise result.error
        server: Server = result.value
        return server

    async def disconnect(self) -> None:
        """Close the connections; the server keeps running until this process ends."""
        remote, self._remote = self._remote, None
        if remote is not None:
            await remote.close()

    async def close(self) -> None:
        """Close the connections, and the server if it has no other user."""
        await self.disconnect()
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(_give_back, self._wanted, server)


@asynccontextmanager
async def serving(name: str, slots: int = SLOTS, context: int = CONTEXT) -> AsyncIterator[str]:
    """Serve a model while the block runs; yield the address, without `/v1`."""
    wanted = (name, slots, context)
    server = await asyncio.to_thread(_take, wanted)
    try:
        yield server.address
    finally:
        await asyncio.to_thread(_give_back, wanted, server)


def _take(wanted: _Wanted) -> Server:
    """Return the server for a file, starting it if it is not running."""
    name, slots, context = wanted
    with _lock:
        server, users = _running.get(wanted, (None, 0))
        if server is None or not server.alive:
            server, users = Server(pull(name), slots, context), 0
        _running[wanted] = (server, users + 1)
        return server


def _give_back(wanted: _Wanted, server: Server) -> None:
    """Stop a server when its last user is done. A server that died has been replaced."""
    with _lock:
        current, users = _running.get(wanted, (None, 0))
        if current is server and users > 1:
            _running[wanted] = (server, users - 1)
            return
        if current is server:
            del _running[wanted]
        server.stop()
