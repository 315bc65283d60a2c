"""Stop a run from outside: by a signal, or because another process has taken it over."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

from pennyweight.engine.tally import Tally

SAME = 0.02
"""Seconds in which two signals count as one: `timeout` signals a process, then its group."""
TURNS = 20
"""Turns of the loop in which a task can process a reply that has arrived."""
LISTENING: ContextVar[list[Stopping] | None] = ContextVar("listening", default=None)
"""Collects what listens, for a main thread that passes its signals on to another one."""


class Stopping:
    """Ends a run: gracefully at the first signal, at once at the second.

    SIGHUP, which a closing terminal sends more than once, always ends it gracefully.
    """

    def __init__(
        self, tally: Tally, stop: Callable[[], None], tasks: Callable[[], Iterable[Any]]
    ) -> None:
        self._tally, self._stop, self._tasks = tally, stop, tasks
        self._loop = asyncio.get_running_loop()
        self.signals = 0
        self._pressed = 0.0
        self._before: dict[int, Any] = {}
        self.is_cut = False
        """Whether the calls in flight were cancelled."""

    def listen(self) -> None:
        """Handle the signals that end a process, except an ignored SIGHUP."""
        if (listening := LISTENING.get()) is not None:
            listening.append(self)
        handlers = {"SIGINT": self.press, "SIGTERM": self.press}
        hang_up = getattr(signal, "SIGHUP", None)
        if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:
            handlers["SIGHUP"] = self.hang_up
        for name, handler in handlers.items():
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                number = getattr(signal, name)
                before = signal.getsignal(number)
                self._loop.add_signal_handler(number, handler)
                self._before[number] = before

    def leave(self) -> None:
        """Give the signals back to those who handled them before."""
        while self._before:
            number, before = self._before.popitem()
            self._loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL if before is None else before)

    def press(self) -> None:
        """Stop gracefully; the second time, at once."""
        now = self._loop.time()
        if self.signals and now - self._pressed < SAME:
            return
        self._pressed = now
        self.signals += 1
        self._tally.interrupted = True
        self._stop()
        if self.signals > 1:
            self.cut()

    def interrupt(self) -> None:
        """Do as a signal does; may be called from any thread, and after the end."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.press)

    def hang_up(self) -> None:
        """Stop gracefully, however often it is called."""
        self.signals = max(1, self.signals)
        self._tally.interrupted = True
        self._stop()

    def lose(self) -> None:
        """Stop at once; may be called from any thread, even after the end."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._lost)

    def _lost(self) -> None:
        self._stop()
        self.cut()

    def cut(self, turns: int = TURNS) -> None:
        """Cancel the calls in flight after a few turns of the loop.

        In these turns a task can process a reply that has arrived, because it is paid for.
        """
        self.is_cut = True
        if turns:
            self._loop.call_soon(self.cut, turns - 1)
            return
        for task in self._tasks():
            if not task.cancelling():
                task.cancel()
