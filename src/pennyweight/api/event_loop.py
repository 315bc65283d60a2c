"""Call functions that start an event loop where one is running already, as in a notebook."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from pennyweight.engine.interrupts import LISTENING, Stopping

T = TypeVar("T")
POLL_SECONDS = 0.2


def outside_a_loop(call: Callable[[], T]) -> T:
    """Call in a thread where an event loop runs here already, as in a notebook.

    Only the main thread is interrupted, so it passes that on.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pool = None
    else:
        pool = ThreadPoolExecutor(1)
    if pool is None:  # not inside `except`: each error of the run would get that one as its context
        return call()
    listening: list[Stopping] = []
    context = contextvars.copy_context()
    context.run(LISTENING.set, listening)
    with pool:
        done = pool.submit(context.run, call)
        while not done.done():
            try:
                wait([done], POLL_SECONDS)
            except KeyboardInterrupt:
                for stopping in listening:
                    stopping.interrupt()
        return done.result()
