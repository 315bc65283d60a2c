"""A worker of a shared run: its place in the store, its heartbeat and its right to write."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from pennyweight.engine.budget import Budget
from pennyweight.engine.ending import Deleted, GivenUp, Lost, TakenOver
from pennyweight.engine.limiter import ClosedError
from pennyweight.engine.resume import HEARTBEAT
from pennyweight.engine.sharing.grants import Grants
from pennyweight.errors import StoreError, UsageError
from pennyweight.store.connection import guarded, limit_idle
from pennyweight.store.lanes.turns import take_turns
from pennyweight.store.lease import Fence, has_run
from pennyweight.store.shared_runs import (
    Claim,
    LostLeaseError,
    SharedRun,
    claim,
    join,
    leave,
    renew,
)
from pennyweight.store.shared_runs import shared_run as find_shared
from pennyweight.store.store import Store


class Worker:
    """A process as a worker of a run.

    Its records are written only while the store knows it: the sign of life is part of the
    transaction. `lost` is called, in any thread, when the store has given it up.
    """

    def __init__(self, store: Store, run_id: str, lost: Callable[[], None]) -> None:
        shared = find_shared(store, run_id)
        if shared is None:
            raise UsageError(_not_shared(run_id))
        self.store, self.run_id = store, run_id
        self.began, self.seconds = shared.began, shared.seconds
        self.error: BaseException | None = None
        """Why no more attempts could be taken, if that failed."""
        self.stop: Callable[[], None] = lambda: None
        """Stops the engine; called in its loop."""
        self._budget: Budget | None = None
        self.beats: list[Callable[[], None]] = []
        """Called with each heartbeat, in its thread."""
        self._ended = threading.Event()
        limit_idle(store.engine)
        try:
            self.id = join(store, run_id)
        except LostLeaseError:
            raise UsageError(_not_shared(run_id)) from None
        self._fence = store.fences[run_id] = Fence(self.id, lost)
        self._thread = threading.Thread(target=self._beat, name="worker", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._ended.wait(HEARTBEAT):
            try:
                with guarded(self.store.address), self.store.engine.begin() as connection:
                    ours = renew(self.store, self.id, connection)
                if not ours:
                    self.lose()
                    return
                for told in self.beats:
                    told()
            except StoreError:  # the writer fails too, and reports it
                continue
            except LostLeaseError:
                self.lose()
                return

    def limit(self, budget: Budget) -> None:
        """Let the store grant what a budget may spend; its time counts from the run's start."""
        if budget.limits.seconds is not None:
            budget.started = min(budget.started, time.monotonic() - self.seconds)
        if budget.is_limited:
            grants = Grants(self.store, self.run_id, self.id, budget.limits, self.lose)
            grants.start(budget.usd + budget.held_usd, budget.tokens + budget.held_tokens)
            budget.grants, self._budget = grants, budget

    async def give_back(self) -> None:
        """Let other workers spend what this one may spend and does not need now."""
        if self._budget:
            await self._budget.give_back()

    async def turns(self, kind: str, amount: float, rate: float) -> float:
        """Take turns of an account; return in how many seconds they begin."""

        def take(_: bool) -> float:
            return take_turns(self.store, self.run_id, kind, amount, rate)

        try:
            return await asyncio.to_thread(self.store.patiently, take)
        except LostLeaseError:
            self.lose()
            raise ClosedError from None

    def lose(self) -> None:
        """Note that the store has given this worker up. The callback is called once."""
        self._fence.lose()

    def fail(self, error: BaseException) -> None:
        """Note that no attempts can be taken, and stop."""
        self.error = self.error or error
        self.stop()

    def claim(self, subjects: Sequence[str], size: int, **known: Any) -> Claim:
        """Ask for a portion of attempts, waiting for a server that restarts."""
        return self.store.patiently(
            lambda _: claim(self.store, self.run_id, self.id, subjects, size, **known)
        )

    def leave(self, done: Sequence[int]) -> None:
        """Give back what is not finished."""
        self._ended.set()
        self._thread.join()
        self.store.fences.pop(self.run_id, None)
        if not self._fence.lost:
            with suppress(StoreError, LostLeaseError):  # it is given up a little later then
                leave(self.store, self.run_id, self.id, done)


def loss(store: Store, run_id: str, before: SharedRun | None) -> Lost:
    """Return why a store accepts nothing more from a worker that began with a shared run."""
    if not has_run(store, run_id):
        return Deleted()
    now = find_shared(store, run_id)
    return GivenUp() if now and before and now.began == before.began else TakenOver()


def _not_shared(run_id: str) -> str:
    return (
        f"Run {run_id} has no attempts for workers. It is complete, or it was not started for "
        f"them: 'pennyweight run SUITE --on workers' puts attempts up for workers, and "
        f"'pennyweight run --resume {run_id} --on workers' those that are missing."
    )
