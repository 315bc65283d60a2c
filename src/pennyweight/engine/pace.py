"""How many requests and tokens an account gets in a minute: calls wait for their turn.

Turns are moments in time, one after the other, so calls are spread evenly and no minute has more
than the limit. They are taken in portions of about a second; the workers of a shared run take them
from the store.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Any

from pennyweight.engine.budget import ceiling
from pennyweight.engine.limiter import ClosedError
from pennyweight.models.model import Model, Reply, Request, Settings
from pennyweight.suite.values import Limits

WINDOW, LATE = 62.0, 1.5
"""The limit is that of so many seconds, because a turn may be used that much later."""
PORTION = 1.0
"""Seconds whose turns are taken together."""
UNUSED = 1.0
"""Turns that a call did not use are not older than so many seconds when they are used."""
OUTPUT_TOKENS = 4096
"""The output expected of a call whose settings set no limit."""

Turns = Callable[[str, float, float], Awaitable[float]]
"""Takes an amount of turns of a kind, at a rate; returns in how many seconds they begin."""


@dataclass(slots=True)
class OwnTurns:
    """The turns of a process that calls alone."""

    _next: dict[str, float] = field(default_factory=dict)

    async def take(self, kind: str, amount: float, rate: float) -> float:
        """Take the next turns of a kind."""
        now = time.monotonic()
        start = max(now, self._next.get(kind, 0.0))
        self._next[kind] = start + amount / rate
        return start - now


@dataclass(slots=True)
class _Meter:
    """The turns of one kind, requests or tokens, that one account may use."""

    kind: str
    per_minute: float
    turns: Turns
    _start: float = 0.0
    """When the portion begins (monotonic)."""
    _amount: float = 0.0
    _used: float = 0.0
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def rate(self) -> float:
        """How much may be used in a second."""
        return self.per_minute / WINDOW

    async def wait(self, expected: Callable[[], float], closing: asyncio.Event) -> float:
        """Wait until a call may be made, and count what is expected of it, which is returned.

        Raise ClosedError if the run stops.
        """
        async with self._lock:  # those who wait go one after the other, and learn meanwhile
            amount = min(expected(), self.per_minute)
            if not closing.is_set():
                await self._fetch(amount)
            ready = self._start + max(0.0, self._used) / self.rate
            self._used += amount
            while not closing.is_set() and (pause := ready - time.monotonic()) > 0:
                with suppress(TimeoutError):
                    await asyncio.wait_for(closing.wait(), pause)
            if closing.is_set():
                raise ClosedError
            return amount

    async def _fetch(self, amount: float) -> None:
        """Take another portion if the present one is used up; what is too late is gone.

        A portion is enough for a whole number of calls like this one. With other workers, it may
        begin long after the last one: then nothing is left of that.
        """
        late = (time.monotonic() - LATE - self._start) * self.rate
        self._used = max(self._used, min(late, self._amount))
        left = self._amount - self._used
        if left + 1e-9 >= amount:
            return
        calls = max(1, ceil(self.rate * PORTION / amount - 1e-9))
        wanted = calls * amount - min(0.0, left)
        start = time.monotonic() + await self.turns(self.kind, wanted, self.rate)
        ended = self._start + self._amount / self.rate
        carried = min(left, max(0.0, ended + LATE - start) * self.rate)
        self._start, self._amount, self._used = start, wanted, -carried

    def settle(self, difference: float) -> None:
        """Count what a call used beyond what was expected of it; negative if it used less.

        What it did not use is given back as turns of the last second, no older ones.
        """
        ahead = self._start - time.monotonic()
        floor = (-ahead if ahead < 0 else min(ahead, UNUSED)) - UNUSED
        used = self._used + difference
        self._used = max(used, min(self._used, floor * self.rate))


@dataclass(slots=True)
class Pace:
    """The limits of one account."""

    meters: Mapping[str, _Meter]
    _largest: int | None = None
    """The most tokens that a call has used so far: what is expected of the next."""
    _closing: asyncio.Event = field(default_factory=asyncio.Event)

    def close(self) -> None:
        """Let nobody call any more: the run stops."""
        self._closing.set()

    async def called(self, model: Model, request: Request) -> Reply:
        """Call when it is this call's turn."""
        expected = await self._wait(model, request)
        try:
            reply = await model.call(request)
        except BaseException:
            self._settle(expected, None)
            raise
        usage = reply.usage
        known = usage.prompt_tokens is not None and usage.completion_tokens is not None
        used = (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
        self._settle(expected, used if known and reply.lane == "live" else None)
        return reply

    async def _wait(self, model: Model, request: Request) -> float:
        expected = 0.0
        for kind, meter in self.meters.items():
            if kind == "tokens":
                used = partial(self._expected, model, request)
                expected = await meter.wait(used, self._closing)
            else:
                await meter.wait(lambda: 1.0, self._closing)
        return expected

    def _expected(self, model: Model, request: Request) -> int:
        turns = [{"content": message.content} for message in request.messages]
        most = ceiling(turns) + (model.most_output(request.settings) or OUTPUT_TOKENS)
        return most if self._largest is None else min(most, self._largest)

    def _settle(self, expected: float, used: int | None) -> None:
        if used is not None and (meter := self.meters.get("tokens")):
            self._largest = max(used, self._largest or 0)
            meter.settle(used - expected)


class PacedModel(Model):
    """A model whose calls wait for their turn."""

    def __init__(self, model: Model, pace: Pace) -> None:
        self.name, self.account, self.limit = model.name, model.account, model.limit
        self.ignores = model.ignores
        self._model, self._pace = model, pace

    def encode(self, request: Request) -> tuple[str, dict[str, Any]] | None:
        """Return the request as it is sent."""
        return self._model.encode(request)

    def most_output(self, settings: Settings) -> int | None:
        """Return the maximum number of output tokens of a call."""
        return self._model.most_output(settings)

    def batches(self) -> Any:
        """Return the batches of the model, which have no turns."""
        return self._model.batches()

    async def call(self, request: Request) -> Reply:
        """Wait for a turn, then call."""
        return await self._pace.called(self._model, request)

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()


def paced(
    models: Mapping[str, Model], limits: Limits, turns: Turns | None = None
) -> tuple[dict[str, Model], list[Pace]]:
    """Let calls of models wait for their turn, if the limits of a run say so.

    Models of one account share its turns. `turns` come from the store if workers share them.
    """
    wanted = {"tokens": limits.tokens_per_minute, "requests": limits.requests_per_minute}
    if not any(wanted.values()):
        return dict(models), []
    take, paces = turns or OwnTurns().take, {}
    for model in models.values():
        if model.account not in paces:
            paces[model.account] = Pace(
                {
                    kind: _Meter(f"{kind} of {model.account}", float(number), take)
                    for kind, number in wanted.items()
                    if number is not None
                }
            )
    own: dict[str, Model] = {
        name: PacedModel(model, paces[model.account]) for name, model in models.items()
    }
    return own, list(paces.values())
