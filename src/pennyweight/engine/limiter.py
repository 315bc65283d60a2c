"""How many calls one account has under way at the same time.

A fixed number, or one that finds its own level: it grows while more calls get more done, shrinks
when the provider says so, and pauses while the provider is down. An account that is down for long,
or refuses its key, is closed: the rest of its attempts are left for a resumed run. So is a model
that the provider does not know, while the account's others go on.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress

from pennyweight.engine.budget import ExhaustedError
from pennyweight.engine.ending import AccountClosed, ClosedBecause
from pennyweight.models.failure import LONGEST_WAIT, RETRYABLE, CallError

MAX_CALLS = 1000
"""The most calls at the same time."""
START = 8
FILES, RESERVE = 4096, 64
"""Open files that are wanted, for a connection each, and those that are kept for other things."""
USUAL = 128
"""Up to so many calls at the same time, what a crash can lose is what is under way, no more."""
LONGEST_PAUSE = LONGEST_WAIT
PATIENCE = 600.0
"""Seconds without any answer after which an account is closed."""
FEW, MANY = 6, 10
"""Failures in a row: so many at least before patience ends; so many refusals close at once."""
REFUSALS = frozenset({"auth", "quota", "not_found"})
TRIES = 6
"""How often an attempt is tried where only it fails."""
LIMITED, DOWN = 300.0, 120.0
"""Seconds it goes on beyond that, while its rate is limited or a provider that answered is down."""
PAUSING = frozenset({"rate_limit", "server", "connection", "timeout"})
LONELY = frozenset({"connection", "timeout"})
"""What pauses an account only when nothing was answered since the last failure."""
_BETTER = 1.05


def open_files() -> int:
    """Say how many connections may be open, once as many files are allowed as can be."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:  # Windows has no such limit
        return MAX_CALLS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = resource.RLIM_INFINITY
    wanted = FILES if hard == endless else min(FILES, hard)
    if soft != endless and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MAX_CALLS if soft == endless else max(1, min(MAX_CALLS, soft - RESERVE))


class ClosedError(ExhaustedError):
    """An account takes no more calls."""


