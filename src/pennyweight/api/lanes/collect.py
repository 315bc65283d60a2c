"""Collect: fetch what is done of a run's batches, from any machine that reaches the store."""

from __future__ import annotations

from typing import Unpack

from pennyweight.api.event_loop import awaitable
from pennyweight.api.run import Until, resume
from pennyweight.api.runs import Run
from pennyweight.api.sources import open_store
from pennyweight.api.watching import ShowProgress, Watcher
from pennyweight.engine.batches.waiting import POLL, BatchWait
from pennyweight.errors import UsageError
from pennyweight.store.lanes.batches import OutBatches, out_batches
from pennyweight.store.store import Store
from pennyweight.suite.definition import GivenSuite
from pennyweight.suite.narrowing import NarrowingOptions


def collect(
    run: str | None = None,
    *,
    wait: bool = False,
    deadline: float | None = None,
    poll: float = POLL,
    suite: GivenSuite | None = None,
    store: str | Store | None = None,
    watch: Watcher | None = None,
    progress: ShowProgress = None,
    until: Until | None = None,
    otel: str | None = None,
    **options: Unpack[NarrowingOptions],
) -> Run:
    """Fetch the replies of a run's batches that are done, and submit what is needed next.

    `run` is a run's id or a unique prefix of it; by default, the newest run with batches that are
    out. With `wait` it stays until all replies are in, asking every `poll` seconds. `deadline` is
    the number of seconds since the run's first batch was submitted after which batches are
    cancelled, and what they have not answered is called live. Failed attempts stay as they are;
    `resume` makes them again. `options` may repeat what the run was started with.
    """
    at = open_store(store)
    waits = BatchWait(wait, deadline, poll)
    name = _newest(at) if run is None else run
    return resume(
        name, suite=suite, store=at, watch=watch, progress=progress, until=until, batches=waits,
        otel=otel, **options,
    )  # fmt: skip


collect_async = awaitable(collect)


def batches_out(store: Store, run: str) -> OutBatches:
    """Return what a run has out in providers' batches."""
    return out_batches(store, [run]).get(run, OutBatches())


def _newest(store: Store) -> str:
    """Return the newest run with batches that are out."""
    out = out_batches(store)
    for run in store.runs():
        if run.id in out:
            return run.id
    raise UsageError(
        "No run waits for batches. 'pennyweight run SUITE --batch' submits some; "
        "'pennyweight runs' lists all runs."
    )
