"""What a run may spend. Hard: what is in flight is reserved before it is sent."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.suite.values import Limits


class ExhaustedError(Exception):
    """There is no budget for another call; says which one ran out."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Money and tokens of one call; money is None where the price is not known."""

    usd: float | None
    tokens: int


@dataclass(slots=True)
class Budget:
    """Dollars, tokens and seconds of a run: spent, reserved, and the most there may be."""

    limits: Limits
    usd: float = 0.0
    tokens: int = 0
    started: float = field(default_factory=time.monotonic)
    _usd_reserved: float = 0.0
    _tokens_reserved: int = 0
    _in_flight: int = 0
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    async def reserve(self, most: Amount) -> None:
        """Set aside the most a call may take; wait for others to end if there is not enough."""
        while (short := self._short(most)) is not None:
            if not self._in_flight or short == "time":
                raise ExhaustedError(short)
            self._settled.clear()
            await self._settled.wait()
        self._usd_reserved += most.usd or 0.0
        self._tokens_reserved += most.tokens
        self._in_flight += 1

    def settle(self, most: Amount, used: Amount) -> None:
        """Replace what was set aside by what was used."""
        self._usd_reserved -= most.usd or 0.0
        self._tokens_reserved -= most.tokens
        self._in_flight -= 1
        self.usd += used.usd or 0.0
        self.tokens += used.tokens
        self._settled.set()

    def _short(self, most: Amount) -> str | None:
        """Say what there is not enough of."""
        limits = self.limits
        if limits.seconds is not None and time.monotonic() - self.started >= limits.seconds:
            return "time"
        if limits.usd is not None:
            total = self.usd + self._usd_reserved + (most.usd or 0.0)
            if total > limits.usd + 1e-12:
                return "money"
        tokens = self.tokens + self._tokens_reserved + most.tokens
        if limits.tokens is not None and tokens > limits.tokens:
            return "tokens"
        return None
