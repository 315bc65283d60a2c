"""Money and tokens that a worker of a shared run may spend, granted by the store in portions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pennyweight.engine.budget import ExhaustedError, GrantAnswer
from pennyweight.engine.calls import reserved_row
from pennyweight.engine.reservation_ledger import TOLERANCE
from pennyweight.store.grants import Granted, grant
from pennyweight.store.shared_runs import LostLeaseError
from pennyweight.store.store import Store
from pennyweight.suite.values import Limits

FIRST = 4
"""How many calls the first portion is enough for."""
SECONDS = 1.0
"""How long a portion lasts at the present speed: what a killed worker may leave unspent."""

UNWRITTEN = 1e-9
"""Sums of many floating-point amounts may differ by less than this."""


@dataclass(slots=True)
class _Purse:
    """The amounts of one kind, money or tokens."""

    limit: float | None
    used: float
    """What this worker counts as spent or reserved, including all that was before it."""
    allowed: float
    """What `used` may become."""
    held: float = 0.0
    """What the ledger holds for this worker."""
    needed: float = 0.0
    """Reserved for calls whose cost is not in the ledger yet."""
    before: float = 0.0

    @property
    def unused(self) -> float:
        return max(0.0, self.allowed - self.used)


class Grants:
    """Asks for the right to spend, before calls are made, and takes the place of their ledger.

    The ledger holds what was granted. What was spent of it is in the ledger too by the next
    question, which takes it back from what is held.
    """

    def __init__(
        self,
        store: Store,
        run_id: str,
        worker: str,
        limits: Limits,
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._store, self._run, self.worker, self._lost = store, run_id, worker, lost
        self._usd, self._tokens = _Purse(limits.usd, 0.0, 0.0), _Purse(limits.tokens, 0, 0)
        self._lock = asyncio.Lock()
        self._asked = time.monotonic()
        self._closed = False

    def start(self, usd: float, tokens: int) -> None:
        """Begin with nothing granted, when this much was spent or is reserved."""
        self._usd.allowed = self._usd.before = usd
        self._tokens.allowed = self._tokens.before = tokens

    @property
    def allowed_usd(self) -> float | None:
        """What may be spent or reserved, as the budget counts it."""
        return None if self._usd.limit is None else self._usd.allowed

    @property
    def allowed_tokens(self) -> float | None:
        """The same in tokens."""
        return None if self._tokens.limit is None else self._tokens.allowed

    @property
    def usd(self) -> float:
        """What the ledger holds for this worker."""
        return self._usd.held

    @property
    def tokens(self) -> int:
        """The same in tokens."""
        return int(self._tokens.held)

    def grow(self, usd: float, tokens: int) -> None:
        """Cover more for a call."""
        self._usd.needed += usd
        self._tokens.needed += tokens

    def release(self, usd: float, tokens: int) -> None:
        """Stop covering a call: its cost is in the ledger now."""
        self.grow(-usd, -tokens)

    async def close(self) -> None:
        """Wait for a question that is under way; ask no more."""
        async with self._lock:
            self._closed = True

    async def give_back(self, used: Callable[[], tuple[float, float]]) -> None:
        """Hold no more than calls need whose cost is not in the ledger yet."""
        async with self._lock:
            own = self._usd, self._tokens
            if self._closed or all(one.held - one.needed <= TOLERANCE for one in own):
                return
            self._usd.used, self._tokens.used = used()
            for one in own:
                one.allowed = one.used  # from now on, a call asks first
            needed = [one.needed for one in own]
            await self._granted(needed, needed, [(0.0, 0.0), (0.0, 0.0)])

    async def ask(
        self, used: Callable[[], tuple[float, float]], usd: float, tokens: int
    ) -> tuple[GrantAnswer, Granted | None]:
        """Ask for as much as the next call needs and some more.

        `used` returns what the budget counts as spent or reserved now.
        """
        async with self._lock:
            self._usd.used, self._tokens.used = used()
            now = time.monotonic()
            share = SECONDS / max(now - self._asked, 1e-3)
            wants = [_wanted(purse, need, share) for purse, need in self._purses(usd, tokens)]
            if not any(need > TOLERANCE for need, _ in wants):
                return GrantAnswer.GRANTED, None
            self._asked = now
            keep = [purse.needed + purse.unused for purse, _ in self._purses(usd, tokens)]
            bare = [purse.needed for purse, _ in self._purses(usd, tokens)]
            try:
                got = await self._granted(keep, bare, wants)
            except LostLeaseError:
                self._lost()
                raise ExhaustedError from None
            if got.is_enough:
                for (purse, _), more in zip(self._purses(usd, tokens), got.amounts, strict=True):
                    purse.allowed += more
                    purse.before = purse.used
                return GrantAnswer.GRANTED, got
            self._usd.allowed, self._tokens.allowed = self._usd.used, self._tokens.used
            # calls that have ended may have cost less than the ledger still holds for them
            awaited = got.others or any(amount > UNWRITTEN for amount in bare)
            return (GrantAnswer.LATER if awaited else GrantAnswer.NONE), got

    async def _granted(
        self, keep: Sequence[float], bare: Sequence[float], wants: Sequence[tuple[float, float]]
    ) -> Granted:
        """Ask the store; note what it holds for this worker then."""
        store, limits = self._store, (self._usd.limit, self._tokens.limit)
        got = await asyncio.to_thread(
            store.patiently,
            lambda _: grant(store, self._run, self.worker, reserved_row, limits, keep, bare, wants),
        )
        self._usd.held, self._tokens.held = got.held
        return got

    def _purses(self, usd: float, tokens: int) -> tuple[tuple[_Purse, float], ...]:
        return (self._usd, usd), (self._tokens, tokens)


def _wanted(purse: _Purse, most: float, share: float) -> tuple[float, float]:
    """Return what is missing for the next call, and what would be good to have."""
    if purse.limit is None:
        return 0.0, 0.0
    need = max(0.0, most - (purse.allowed - purse.used))
    spent = purse.used - purse.before
    return need, max(need, spent * share, 0.0 if spent else FIRST * most)
