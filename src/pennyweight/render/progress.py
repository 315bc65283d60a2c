"""Progress of a run: a line that renews itself in a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from pennyweight.engine.live_accuracy import count_correct
from pennyweight.store.store import Row
from pennyweight.text.format import money, share

if TYPE_CHECKING:
    from pennyweight.engine.budget import Budget
    from pennyweight.engine.tally import Tally
    from pennyweight.judges.phases import Phase

FAST, SLOW = 0.25, 10.0
FEW, SOON = 3, 3.0
"""Attempts and seconds before which nobody can say how long the rest takes."""
MANY = 4_000
"""Records that are counted even between two lines, since those that wait are in memory."""


class Progress(io.TextIOBase):
    """Says how far a run is: rate, time left, share correct so far, cost, errors by kind.

    A thread of its own writes, so that a run that waits is still seen to live, and a slow or
    closed screen holds up nothing. What functions print meanwhile is written to it: in a terminal
    it stands above the line.
    """

    def __init__(
        self, right: Callable[[list[Row]], tuple[int, int]], out: TextIO | None = None
    ) -> None:
        self.out = sys.stderr if out is None else out
        self.right, self.live = right, _is_terminal(self.out)
        self.began = self.shown = time.monotonic()
        self.waiting: list[Row] = []
        self.correct = self.judged = 0
        self.printed = ""
        self.state: tuple[Tally, Budget] | None = None
        self.stops = False
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.thread: threading.Thread | None = None

    @property
    def pause(self) -> float:
        """Seconds from one line to the next."""
        return FAST if self.live else SLOW

    def __call__(self, tally: Tally, budget: Budget, rows: list[Row]) -> None:
        """Take in what was committed; called by the writer's thread."""
        with self.lock:
            self.waiting += rows
            self.state = tally, budget
        self.show()
        if self.thread is None and not self.ended.is_set():
            self.thread = threading.Thread(
                target=self._renew, name="pennyweight-progress", daemon=True
            )
            self.thread.start()

    def _renew(self) -> None:
        while not self.ended.wait(min(FAST, self.pause)):
            with self.lock:
                if len(self.waiting) >= MANY:
                    self._count()
            self.show()

    def show(self) -> None:
        """Write the line, if it is time to."""
        with self.lock:
            now = time.monotonic()
            if self.state is None:
                return
            stops = self.state[0].stopping and not self.stops
            if now - self.shown < self.pause and not stops:
                return
            self.shown, self.stops = now, self.state[0].stopping
            self._count()
            line = self.line(*self.state, now)
            self._write(f"\r\x1b[K{_cut(line)}" if self.live else f"{line}\n")

    def write(self, text: str) -> int:
        """Take what is printed; in a terminal line by line, since the next renewal clears one."""
        with self.lock:
            if self.live:
                lines, end, self.printed = f"{self.printed}{text}".rpartition("\n")
                if end:
                    self._write(f"\r\x1b[K{lines}\n")
            else:
                self._write(text)
        return len(text)

    def _write(self, text: str) -> None:
        """Write, unless the screen is closed, or there is none: that must end nothing."""
        with suppress(OSError, ValueError, AttributeError):
            self.out.write(text)
            self.out.flush()

    def _count(self) -> None:
        rows, self.waiting = self.waiting, []
        with suppress(Exception):  # a rule that fails is told when the scores are made
            correct, judged = self.right(rows)
            self.correct, self.judged = self.correct + correct, self.judged + judged

    def line(self, tally: Tally, budget: Budget, now: float) -> str:
        """Write the state in one line."""
        rate = tally.done / max(now - self.began, 1e-9)
        parts = [f"{tally.done:,} of {tally.total:,}", f"{rate:,.1f}/s"]
        if tally.done >= FEW and now - self.began >= SOON:
            parts.append(f"{_span((tally.total - tally.done) / rate)} left")
        if self.judged:
            parts.append(f"{share(self.correct / self.judged)} correct")
        if budget.usd:
            parts.append(money(budget.usd))
        parts += [f"{count:,} {kind}" for kind, count in sorted(tally.errors.items())]
        if tally.retries:
            parts.append(f"{tally.retries:,} retried, last {tally.retried}".removesuffix(", last "))
        if tally.paused_until > now and not tally.stopping:
            parts.append(f"paused for {_span(tally.paused_until - now)}")
        if tally.stopping:
            again = "; Ctrl-C again stops at once" if tally.interrupted else ""
            parts.insert(0, f"stopping{again}")
        return " · ".join(parts)

    def end(self) -> None:
        """Stop renewing, and leave the terminal clean."""
        self.ended.set()
        if self.thread is not None:
            self.thread.join()
        if self.live:
            self._write("\r\x1b[K")
        if self.printed:
            self.write("\n")


def progress_of(phase: Phase) -> Progress:
    """Return the progress of a phase; that of attempts also counts right answers."""
    suite = phase.suite
    if suite is None:
        return Progress(lambda _: (0, 0))
    return Progress(lambda rows: count_correct(rows, suite))


def _is_terminal(out: TextIO | None) -> bool:
    try:
        return out is not None and out.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # it is closed
        return False


def _cut(line: str) -> str:
    """Cut a line to the width of the terminal: one that wraps cannot be renewed."""
    width = max(20, shutil.get_terminal_size().columns) - 1
    return line if len(line) <= width else line[: width - 1] + "…"


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
