"""Workers that share accounts, a budget, a writer and one way to stop: for attempts and judges."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from time import monotonic
from typing import TypeVar

from pennyweight.engine.budget import Budget
from pennyweight.engine.calls import CallResult, pause, reserved_row
from pennyweight.engine.ending import Limit
from pennyweight.engine.interrupts import Stopping
from pennyweight.engine.limiter import Limiter
from pennyweight.engine.reservation_ledger import ReservationLedger
from pennyweight.engine.tally import Tally
from pennyweight.engine.writer import Writer, WriteRows
from pennyweight.models.model import Model
from pennyweight.models.reply_memory import ReplyScope
from pennyweight.store.store import Row
from pennyweight.suite.values import Limits

T = TypeVar("T")


@contextmanager
def recorded(models: dict[str, Model], record: Path | None) -> Iterator[dict[str, Model]]:
    """Record the replies of models to a file, if one is named, while they are used."""
    if record is None:
        yield models
        return
    from pennyweight.models.replay import Recorder  # noqa: PLC0415

    recorder = Recorder(record)
    try:
        yield {name: recorder.wrap(model) for name, model in models.items()}
    finally:
        recorder.close()


class Workforce:
    """Runs workers concurrently until they end, a limit is reached, or they are stopped."""

    def __init__(
        self,
        run: str,
        models: Iterable[Model],
        limits: Limits,
        budget: Budget,
        tally: Tally,
        write: WriteRows,
        committed: Callable[[list[Row]], None],
    ) -> None:
        fixed = limits.concurrency if isinstance(limits.concurrency, int) else None
        models = list(models)
        self.limiters = {m.account: Limiter(fixed, m.limit, m.account) for m in models}
        self._has_lane = any(model.in_batches for model in models)
        self.budget, self.tally = budget, tally
        self.writer = Writer(write, committed, self._cancel)
        self._run = run
        if budget.is_limited and budget.grants is None:
            budget.ledger = ReservationLedger(self._reserve)
        self.cut: list[Row] = []
        """The ledger rows of calls that were cancelled after they were sent."""
        self._tasks: list[asyncio.Task[None]] = []
        self._jitter = random.Random(0)  # noqa: S311 - it only spreads retries out
        self.stopping = Stopping(tally, self.stop, lambda: self._tasks)
        self.wakes: list[Callable[[], None]] = []
        """Called when the workers stop, for those who wait for something else."""

    async def run(self, workers: Iterable[Coroutine[None, None, None]]) -> None:
        """Run workers; calls in flight when they stop are completed and written."""
        self._tasks = [asyncio.create_task(worker) for worker in workers]
        if self.tally.stopping:
            self.stop()
        left = self.budget.left
        loop = asyncio.get_running_loop()
        timer = None if left is None else loop.call_later(left, self._out_of_time)
        try:
            await asyncio.gather(*self._tasks)
        except BaseException as error:
            self.stop()  # calls in flight are paid for: they are completed and written
            cancelled = isinstance(error, asyncio.CancelledError)
            if self.writer.error or (cancelled and not self.stopping.is_cut):
                self._cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            if not (cancelled and self.stopping.is_cut):
                raise
        finally:
            if timer:
                timer.cancel()

    async def _reserve(self, usd: float, tokens: int) -> None:
        await self.writer.put(None, [reserved_row(self._run, usd, tokens)])

    async def close(self) -> None:
        """Write the remaining rows: those of cancelled calls, and no more is reserved."""
        cut, rows = len(self.cut), self.cut
        ledger = self.budget.grants or self.budget.ledger
        try:
            if ledger:
                await ledger.close()
                if ledger.usd or ledger.tokens:
                    back = reserved_row(self._run, -ledger.usd, -ledger.tokens, ledger.worker)
                    rows = [*rows, back]
            if rows and not self.writer.error:
                cut = 0  # the writer counts them from here on
                await self.writer.put(None, rows)
        finally:
            await self.writer.close(cut)

    def stop(self) -> None:
        """Start no new call; calls in flight are completed and written."""
        self.tally.stopping = True
        self._shut()

    def exhaust(self) -> None:
        """Start no new call, because a limit is reached.

        Workers go on if there may be replies of batches: these are paid for and need no call.
        """
        self.tally.stopping |= not self._has_lane
        self._shut()

    def _shut(self) -> None:
        for limiter in self.limiters.values():
            limiter.close()
        self.budget.wake()
        for wake in self.wakes:
            wake()

    def _out_of_time(self) -> None:
        self.tally.set_reason(self.budget.reached(Limit.SECONDS))
        self.stop()

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def answered(
        self,
        model: Model,
        call: Callable[[], Awaitable[tuple[CallResult, list[Row]]]],
        finish: Callable[[CallResult, list[Row], int], Awaitable[T]],
    ) -> T:
        """Call until there is a reply or a retry cannot help; return the value of `finish`.

        `call` makes one call and returns its ledger rows. `finish` receives the last result, its
        rows and the number of tries, and writes them; then the place is released.
        """
        limiter, tally, first_failure = self.limiters[model.account], self.tally, 0.0
        for tries in count(1):
            await limiter.enter(model.name)
            try:
                with ReplyScope():
                    result, rows = await call()
                    error = result.error
                    if error is None:
                        limiter.succeeded()
                        return await finish(result, rows, tries)
                    limiter.failed(error, model.name)
                    if not limiter.has_answered and error.kind != "rate_limit":
                        tally.first_error = tally.first_error or f"{model.name}: {error}"
                    first_failure = first_failure or monotonic()
                    enough = tally.stopping or limiter.is_enough(error, tries, first_failure)
                    if enough or not error.retryable:
                        return await finish(result, rows, tries)
                    await self.writer.put(None, rows, then=result.release)
            finally:
                limiter.leave()
            tally.retries += 1
            tally.retried, tally.paused_until = error.kind, limiter.paused_until
            tally.last_error = str(error)
            await limiter.rest(pause(error, tries, self._jitter))
        raise AssertionError
