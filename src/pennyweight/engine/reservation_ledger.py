"""What the ledger holds for calls in flight, so that a killed process leaves no call uncounted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

TOLERANCE = 1e-12
"""Dollars by which sums may be off, because they are floating-point."""


class ReservationLedger:
    """Keeps the sum of all reservations in the ledger before their calls are sent.

    The ledger holds the highest sum so far. A new call is written only if it exceeds that, together
    with all others that wait, so that a run with steady concurrency writes almost nothing.
    """

    worker = ""
    """No worker of a shared run."""

    def __init__(self, write: Callable[[float, int], Awaitable[None]]) -> None:
        self._write = write
        self.usd, self.tokens = 0.0, 0
        """What the ledger holds."""
        self._needed_usd, self._needed_tokens = 0.0, 0
        self._writing: asyncio.Task[None] | None = None

    async def add(self, usd: float, tokens: int) -> None:
        """Cover a call; return when that is committed."""
        self.grow(usd, tokens)
        try:
            while self._is_short:
                await asyncio.shield(self._start())
        except BaseException:
            self.release(usd, tokens)
            raise

    def grow(self, usd: float, tokens: int) -> None:
        """Cover more for a call in flight, soon."""
        self._needed_usd += usd
        self._needed_tokens += tokens
        if self._is_short:
            self._start()

    def release(self, usd: float, tokens: int) -> None:
        """Stop covering a call: its cost is in the ledger now."""
        self._needed_usd -= usd
        self._needed_tokens -= tokens

    async def close(self) -> None:
        """Wait for a write that has begun; an error of it reaches the writer's users."""
        if self._writing is not None:
            await asyncio.wait([self._writing])

    @property
    def _is_short(self) -> bool:
        return self._needed_usd > self.usd + TOLERANCE or self._needed_tokens > self.tokens

    def _start(self) -> asyncio.Task[None]:
        if self._writing is None:
            self._writing = asyncio.create_task(self._cover())
            self._writing.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._writing

    async def _cover(self) -> None:
        try:
            await asyncio.sleep(0)  # calls that begin in the same turn are written together
            usd = max(0.0, self._needed_usd - self.usd)
            tokens = max(0, self._needed_tokens - self.tokens)
            await self._write(usd, tokens)
            self.usd += usd
            self.tokens += tokens
        finally:
            self._writing = None
