"""Progress of a run: a line that renews itself in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.run.budget import Budget
    from assay.run.engine import Tally
    from assay.store.store import Row

FAST, SLOW = 0.25, 10.0


class Progress:
    """Says how far a run is: rate, time left, share correct so far, cost, errors by kind."""

    def __init__(
        self, right: Callable[[list[Row]], tuple[int, int]], out: TextIO | None = None
    ) -> None:
        self.out = sys.stderr if out is None else out
        self.right, self.live = right, self.out.isatty()
        self.began = self.shown = time.monotonic()
        self.waiting: list[Row] = []
        self.correct = self.judged = 0
        self.lock = threading.Lock()

    def __call__(self, tally: Tally, budget: Budget, rows: list[Row]) -> None:
        """Take in what was committed; called by the writer's thread."""
        with self.lock:
            self.waiting += rows
            now = time.monotonic()
            if now - self.shown < (FAST if self.live else SLOW):
                return
            self.shown = now
            self._count()
            line = self.line(tally, budget, now)
            self.out.write(f"\r\x1b[K{line[:200]}" if self.live else f"{line}\n")
            self.out.flush()

    def _count(self) -> None:
        correct, judged = self.right(self.waiting)
        self.correct, self.judged = self.correct + correct, self.judged + judged
        self.waiting = []

    def line(self, tally: Tally, budget: Budget, now: float) -> str:
        """Write the state in one line."""
        rate = tally.done / max(now - self.began, 1e-9)
        parts = [f"{tally.done:,} of {tally.total:,}", f"{rate:,.1f}/s"]
        if tally.done:
            parts.append(f"{_span((tally.total - tally.done) / rate)} left")
        if self.judged:
            parts.append(f"{self.correct / self.judged:.0%} correct")
        if budget.usd:
            parts.append(f"${budget.usd:.4g}")
        parts += [f"{count:,} {kind}" for kind, count in sorted(tally.errors.items())]
        if tally.retries:
            parts.append(f"{tally.retries:,} retried")
        if tally.stopping:
            parts.append("stopping …")
        return " · ".join(parts)

    def end(self) -> None:
        """Leave the terminal clean."""
        if self.live:
            self.out.write("\r\x1b[K")
            self.out.flush()


def _span(seconds: float) -> str:
    """Write a time in words.

    >>> _span(75), _span(4000)
    ('1 min 15 s', '1 h 6 min')
    """
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
