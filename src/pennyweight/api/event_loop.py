"""Call functions that start an event loop where one is running already, as in a notebook."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from pennyweight.engine.interrupts import LISTENING, Stopping

P = ParamSpec("P")
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


def awaitable(call: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return the twin of a function for `await`. It works in a thread, so that the loop goes on.

    If the task is cancelled, the run ends in good order, and the task after it.
    """

    @wraps(call)
    async def twin(*arguments: P.args, **options: P.kwargs) -> T:
        listening: list[Stopping] = []
        context = contextvars.copy_context()
        context.run(LISTENING.set, listening)
        with ThreadPoolExecutor(1) as pool:
            loop = asyncio.get_running_loop()
            work = loop.run_in_executor(pool, lambda: context.run(call, *arguments, **options))
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                told: set[int] = set()
                while not work.done():
                    for stopping in listening:
                        if id(stopping) not in told:
                            told.add(id(stopping))
                            stopping.interrupt()
                    await asyncio.wait([work], timeout=POLL_SECONDS)
                raise

    twin.__name__ = twin.__qualname__ = f"{call.__name__}_async"
    return twin
