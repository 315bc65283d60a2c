"""Threads for functions that cannot be interrupted: one per running function, never joined."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from time import perf_counter
from typing import Any


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a function: its value or exception, and when it started and ended."""

    value: Any
    wrong: BaseException | None
    began: float
    ended: float


_Job = tuple["Callable[[], Any]", "Callable[[Done], None]"]


class Threads:
    """Runs functions in daemon threads and reuses idle ones.

    A function that hangs delays neither the others nor the end of the process.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[SimpleQueue[_Job | None]] = []

    async def run(self, function: Callable[[Any], Any], given: Any) -> Done:
        """Run a function at once, in a thread of its own while it runs."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Done] = loop.create_future()
        context = contextvars.copy_context()

        def tell(done: Done) -> None:
            if not future.done():
                future.set_result(done)

        def ended(done: Done) -> None:
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(tell, done)

        inbox = self._idle.pop() if self._idle else self._thread()
        inbox.put((lambda: context.run(function, given), ended))
        return await future

    def _thread(self) -> SimpleQueue[_Job | None]:
        inbox: SimpleQueue[_Job | None] = SimpleQueue()
        threading.Thread(target=self._work, args=(inbox,), name=self._name, daemon=True).start()
        return inbox

    def _work(self, inbox: SimpleQueue[_Job | None]) -> None:
        while (job := inbox.get()) is not None:
            function, ended = job
            done = _outcome(function)
            self._idle.append(inbox)
            ended(done)

    def close(self) -> None:
        """End the idle threads."""
        while self._idle:
            self._idle.pop().put(None)


def _outcome(function: Callable[[], Any]) -> Done:
    began = perf_counter()
    try:
        value, wrong = function(), None
    except BaseException as error:  # an exit too is only the function's own
        value, wrong = None, error
    return Done(value, wrong, began, perf_counter())
