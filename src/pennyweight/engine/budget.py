"""What a run may spend: calls in flight are reserved, and what is reserved is in the ledger."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from pennyweight.engine.ending import CallTooLarge, Limit, LimitReached, StopReason
from pennyweight.engine.reservation_ledger import TOLERANCE, ReservationLedger
from pennyweight.store.bills import Payer, largest_calls
from pennyweight.store.store import Store
from pennyweight.suite.values import Limits

if TYPE_CHECKING:
    from pennyweight.engine.sharing.grants import Grants

T = TypeVar("T", int, float)
TURN = 16
"""Tokens that a chat format may add to each turn."""
LATER = 0.5
"""Seconds until the store is asked again for what other workers may give back."""
FIRST_CALLS = 2
"""Calls of a payer in flight until one of them has reported its usage."""


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
    """Money and tokens of one call; None if not known."""

    usd: float | None
    tokens: int | None

    def times(self, calls: int) -> Amount:
        """Return the amount of several such calls."""
        if calls == 1:
            return self
        usd, tokens = self.usd, self.tokens
        return Amount(usd and usd * calls, tokens and tokens * calls)


def ceiling(turns: Sequence[Mapping[str, str]], tools: Sequence[Any] = ()) -> int:
    """Return the maximum number of tokens of messages: no tokenizer makes more than bytes.

    >>> ceiling([{"role": "user", "content": "¿2 + 2?"}])
    24
    """
    texts = [turn["content"] for turn in turns]
    if tools:
        texts += [json.dumps(tool, default=str) for tool in tools]
    used = TURN * len(texts)
    for text in texts:
        used += len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return used


class GrantAnswer(Enum):
    """What the store says to a worker that needs more."""

    GRANTED = "granted"
    LATER = "later"
    """Other workers hold what they may not need, or calls cost less than the ledger holds yet."""
    NONE = "none"


@dataclass(eq=False, slots=True)
class Reservation:
    """What is reserved for the calls of one attempt or judgment."""

    payer: Payer
    one: Amount
    """The computed maximum of one call."""
    calls: int = 1
    usd: float = 0.0
    tokens: int = 0
    """What is reserved: the maximum of all calls, or more if larger calls were seen."""


@dataclass(slots=True)
class Budget:
    """Dollars, tokens and seconds of a run: spent, reserved, and their limits.

    `usd` and `tokens` are known to be spent. A call that did not report its usage counts as its
    reservation. Under a limit of money or tokens, reservations learn: a call reserves at least
    what the largest call of its payer used, and only a few calls are in flight until one has
    reported its usage.
    """

    limits: Limits
    usd: float = 0.0
    tokens: int = 0
    held_usd: float = 0.0
    held_tokens: int = 0
    """Reserved for calls in flight, and for calls that did not report their usage."""
    started: float = field(default_factory=time.monotonic)
    largest: dict[Payer, Amount] = field(default_factory=dict)
    """The largest usage of one call so far, by payer."""
    ledger: ReservationLedger | None = None
    """Writes reservations to the ledger before calls are sent."""
    grants: Grants | None = None
    """What this worker of a shared run may spend; also its ledger."""
    is_limited: bool = field(init=False)
    """Whether there is a limit of money or tokens."""
    is_stopped: bool = False
    _open: dict[Payer, set[Reservation]] = field(default_factory=dict)
    _in_flight: int = 0
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def of(cls, limits: Limits, store: Store, run_id: str, started: float | None = None) -> Budget:
        """Continue with what the ledger of a run says was spent, or may have been."""
        spent = store.spent(run_id)
        return cls(
            limits,
            spent["usd"] or 0.0,
            (spent["prompt_tokens"] or 0) + (spent["completion_tokens"] or 0),
            spent["held_usd"] or 0.0,
            spent["held_tokens"] or 0,
            time.monotonic() if started is None else started,
            {payer: Amount(*used) for payer, used in largest_calls(store, run_id).items()},
        )

    def __post_init__(self) -> None:
        """Look at the limits once: each call asks several times."""
        self.is_limited = self.limits.usd is not None or self.limits.tokens is not None

    @property
    def left(self) -> float | None:
        """Seconds until the time is over; None without a limit."""
        seconds = self.limits.seconds
        return None if seconds is None else max(0.0, self.started + seconds - time.monotonic())

    async def reserve(self, payer: Payer, one: Amount, calls: int = 1) -> Reservation:
        """Reserve the maximum of some calls; wait for others to end if there is not enough."""
        most = one.times(calls)
        if self.is_limited or self.limits.seconds is not None:
            most = await self._available(payer, one, calls)
        reservation = Reservation(payer, one, calls, most.usd or 0.0, most.tokens or 0)
        self.held_usd += reservation.usd
        self.held_tokens += reservation.tokens
        self._in_flight += 1
        if self.is_limited:
            self._open.setdefault(payer, set()).add(reservation)
        if self.grants:
            self.grants.grow(reservation.usd, reservation.tokens)
        elif self.ledger:
            try:
                await self.ledger.add(reservation.usd, reservation.tokens)
            except BaseException:
                self.settle(reservation, Amount(0.0, 0))
                raise
        return reservation

    async def commit(self, payer: Payer, one: Amount, calls: int = 1) -> Amount:
        """Hold the maximum of a request that goes into a batch; its reply is counted later.

        Nothing waits for replies here, so a limit that leaves no room is reached at once.
        """
        most = one.times(calls)
        if self.is_limited or self.limits.seconds is not None:
            most = await self._available(payer, one, calls)
        self.held_usd += most.usd or 0.0
        self.held_tokens += most.tokens or 0
        return most

    async def _available(self, payer: Payer, one: Amount, calls: int) -> Amount:
        """Wait until the limits allow some calls; return their maximum."""
        if too_large := self._too_large(one.times(calls)):
            raise CallTooLargeError(too_large)
        while True:
            most = self.maximum(payer, one).times(calls)
            limit = self._short(most)
            if limit is None and not self._must_wait(payer):
                return most
            if self.grants and limit in {Limit.USD, Limit.TOKENS}:
                if await self._granted(self.grants, most):
                    continue
                limit = self._short(most)
            if limit is not None and (not self._in_flight or limit is Limit.SECONDS):
                raise ExhaustedError(self.reached(limit, most))
            self._settled.clear()
            await self._settled.wait()

    async def _granted(self, grants: Grants, most: Amount) -> bool:
        """Ask for the right to spend more; false if there is none left."""
        answer, state = await grants.ask(self._counted, most.usd or 0.0, most.tokens or 0)
        if answer is GrantAnswer.LATER:
            self._settled.clear()
            with suppress(TimeoutError):  # a call of this worker, or of another one, ends
                await asyncio.wait_for(self._settled.wait(), LATER)
            if self.is_stopped:
                raise ExhaustedError  # others may have money left
            return True
        if answer is GrantAnswer.NONE and state:
            own = self.held_usd, self.held_tokens
            self.usd, self.tokens = state.spent[0], int(state.spent[1])
            self.held_usd = max(own[0], state.reserved[0])
            self.held_tokens = max(own[1], int(state.reserved[1]))
            grants.start(self.usd + self.held_usd, self.tokens + self.held_tokens)
        return answer is GrantAnswer.GRANTED

    async def give_back(self) -> None:
        """Let other workers spend what was granted to this one and is not needed now."""
        if self.grants:
            await self.grants.give_back(self._counted)

    def _counted(self) -> tuple[float, float]:
        """Return what is spent or reserved."""
        return self.usd + self.held_usd, self.tokens + self.held_tokens

    def maximum(self, payer: Payer, one: Amount) -> Amount:
        """Return the maximum of one call: as computed, or as the largest call so far."""
        seen = self.largest.get(payer) if self.is_limited else None
        return Amount(_max(one.usd, seen.usd), _max(one.tokens, seen.tokens)) if seen else one

    def settle(self, reservation: Reservation, used: Amount) -> None:
        """Replace a reservation by what was used; keep it where that is not known."""
        self._in_flight -= 1
        if self.is_limited:
            self._open[reservation.payer].discard(reservation)
        if used.usd is not None:
            self.usd += used.usd
            self.held_usd -= reservation.usd
        if used.tokens is not None:
            self.tokens += used.tokens
            self.held_tokens -= reservation.tokens
        if self.grants:  # it is held until the ledger has it
            usd = max(0.0, (used.usd or 0.0) - reservation.usd)
            tokens = max(0, (used.tokens or 0) - reservation.tokens)
            reservation.usd, reservation.tokens = reservation.usd + usd, reservation.tokens + tokens
            self.grants.grow(usd, tokens)
        if self.is_limited:
            self._learn(reservation.payer, used)
        self._settled.set()

    def release(self, reservation: Reservation) -> None:
        """Note that the ledger has the calls of a reservation now."""
        if ledger := self.grants or self.ledger:
            ledger.release(reservation.usd, reservation.tokens)

    def spend(self, payer: Payer, one: Amount, used: Amount) -> None:
        """Count one of several calls that were reserved together; `one` where it is not known."""
        self._learn(payer, used)
        self.usd += used.usd or 0.0
        self.tokens += used.tokens or 0
        most = self.maximum(payer, one)
        self.held_usd += (most.usd or 0.0) if used.usd is None else 0.0
        self.held_tokens += (most.tokens or 0) if used.tokens is None else 0

    def hold(self, payer: Payer, one: Amount) -> None:
        """Count a call as its maximum because its usage is not known."""
        most = self.maximum(payer, one)
        self.held_usd += most.usd or 0.0
        self.held_tokens += most.tokens or 0

    def wake(self) -> None:
        """Let waiting calls check again: the run stops."""
        self.is_stopped = True
        self._settled.set()

    def reached(self, limit: Limit, most: Amount | None = None) -> LimitReached:
        """Describe the state in which a limit stops the run; `most` is what the next call needs."""
        if limit is Limit.USD:
            figures = self.limits.usd, self.usd, self.held_usd, most and most.usd
        elif limit is Limit.TOKENS:
            figures = self.limits.tokens, self.tokens, self.held_tokens, most and most.tokens
        else:
            figures = self.limits.seconds, time.monotonic() - self.started, 0.0, None
        maximum, spent, held, needed = figures
        held = held if held > TOLERANCE else 0.0
        return LimitReached(limit, maximum or 0, spent, held, needed or None)

    def _learn(self, payer: Payer, used: Amount) -> None:
        """Raise the largest usage of a payer, and the reservations of its calls in flight."""
        if not self.is_limited or (used.usd == 0 and used.tokens == 0):
            return
        seen = self.largest.get(payer)
        larger = seen or Amount(None, None)
        larger = Amount(_max(larger.usd, used.usd), _max(larger.tokens, used.tokens))
        if larger == seen:
            return
        self.largest[payer] = larger
        for reservation in self._open.get(payer, ()):
            most = self.maximum(payer, reservation.one).times(reservation.calls)
            usd = (most.usd or 0.0) - reservation.usd
            tokens = (most.tokens or 0) - reservation.tokens
            reservation.usd += usd
            reservation.tokens += tokens
            self.held_usd += usd
            self.held_tokens += tokens
            if ledger := self.grants or self.ledger:
                ledger.grow(usd, tokens)

    def _must_wait(self, payer: Payer) -> bool:
        """Whether enough calls are in flight while no call of a payer has reported its usage."""
        unknown = self.is_limited and payer not in self.largest
        return unknown and len(self._open.get(payer, ())) >= FIRST_CALLS

    def _too_large(self, most: Amount) -> CallTooLarge | None:
        """Return the limit that a call exceeds even if nothing else is spent."""
        usd, tokens = self.limits.usd, self.limits.tokens
        if tokens is not None and (most.tokens or 0) > tokens:
            return CallTooLarge(Limit.TOKENS, tokens, most.tokens or 0)
        if usd is not None and (most.usd or 0.0) > usd + TOLERANCE:
            return CallTooLarge(Limit.USD, usd, most.usd or 0.0)
        return None

    def _short(self, most: Amount) -> Limit | None:
        """Return the limit that a call could exceed now."""
        limits = self.limits
        if limits.seconds is not None and time.monotonic() - self.started >= limits.seconds:
            return Limit.SECONDS
        usd = self.grants.allowed_usd if self.grants else limits.usd
        if usd is not None:
            total = self.usd + self.held_usd + (most.usd or 0.0)
            if total > usd + TOLERANCE:
                return Limit.USD
        allowed = self.grants.allowed_tokens if self.grants else limits.tokens
        tokens = self.tokens + self.held_tokens + (most.tokens or 0)
        if allowed is not None and tokens > allowed:
            return Limit.TOKENS
        return None


def _max(*values: T | None) -> T | None:
    return max((value for value in values if value is not None), default=None)
