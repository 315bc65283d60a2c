"""How many calls of one account are in flight at the same time.

The number is fixed, or adapts: it grows while that increases throughput, shrinks when the provider
limits the rate, and calls pause while the provider is down. An account that is down for long, or
that refuses its key, is closed, and its remaining attempts are left for a resumed run. A model that
the provider does not know is closed alone.
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
START = 8
FILES, RESERVE = 4096, 64
"""Wanted open files, one per connection, and how many of them are left for other uses."""
USUAL = 128
"""Up to this concurrency, a crash loses only the calls in flight."""
PATIENCE = 600.0
"""Seconds without any reply after which an account is closed."""
UNREACHED, UNANSWERED = 3.0, 30.0
"""The same for an account that never answered: it cannot be connected to, or only fails."""
FEW, MANY = 6, 10
"""Failures in a row that an account must have before it is closed, and refusals that close it."""
REFUSALS = frozenset({"auth", "quota", "not_found"})
TRIES = 6
"""Tries of an attempt if only this attempt fails."""
LIMITED, DOWN = 300.0, 120.0
"""Seconds of further tries while the rate is limited, or while a provider is down."""
PAUSING = frozenset({"rate_limit", "server", "connection", "timeout"})
LONELY = frozenset({"connection", "timeout"})
"""Errors that pause an account only if there was no reply since the last failure."""
_BETTER = 1.05


def open_files() -> int:
    """Raise the limit of open files as far as possible; return how many connections may be open."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:  # Windows has no limit
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
    """Places for calls. Their number is `fixed`, or adapts up to `most`."""

    def __init__(self, fixed: int | None, most: int | None = None, account: str = "") -> None:
        self.adapts = fixed is None
        self.total = fixed or MAX_CALLS
        """The concurrency of the run, which its workers share."""
        self.most = min(most or MAX_CALLS, open_files())
        self.limit = float(min(fixed or START, self.most))
        self.places = self.most if self.adapts else int(self.limit)
        """The maximum number of concurrent calls."""
        self.in_flight = 0
        self.account = account or "The provider"
        self.is_closed = False
        self.reason: AccountClosed | None = None
        """Why the account was given up; None where the run just stops."""
        self._closing = asyncio.Event()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.paused_until = 0.0
        """No call starts before this time (monotonic)."""
        self._failures = 0
        self._down_since: float | None = None
        self._in_row = 0
        self.has_answered = False
        """Whether there was ever a reply."""
        self._refused: dict[str, int] = {}
        self._unknown: dict[str, AccountClosed] = {}
        self._old = self._sent_before = 0
        self._window_start = time.monotonic()
        self._window_done = 0
        self._best_rate = 0.0
        self._growing = True

    @property
    def spare(self) -> int:
        """How many places are released before their record is committed: none up to `USUAL`.

        With hundreds of calls in flight, waiting for each commit would leave a tenth of the
        provider's capacity unused.
        """
        return max(0, int(self.limit) - USUAL) // 2

    async def enter(self, model: str = "") -> None:
        """Wait for a place; raise ClosedError when there will be none."""
        while True:
            if self.is_closed:
                raise ClosedError(self.reason)
            if model in self._unknown:
                self._wake()  # another call takes the place
                raise ClosedError(self._unknown[model])
            pause = self.paused_until - time.monotonic()
            if pause > 0:
                await self.rest(pause)
            elif self.in_flight < int(self.limit):
                self.in_flight += 1
                return
            else:
                place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting.append(place)
                await place

    async def rest(self, seconds: float) -> None:
        """Wait some seconds, or until the account is closed."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), min(seconds, LONGEST_WAIT))

    def close(self, reason: AccountClosed | None = None) -> None:
        """Accept no more calls and release those that wait; the first reason counts."""
        if not self.is_closed:
            self.is_closed, self.reason = True, reason
        self._closing.set()
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)

    def leave(self) -> None:
        """Release a place."""
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        free = int(self.limit) - self.in_flight
        while free > 0 and self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                free -= 1

    def succeeded(self) -> None:
        """Note a reply; after a round of them, check whether growing has helped."""
        self._failures = self._in_row = 0
        self.has_answered = True
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
        busy = self.in_flight >= int(self.limit) - 1
        if rate > self._best_rate * _BETTER and busy:
            self._best_rate = rate
            self._set(self.limit * (1.5 if self._growing else 1.1))
        else:
            self._growing = False
            self._best_rate *= 0.98  # so that growing is tried again later

    def failed(self, error: CallError, model: str = "") -> None:
        """Note a failed call: slow down if the rate is limited, pause while the provider is down.

        `model` is the model that was called: an unknown one is closed alone.
        """
        now = time.monotonic()
        old, self._old = self._old > 0, max(0, self._old - 1)
        counted = self._sent_before <= 0  # calls sent before the last failure count with it
        self._sent_before = max(0, self._sent_before - 1)
        if error.kind == "rate_limit":
            self._growing = False
            if self.adapts and not old:  # calls sent before the limit shrank do not concern it
                self._old = self.in_flight - 1
                self._set(max(1.0, self.limit * 0.7))
        if error.kind in PAUSING and not error.final:
            if counted:
                self._failures += 1
                self._sent_before = self.in_flight - 1
            if self._in_row or error.kind not in LONELY:
                wait = error.retry_after or min(0.1 * 2 ** min(self._failures, 9), 30.0)
                self.paused_until = max(self.paused_until, now + min(wait, LONGEST_WAIT))
        if error.kind == "rate_limit":  # the earlier rate is no longer possible
            self._best_rate = 0.0
            self._window_start, self._window_done = max(now, self.paused_until), 0
        self._lose_patience(error, now, model)

    def is_enough(self, error: CallError, tries: int, since: float) -> bool:
        """Whether an attempt has failed often enough; `since` is its first failure.

        An attempt that waits for its account to recover is retried for minutes: a rate-limited call
        costs nothing, and an outage is not its fault. A provider that never answered is considered
        a wrong address.
        """
        if tries < TRIES:
            return False
        if error.reported:  # an outage that only the agent claims is not waited for
            return True
        now = time.monotonic()
        if error.kind == "rate_limit":
            return now - since > LIMITED
        silent = self._down_since is not None and now - self._down_since > 1.0
        down = self.has_answered and silent and error.kind in {"server", "connection"}
        return not down or now - since > DOWN

    def _lose_patience(self, error: CallError, now: float, model: str) -> None:
        """Close the account when further waiting is useless."""
        if error.kind in REFUSALS:
            self._refuse(error, model if error.kind == "not_found" else "")
        else:
            self._refused.clear()
        if error.kind not in RETRYABLE or error.final:
            return
        if (error.retry_after or 0.0) > LONGEST_WAIT:
            wait = error.retry_after or 0.0
            self.close(AccountClosed(self.account, ClosedBecause.LONG_WAIT, wait))
        self._in_row += 1
        if self._down_since is None:
            self._down_since = now
        silent, patience = now - self._down_since, self._patience(error)
        if self._in_row >= FEW and silent > patience:
            because = ClosedBecause.SILENT if self.has_answered else ClosedBecause.NEVER_ANSWERED
            self.close(AccountClosed(self.account, because, patience, str(error)))

    def _patience(self, error: CallError) -> float:
        """Return the seconds of silence to wait for: seconds if it may be a wrong address."""
        if self.has_answered or error.kind == "rate_limit" or error.reported:
            return PATIENCE
        unreached = error.kind == "connection" and not error.sent
        return min(PATIENCE, UNREACHED if unreached else UNANSWERED)

    def _refuse(self, error: CallError, model: str) -> None:
        """Count a refusal; many in a row close the account, or the one model they concern."""
        self._refused[model] = self._refused.get(model, 0) + 1
        if self._refused[model] < MANY:
            return
        reason = AccountClosed(self.account, ClosedBecause.REFUSED, MANY, str(error), model)
        if model:
            self._unknown.setdefault(model, reason)
        else:
            self.close(reason)

    def allow(self, places: int) -> None:
        """Set a fixed number of places to this worker's share of them."""
        if not self.adapts:
            self.limit = float(min(places, self.places))
            self._wake()

    def _set(self, limit: float) -> None:
        self.limit = min(limit, float(self.most))
        self._wake()
