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
class ThreadResult:
    """The value or exception of a function, and when it started and ended."""

    value: Any
    error: BaseException | None
    began: float
    ended: float


_Job = tuple["Callable[[], Any]", "Callable[[ThreadResult], None]"]


class Threads:
    """Runs functions in daemon threads and reuses idle ones.

    A function that hangs delays neither the others nor the end of the process.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[SimpleQueue[_Job | None]] = []

    async def run(self, function: Callable[[Any], Any], given: Any) -> ThreadResult:
        """Run a function in a thread that no other function uses meanwhile."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ThreadResult] = loop.create_future()
        context = contextvars.copy_context()

        def finish(result: ThreadResult) -> None:
            if not future.done():
                future.set_result(result)

        def ended(result: ThreadResult) -> None:
            with suppress(RuntimeError):  # the loop was closed in the meantime
                loop.call_soon_threadsafe(finish, result)

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
            result = _result(function)
            self._idle.append(inbox)
            ended(result)

    def close(self) -> None:
        """End the idle threads."""
        while self._idle:
            self._idle.pop().put(None)


def _result(function: Callable[[], Any]) -> ThreadResult:
    began = perf_counter()
    try:
        return ThreadResult(function(), None, began, perf_counter())
    except BaseException as error:  # even SystemExit ends only the function
        return ThreadResult(None, error, began, perf_counter())
