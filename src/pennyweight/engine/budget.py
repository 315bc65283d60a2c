"""What a run may spend. Hard: what is in flight is reserved before it is sent."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennyweight.store.settings import Spending
    from pennyweight.suite.values import Limits

TURN = 16
"""Tokens that a chat format may add to each turn."""


class ExhaustedError(Exception):
    """No further call may be made; says why, in a whole sentence."""


class TooMuchError(ExhaustedError):
    """One call alone is more than the budget allows; says why, for a sentence."""


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
    started: float = field(default_factory=time.monotonic)
    _usd_held: float = 0.0
    _tokens_held: int = 0
    _in_flight: int = 0
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def of(cls, limits: Limits, spent: Spending, started: float | None = None) -> Budget:
        """Go on with what the ledger says was spent, or may have been."""
        known = (spent["prompt_tokens"] or 0) + (spent["completion_tokens"] or 0)
        budget = cls(limits, spent["usd"] or 0.0, known)
        budget._usd_held = spent["held_usd"] or 0.0
        budget._tokens_held = spent["held_tokens"] or 0
        if started is not None:
            budget.started = started
        return budget

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
        if alone := self._never(most):
            raise TooMuchError(alone)
        while (short := self._short(most)) is not None:
            if not self._in_flight or short == "time":
                raise ExhaustedError(self._used_up(short, most))
            self._settled.clear()
            await self._settled.wait()
        self._usd_held += most.usd or 0.0
        self._tokens_held += most.tokens or 0
        self._in_flight += 1

    def settle(self, most: Amount, used: Amount) -> None:
        """Replace what was set aside by what was used."""
        self._in_flight -= 1
        if used.usd is not None:
            self.usd += used.usd
            self._usd_held -= most.usd or 0.0
        if used.tokens is not None:
            self.tokens += used.tokens
            self._tokens_held -= most.tokens or 0
        self._settled.set()

    def spend(self, used: Amount, most: Amount) -> None:
        """Count a call of several that were set aside together; `most` where it is not known."""
        self.usd += used.usd or 0.0
        self.tokens += used.tokens or 0
        self._usd_held += (most.usd or 0.0) if used.usd is None else 0.0
        self._tokens_held += (most.tokens or 0) if used.tokens is None else 0

    def hold(self, most: Amount) -> None:
        """Count a call as the most it may have taken, since nobody says what it took."""
        self._usd_held += most.usd or 0.0
        self._tokens_held += most.tokens or 0

    def wake(self) -> None:
        """Let those who wait look again."""
        self._settled.set()

    def _never(self, most: Amount) -> str | None:
        """Say why a call can never be made, however little else is spent."""
        usd, tokens = self.limits.usd, self.limits.tokens
        if tokens is not None and (most.tokens or 0) > tokens:
            return f"may take {most.tokens:,} tokens, more than limits.tokens ({tokens:,})"
        if usd is not None and (most.usd or 0.0) > usd + 1e-12:
            return f"may cost ${most.usd:.4g}, more than limits.usd (${usd:g})"
        return None

    def _used_up(self, what: str, most: Amount) -> str:
        """Say that there is not enough, and how much of it nobody can say was spent."""
        held = {"money": f"${self._usd_held:.4g}", "tokens": f"{self._tokens_held:,} tokens"}
        if {"money": self._usd_held > 1e-12, "tokens": self._tokens_held > 0}.get(what):
            known = f"${self.usd:.4g}" if what == "money" else f"{self.tokens:,} tokens"
            return (
                f"The budget of {what} is used up: {known} spent, and {held[what]} set aside for "
                "calls that did not say what they took and may be charged (timeouts, say)."
            )
        if what == "time":
            return "The budget of time is used up."
        if what == "money":
            spent = f"${self.usd:.4g} of ${self.limits.usd:g} spent"
            more = f"cost ${most.usd:.4g}" if most.usd else ""
        else:
            spent = f"{self.tokens:,} of {self.limits.tokens:,} spent"
            more = f"take {most.tokens:,}" if most.tokens else ""
        if not more:  # an agent says only afterwards what it took
            return f"The budget of {what} is used up: {spent}."
        return (
            f"The budget of {what} is used up: {spent}, and the next call may {more}. A smaller "
            "max_tokens makes calls smaller."
        )

    def _short(self, most: Amount) -> str | None:
        """Say what there is not enough of."""
        limits = self.limits
        if limits.seconds is not None and time.monotonic() - self.started >= limits.seconds:
            return "time"
        if limits.usd is not None:
            total = self.usd + self._usd_held + (most.usd or 0.0)
            if total > limits.usd + 1e-12:
                return "money"
        tokens = self.tokens + self._tokens_held + (most.tokens or 0)
        if limits.tokens is not None and tokens > limits.tokens:
            return "tokens"
        return None
