"""The progress of a run: one line that is updated in a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from html import escape
from importlib import import_module
from typing import Any, TextIO

from pennyweight.engine.budget import Budget
from pennyweight.engine.live_accuracy import count_correct
from pennyweight.engine.tally import Tally
from pennyweight.judges.phases import Phase
from pennyweight.store.store import Row
from pennyweight.text.format import money, share
from pennyweight.text.safe import clean

TERMINAL_SECONDS, LINE_SECONDS = 0.25, 10.0
"""Seconds between two updates in a terminal, and between two lines elsewhere."""
MIN_ATTEMPTS, MIN_SECONDS = 3, 3.0
"""Attempts and seconds before the time left is estimated."""
MAX_WAITING = 4_000
"""Records that may wait in memory until the next update."""


class Progress(io.TextIOBase):
    """Shows how far a run is: rate, time left, share correct so far, cost, errors by kind.

    It writes in a separate thread, so the line stays current while the run waits, and a slow or
    closed terminal delays nothing. It is also a stream: what functions of the suite print appears
    above the line.
    """

    def __init__(
        self, right: Callable[[list[Row]], tuple[int, int]], out: TextIO | None = None
    ) -> None:
        self.out = sys.stderr if out is None else out
        self.right, self.live = right, is_terminal(self.out)
        self.began = self.shown = time.monotonic()
        self.waiting: list[Row] = []
        self.correct = self.judged = 0
        self.printed = self.told = ""
        self.state: tuple[Tally, Budget] | None = None
        self.stops = False
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.thread: threading.Thread | None = None

    @property
    def pause(self) -> float:
        """Seconds between two updates."""
        return TERMINAL_SECONDS if self.live else LINE_SECONDS

    def __call__(self, tally: Tally, budget: Budget, rows: list[Row]) -> None:
        """Take what was committed; the writer's thread calls this."""
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
        while not self.ended.wait(min(TERMINAL_SECONDS, self.pause)):
            with self.lock:
                if len(self.waiting) >= MAX_WAITING:
                    self._count()
            self.show()

    def show(self) -> None:
        """Write the line, if it is due."""
        with self.lock:
            now = time.monotonic()
            if self.state is None:
                return
            self._tell_first(self.state[0].first_error)
            stops = self.state[0].stopping and not self.stops
            if now - self.shown < self.pause and not stops:
                return
            self.shown, self.stops = now, self.state[0].stopping
            self._count()
            line = self.line(*self.state, now)
            self.draw(line)

    def draw(self, line: str) -> None:
        """Show the line in place of the one before, or below it."""
        self._write(f"\r\x1b[K{_cut(line)}" if self.live else f"{line}\n")

    def _tell_first(self, error: str) -> None:
        """Print the first failure at once: nothing may answer at this address."""
        if error and not self.told:
            self.told = clean(f"First failure: {error}")
            self._write(f"\r\x1b[K{self.told}\n" if self.live else f"{self.told}\n")

    def write(self, text: str) -> int:
        """Print text above the line; in a terminal only whole lines, since an update clears one."""
        with self.lock:
            if self.live:
                lines, end, self.printed = f"{self.printed}{text}".rpartition("\n")
                if end:
                    self._write(f"\r\x1b[K{lines}\n")
            else:
                self._write(text)
        return len(text)

    def _write(self, text: str) -> None:
        """Write, unless standard error is closed: that must not end the run."""
        with suppress(OSError, ValueError, AttributeError):
            self.out.write(text)
            self.out.flush()

    def _count(self) -> None:
        rows, self.waiting = self.waiting, []
        with suppress(Exception):  # a rule that fails is reported with the scores
            correct, judged = self.right(rows)
            self.correct, self.judged = self.correct + correct, self.judged + judged

    def line(self, tally: Tally, budget: Budget, now: float) -> str:
        """Write the state in one line."""
        rate = tally.done / max(now - self.began, 1e-9)
        parts = [f"{tally.done:,} of {tally.total:,}"]
        if tally.done:
            parts.append(f"{rate:,.1f}/s" if rate >= 1 else f"{rate * 60:,.1f}/min")
        if tally.done >= MIN_ATTEMPTS and now - self.began >= MIN_SECONDS:
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
        """Stop updating, and clear the line."""
        self.ended.set()
        if self.state:
            self._tell_first(self.state[0].first_error)
        if self.thread is not None:
            self.thread.join()
        if self.live:
            self._write("\r\x1b[K")
        if self.printed:
            self.write("\n")


class NotebookProgress(Progress):
    """The same line as HTML in the output of a cell; its last state stays there."""

    def __init__(self, right: Callable[[list[Row]], tuple[int, int]]) -> None:
        super().__init__(right)
        self._shell: Any = import_module("IPython.display")
        self._place = self._shell.display(self._shell.HTML(""), display_id=True)

    @property
    def pause(self) -> float:
        """Seconds between two updates."""
        return TERMINAL_SECONDS

    def draw(self, line: str) -> None:
        """Show the line in place of the one before."""
        self._place.update(self._shell.HTML(f"<small>{escape(line)}</small>"))

    def end(self) -> None:
        """Stop updating, and show the last state."""
        self.ended.set()
        if self.thread is not None:
            self.thread.join()
        if self.state is not None:
            self._count()
            self.draw(self.line(*self.state, time.monotonic()))


def in_notebook() -> bool:
    """Whether this process runs the cells of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and "IPKernelApp" in shell.config


def progress_of(phase: Phase, kind: type[Progress] = Progress) -> Progress:
    """Return the progress of a phase; that of attempts also counts correct answers."""
    suite = phase.suite
    if suite is None:
        return kind(lambda _: (0, 0))
    return kind(lambda rows: count_correct(rows, suite))


def is_terminal(out: TextIO | None) -> bool:
    """Whether a stream is a terminal in which a line can be updated."""
    try:
        return out is not None and out.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False


def _cut(line: str) -> str:
    """Cut a line to the width of the terminal: a wrapped line could not be updated."""
    width = max(20, shutil.get_terminal_size().columns) - 1
    return line if len(line) <= width else line[: width - 1] + "…"


def _span(seconds: float) -> str:
    """Write a time.

    >>> _span(75), _span(4000)
    ('1 min 15 s', '1 h 6 min')
    """
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