class Limiter:
    """Places for calls; `fixed` keeps their number, else it adapts up to `most`."""

    def __init__(self, fixed: int | None, most: int | None = None, account: str = "") -> None:
        self.adapts = fixed is None
        self.most = min(most or MAX_CALLS, open_files())
        self.limit = float(min(fixed or START, self.most))
        self.under_way = 0
        self.account = account or "The provider"
        self.is_closed = False
        self.reason: AccountClosed | None = None
        """Why the account was given up; None where the run just stops."""
        self._closing = asyncio.Event()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.paused_until = 0.0
        """Until when nobody is let in."""
        self._failures = 0
        self._down_since: float | None = None
        self._in_row = 0
        self._answered = False
        self._refused: dict[str, int] = {}
        self._unknown: dict[str, AccountClosed] = {}
        self._old = self._sent_before = 0
        self._window_start = time.monotonic()
        self._window_done = 0
        self._best_rate = 0.0
        self._growing = True

    @property
    def places(self) -> int:
        """How many calls there may ever be at the same time."""
        return self.most if self.adapts else int(self.limit)

    @property
    def spare(self) -> int:
        """How many places are given back before their record is written: none of the usual ones.

        With hundreds of calls under way, waiting for each commit would leave a tenth of the
        provider's time unused.
        """
        return max(0, int(self.limit) - USUAL) // 2

    async def enter(self, model: str = "") -> None:
        """Wait for a place; raises ClosedError when there will be none."""
        while True:
            if self.is_closed:
                raise ClosedError(self.reason)
            if model in self._unknown:
                self._wake()  # the place goes to somebody else
                raise ClosedError(self._unknown[model])
            pause = self.paused_until - time.monotonic()
            if pause > 0:
                await self.rest(pause)
            elif self.under_way < int(self.limit):
                self.under_way += 1
                return
            else:
                place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting.append(place)
                await place

    async def rest(self, seconds: float) -> None:
        """Wait some seconds, but not beyond the moment the account is closed."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), min(seconds, LONGEST_WAIT))

    def close(self, reason: AccountClosed | None = None) -> None:
        """Accept no more calls and release those that wait; the first reason is kept."""
        if not self.is_closed:
            self.is_closed, self.reason = True, reason
        self._closing.set()
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)

    def leave(self) -> None:
        """Give a place back."""
        self.under_way -= 1
        self._wake()

    def _wake(self) -> None:
        free = int(self.limit) - self.under_way
        while free > 0 and self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                free -= 1

    def succeeded(self) -> None:
        """Note a call that was answered; after a round of them, see whether growing helped."""
        self._failures = self._in_row = 0
        self._answered = True
        self._refused.clear()
        self._down_since = None
        self._old -= self._old > 0
        self._sent_before -= self._sent_before > 0
        if not self.adapts:
            return
        self._window_done += 1
        if self._window_done < max(16, 2 * self.limit):
            return
        now = time.monotonic()
        rate = self._window_done / max(now - self._window_start, 1e-6)
        self._window_start, self._window_done = now, 0
        busy = self.under_way >= int(self.limit) - 1
        if rate > self._best_rate * _BETTER and busy:
            self._best_rate = rate
            self._set(self.limit * (1.5 if self._growing else 1.1))
        else:
            self._growing = False
            self._best_rate *= 0.98  # look again some time later

    def failed(self, error: CallError, model: str = "") -> None:
        """Note a call that failed: slow down when told to, pause while the provider is down.

        `model` is what was called, so that one which is not known closes no others.
        """
        now = time.monotonic()
        old, self._old = self._old > 0, max(0, self._old - 1)
        counted = self._sent_before <= 0  # those sent before the last failure are one with it
        self._sent_before = max(0, self._sent_before - 1)
        if error.kind == "rate_limit":
            self._growing = False
            if self.adapts and not old:  # calls sent before it shrank say nothing about it now
                self._old = self.under_way - 1
                self._set(max(1.0, self.limit * 0.7))
        if error.kind in PAUSING and not error.final:
            if counted:
                self._failures += 1
                self._sent_before = self.under_way - 1
            if self._in_row or error.kind not in LONELY:
                self._pause(now, error.retry_after or min(0.1 * 2 ** min(self._failures, 9), 30.0))
        if error.kind == "rate_limit":  # what was possible before says nothing about now
            self._best_rate = 0.0
            self._window_start, self._window_done = max(now, self.paused_until), 0
        self._lose_patience(error, now, model)

    def is_enough(self, error: CallError, tries: int, since: float) -> bool:
        """Whether to give an attempt up that has failed so often, for the first time then.

        One that only waits for its account to recover goes on for minutes: a refusal for its rate
        costs nothing, and an outage is not the attempt's fault. A provider that never answered is
        taken for a wrong address.
        """
        if tries < TRIES:
            return False
        now = time.monotonic()
        if error.kind == "rate_limit":
            return now - since > LIMITED
        silent = self._down_since is not None and now - self._down_since > 1.0
        down = self._answered and silent and error.kind in {"server", "connection"}
        return not down or now - since > DOWN

    def _lose_patience(self, error: CallError, now: float, model: str) -> None:
        """Close the account when waiting for it is of no use."""
        if error.kind in REFUSALS:
            self._refuse(error, model if error.kind == "not_found" else "")
        else:
            self._refused.clear()
        if error.kind not in RETRYABLE or error.final:
            return
        if (error.retry_after or 0.0) > LONGEST_WAIT:
            self.close(self._given_up(ClosedBecause.LONG_WAIT, error.retry_after or 0.0))
        self._in_row += 1
        if self._down_since is None:
            self._down_since = now
        if self._in_row >= FEW and now - self._down_since > PATIENCE:
            self.close(self._given_up(ClosedBecause.SILENT, PATIENCE, error))

    def _refuse(self, error: CallError, model: str) -> None:
        """Count a refusal; many in a row close the account, or the one model they concern."""
        self._refused[model] = self._refused.get(model, 0) + 1
        if self._refused[model] < MANY:
            return
        reason = self._given_up(ClosedBecause.REFUSED, MANY, error, model)
        if model:
            self._unknown.setdefault(model, reason)
        else:
            self.close(reason)

    def _given_up(
        self,
        because: ClosedBecause,
        amount: float,
        error: CallError | None = None,
        model: str = "",
    ) -> AccountClosed:
        return AccountClosed(self.account, because, amount, str(error or ""), model)

    def _pause(self, now: float, seconds: float | None) -> None:
        if seconds:
            self.paused_until = max(self.paused_until, now + min(seconds, LONGEST_WAIT))

    def _set(self, limit: float) -> None:
        self.limit = min(limit, float(self.most))
        self._wake()
