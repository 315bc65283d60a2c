"""What a run may spend. Hard: what is in flight is reserved before it is sent."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pennyweight.engine.ending import CallTooLarge, Limit, LimitReached, StopReason
from pennyweight.store.store import Spending
from pennyweight.suite.values import Limits

TURN = 16
"""Tokens that a chat format may add to each turn."""
_TOLERANCE = 1e-12
"""Dollars by which sums may be off, since they are floating-point."""


class ExhaustedError(Exception):
    """No further call may be made; `reason` says why, None where the run just stops."""

    def __init__(self, reason: StopReason | None = None) -> None:
        self.reason = reason
        super().__init__(reason)


class CallTooLargeError(ExhaustedError):
    """One call alone exceeds a limit; smaller ones may still be made."""

    reason: CallTooLarge


@dataclass(frozen=True, slots=True)
class Amount:
    """Money and tokens of one call; what is not known is None."""

    usd: float | None
    tokens: int | None


def ceiling(turns: Sequence[Mapping[str, str]], tools: Sequence[Any] = ()) -> int:
    """Give the most tokens that messages can have: no tokenizer makes more of them than bytes.

    >>> ceiling([{"role": "user", "content": "¿2 + 2?"}])
    24
    """
    used = sum(_size(turn["content"]) + TURN for turn in turns)
    return used + sum(_size(json.dumps(tool, default=str)) + TURN for tool in tools)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


@dataclass(slots=True)
class Budget:
    """Dollars, tokens and seconds of a run: spent, reserved, and the most there may be.

    `usd` and `tokens` are what is known to be spent. A reply that did not say what it took counts
    as the most it may have taken.
    """

    limits: Limits
    usd: float = 0.0
    tokens: int = 0
    held_usd: float = 0.0
    held_tokens: int = 0
    """Reserved for calls under way, and for those that did not report their usage."""
    started: float = field(default_factory=time.monotonic)
    _in_flight: int = 0
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def of(cls, limits: Limits, spent: Spending, started: float | None = None) -> Budget:
        """Continue with what the ledger says was spent, or may have been."""
        known = (spent["prompt_tokens"] or 0) + (spent["completion_tokens"] or 0)
        return cls(
            limits,
            spent["usd"] or 0.0,
            known,
            spent["held_usd"] or 0.0,
            spent["held_tokens"] or 0,
            time.monotonic() if started is None else started,
        )

    @property
    def is_limited(self) -> bool:
        """Whether there is a most of money or tokens."""
        return self.limits.usd is not None or self.limits.tokens is not None

    @property
    def left(self) -> float | None:
        """Seconds until the time is over; None without a limit."""
        seconds = self.limits.seconds
        return None if seconds is None else max(0.0, self.started + seconds - time.monotonic())

    async def reserve(self, most: Amount) -> None:
        """Set aside the most a call may take; wait for others to end if there is not enough."""
        if too_large := self._too_large(most):
            raise CallTooLargeError(too_large)
        while (limit := self._short(most)) is not None:
            if not self._in_flight or limit is Limit.SECONDS:
                raise ExhaustedError(self.reached(limit, most))
            self._settled.clear()
            await self._settled.wait()
        self.hold(most)
        self._in_flight += 1

    def settle(self, most: Amount, used: Amount) -> None:
        """Replace what was set aside by what was used."""
        self._in_flight -= 1
        if used.usd is not None:
            self.usd += used.usd
            self.held_usd -= most.usd or 0.0
        if used.tokens is not None:
            self.tokens += used.tokens
            self.held_tokens -= most.tokens or 0
        self._settled.set()

    def spend(self, used: Amount, most: Amount) -> None:
        """Count a call of several that were set aside together; `most` where it is not known."""
        self.usd += used.usd or 0.0
        self.tokens += used.tokens or 0
        self.held_usd += (most.usd or 0.0) if used.usd is None else 0.0
        self.held_tokens += (most.tokens or 0) if used.tokens is None else 0

    def hold(self, most: Amount) -> None:
        """Count a call as the most it may have taken, since nobody says what it took."""
        self.held_usd += most.usd or 0.0
        self.held_tokens += most.tokens or 0

    def wake(self) -> None:
        """Let those who wait look again."""
        self._settled.set()

    def reached(self, limit: Limit, most: Amount | None = None) -> LimitReached:
        """Describe the state in which a limit stops the run; `most` is the next call's need."""
        if limit is Limit.USD:
            figures = self.limits.usd, self.usd, self.held_usd, most and most.usd
        elif limit is Limit.TOKENS:
            figures = self.limits.tokens, self.tokens, self.held_tokens, most and most.tokens
        else:
            figures = self.limits.seconds, time.monotonic() - self.started, 0.0, None
        maximum, spent, held, needed = figures
        held = held if held > _TOLERANCE else 0.0
        return LimitReached(limit, maximum or 0, spent, held, needed or None)

    def _too_large(self, most: Amount) -> CallTooLarge | None:
        """Find a limit that a call exceeds even when nothing else is spent."""
        usd, tokens = self.limits.usd, self.limits.tokens
        if tokens is not None and (most.tokens or 0) > tokens:
            return CallTooLarge(Limit.TOKENS, tokens, most.tokens or 0)
        if usd is not None and (most.usd or 0.0) > usd + _TOLERANCE:
            return CallTooLarge(Limit.USD, usd, most.usd or 0.0)
        return None

    def _short(self, most: Amount) -> Limit | None:
        """Find the limit that a call could exceed now."""
        limits = self.limits
        if limits.seconds is not None and time.monotonic() - self.started >= limits.seconds:
            return Limit.SECONDS
        if limits.usd is not None:
            total = self.usd + self.held_usd + (most.usd or 0.0)
            if total > limits.usd + _TOLERANCE:
                return Limit.USD
        tokens = self.tokens + self.held_tokens + (most.tokens or 0)
        if limits.tokens is not None and tokens > limits.tokens:
            return Limit.TOKENS
        return None
