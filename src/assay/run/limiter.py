"""How many calls one account has under way at the same time.

A fixed number, or one that finds its own level: it grows while more calls get more done, shrinks
when the provider says so, and pauses while the provider is down.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.models.failure import CallError

START, MOST = 8, 1000
LONGEST_PAUSE = 120.0
_BETTER = 1.05


class Limiter:
    """Places for calls; `fixed` keeps their number, else it adapts up to `most`."""

    def __init__(self, fixed: int | None, most: int | None = None) -> None:
        self.adapts = fixed is None
        self.most = min(most or MOST, MOST)
        self.limit = float(min(fixed or START, most or MOST))
        self.under_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._paused_until = 0.0
        self._failures = 0
        self._window_start = time.monotonic()
        self._window_done = 0
        self._best_rate = 0.0
        self._growing = True

    async def enter(self) -> None:
        """Wait for a place."""
        while True:
            pause = self._paused_until - time.monotonic()
            if pause > 0:
                await asyncio.sleep(pause)
            elif self.under_way < int(self.limit):
                self.under_way += 1
                return
            else:
                place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting.append(place)
                await place

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
        self._failures = 0
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

    def failed(self, error: CallError) -> None:
        """Note a call that failed: slow down when told to, pause while the provider is down."""
        now = time.monotonic()
        if error.kind == "rate_limit":
            self._growing = False
            if self.adapts:
                self._set(max(1.0, self.limit * 0.7))
            self._pause(now, error.retry_after)
        elif error.kind == "server":
            self._failures += 1
            self._pause(now, error.retry_after or min(0.1 * 2**self._failures, 30.0))

    def _pause(self, now: float, seconds: float | None) -> None:
        if seconds:
            self._paused_until = max(self._paused_until, now + min(seconds, LONGEST_PAUSE))

    def _set(self, limit: float) -> None:
        self.limit = min(limit, float(self.most))
        self._wake()
