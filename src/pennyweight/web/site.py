"""What pages and API share: the store, its caches, the suites and the runs in progress."""

from __future__ import annotations

import os
import signal
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pennyweight.api.pages.board_pairs import BoardPairs
from pennyweight.api.pages.digest_cache import DigestCache
from pennyweight.api.pages.live_traces import TraceInbox
from pennyweight.api.pages.run_list import (
    RunListing,
    RunRow,
    RunState,
    Store,
    StoredRun,
    counts,
    listing,
    state_mark,
)
from pennyweight.api.pages.run_list import state as state_of
from pennyweight.api.pages.side_by_side import RunComparisons
from pennyweight.api.runs import owner_of, status_of
from pennyweight.api.suites import SuiteLibrary
from pennyweight.errors import NotFoundError
from pennyweight.render.view import run_outcome
from pennyweight.web.access import Access
from pennyweight.web.addresses import is_storable
from pennyweight.web.jobs import Jobs, left_behind
from pennyweight.web.page_cache import PageCache

T = TypeVar("T")
Shown = tuple[str, dict[str, Any]]
"""A page: the name of its template, and the values for it."""
MAX_DRAWN = 24
STARTING_SECONDS = 10.0
"""The time a process has to take over the run that it has just created."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a run. `here`: this server runs it. `shown` changes with its metrics."""

    run: str
    status: str
    made: int
    attempts: int
    errors: int | None
    cost_usd: float | None
    here: bool
    digest: bool
    digest_done: float | None
    problem: str
    shown: str
    said: str
    took: float
    outcome: list[str]
    """How it went in words, and whether that is `good`, `bad` or neither."""


@dataclass(frozen=True, slots=True)
class Site:
    """The parts of a server."""

    store: Store
    digests: DigestCache
    comparisons: RunComparisons
    jobs: Jobs
    suites: SuiteLibrary
    access: Access
    traces: TraceInbox
    pairs: BoardPairs
    views: OrderedDict[tuple[Any, ...], tuple[Mapping[str, Any], Any]] = field(
        default_factory=OrderedDict
    )
    """What was computed and drawn of the last digests."""
    pages: PageCache = field(default_factory=PageCache)

    def once(self, digest: Mapping[str, Any], what: tuple[Any, ...], make: Callable[[], T]) -> T:
        """Compute something of a digest once, as long as it is remembered."""
        place = (id(digest), what)
        known = self.views.pop(place, None)
        if known is None or known[0] is not digest:
            known = (digest, make())
        while len(self.views) >= MAX_DRAWN:
            self.views.popitem(last=False)
        self.views[place] = known  # the one that was asked for longest ago is dropped first
        found: T = known[1]
        return found

    def state(self, name: str) -> RunState:
        """Find a run by its complete id, as it is now."""
        if not is_storable(name):
            raise NotFoundError(f"There is no run {name!r} in this store.")
        return state_of(self.store, name)

    def run(self, name: str) -> StoredRun:
        """Find a run by its complete id."""
        return self.state(name).run

    def listing(self) -> RunListing:
        """Read all runs and what is cached of them."""
        return listing(self.store, self.digests, self.status)

    def status(self, run: StoredRun) -> str:
        """Return the status of a run; one whose process is gone is interrupted."""
        if run.status != "running" or self.jobs.running(run.id):
            return run.status
        return status_of(run, self.store, starting=STARTING_SECONDS)

    def left_behind(self, run: StoredRun) -> int | None:
        """Return the process of a run that an earlier server started, if it still exists."""
        if run.status != "running" or self.jobs.running(run.id):
            return None
        return left_behind(owner_of(self.store, run.id))

    def stop(self, run: StoredRun) -> None:
        """Stop a run of this server, or of one before it; attempts in progress are finished."""
        process = self.left_behind(run)
        if process is None:
            self.jobs.stop(run.id)
        else:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGINT)

    def row(self, run: str) -> RunRow:
        """Return one run as the list shows it."""
        return next(row for row in self.listing().runs() if row.id == run)

    def progress(self, state: RunState) -> RunProgress:
        """Return how far a run is, from the store alone, so that a reload loses nothing.

        Newer metrics are computed for those who watch; `shown` marks the ones that exist.
        """
        began, run = time.monotonic(), state.run
        digest = self.digests.get(run, wait=False, state=state)
        counted = counts(self.store, run.id)
        status = self.status(run)
        return RunProgress(
            run=run.id,
            status=status,
            made=counted.made,
            attempts=run.attempts,
            errors=counted.errors,
            cost_usd=counted.cost_usd,
            here=self.jobs.running(run.id) or self.left_behind(run) is not None,
            digest=run.id in self.digests.waiting,
            digest_done=self.digests.done(run.id),
            problem=digest.problem,
            shown=state_mark(state.digest_stamp) if digest.digest is not None else "",
            said=self.jobs.said(run.id),
            took=time.monotonic() - began,
            outcome=[*run_outcome(status, run.attempts, counted.made, counted.errors or 0)],
        )
