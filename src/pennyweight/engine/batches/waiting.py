"""Wait for the batches of a run: ask their providers now and then, until one has ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pennyweight.engine.execution import model_of
from pennyweight.models.batch.service import BatchService
from pennyweight.models.failure import RETRYABLE, CallError
from pennyweight.store.lanes.batches import (
    OutBatches,
    StoredBatch,
    batches_of,
    first_submission,
    out_batches,
    set_batch,
)
from pennyweight.store.store import Store, StoredRun
from pennyweight.suite.values import LoadedSuite, Subject

POLL = 30.0
"""Seconds between two questions, if nothing else is said."""


@dataclass(frozen=True, slots=True)
class BatchWait:
    """How the batches of a run are collected."""

    wait: bool = False
    """Whether to stay until all of them are in."""
    deadline: float | None = None
    """Seconds since the first submission after which the rest is called live."""
    poll: float = POLL

    def pause(
        self,
        suite: LoadedSuite,
        run: StoredRun,
        store: Store,
        tell: Callable[[OutBatches, float], None],
        began: float,
    ) -> None:
        """Return when a batch has ended or has to be found again, or when none is out any more.

        Also when the deadline has come since `began`, when the last collection began.
        """
        services = services_of(suite)
        first = store.patiently(lambda _: first_submission(store, run.id))
        end = None if self.deadline is None or first is None else first + self.deadline
        while end is None or not began < end <= time.time():
            known = store.patiently(lambda _: out_batches(store, [run.id]))
            out = known.get(run.id, OutBatches())
            rest = self.poll
            if end is not None and end > time.time():
                rest = min(rest, end - time.time())
            tell(out, rest)
            time.sleep(rest)
            under_way = store.patiently(lambda _: batches_of(store, run.id))
            if not under_way or any(_has_ended(one, services, store) for one in under_way):
                return  # another process may have collected them


def services_of(suite: LoadedSuite) -> Callable[[str, str], BatchService | None]:
    """Return who has the batches of a kind of call and a name; None if nobody in the suite has."""
    judges = (*suite.judge.judges, *suite.judge.more) if suite.judge else ()
    asking: dict[str, dict[str, Subject]] = {
        "attempt": {one.name: one for one in suite.subjects},
        "judge": {one.name: one for one in judges},
    }

    def service(kind: str, name: str) -> BatchService | None:
        # a judge that is asked about something else than scores has that in its name
        subjects = asking[kind]
        fitting = (s for own, s in subjects.items() if name.startswith(f"{own} on "))
        found = subjects.get(name) or next(fitting, None)
        return model_of(found).batches() if found else None

    return service


def _has_ended(
    batch: StoredBatch, service_of: Callable[[str, str], BatchService | None], store: Store
) -> bool:
    """Whether a collection can help: the batch has ended, is gone, or cannot be asked for."""
    service = service_of(batch.kind, batch.subject)
    if batch.handle is None or service is None:
        return True
    try:
        remote = service.read(batch.handle)
    except CallError as error:  # a provider that cannot be reached is asked again
        return error.kind not in RETRYABLE
    done = min(remote.done or 0, batch.requests)
    if done != batch.done:
        store.patiently(lambda _: set_batch(store, batch.id, done=done))
    return remote.has_ended
