"""A call whose reply comes in a batch: it is there, or pending, or not even asked for."""

from __future__ import annotations

from collections.abc import Callable

from pennyweight.engine.budget import Amount, Budget
from pennyweight.engine.calls import NOTHING_USED, CallResult
from pennyweight.engine.limiter import ClosedError
from pennyweight.models.failure import CallError
from pennyweight.models.model import Model, Request
from pennyweight.record import AttemptKey
from pennyweight.store.bills import Payer
from pennyweight.suite.values import Limits, LoadedSuite, Subject


class PendingError(ClosedError):
    """The reply is not there yet: the request is in a batch."""


class WantedError(PendingError):
    """The request is in no batch yet; `put` adds it to the next one."""

    def __init__(self, put: Callable[[AttemptKey, Amount], None]) -> None:
        self.put = put
        super().__init__()


class UnansweredError(Exception):
    """No batch has the reply and it is too late for another one: `live` is the model to call."""

    def __init__(self, live: Model) -> None:
        self.live = live
        super().__init__()


async def collected(
    model: Model,
    request: Request,
    budget: Budget,
    payer: Payer,
    one: Amount,
    key: AttemptKey,
    calls: int = 1,
) -> CallResult:
    """Return the reply from a batch; if there is none yet, put the request into the next one.

    What it used is in the ledger since it was collected, so a reply needs no budget. Raise
    UnansweredError if it is too late for a batch.
    """
    try:
        return CallResult(NOTHING_USED, 0.0, await model.call(request))
    except WantedError as wanted:
        if not budget.is_stopped:
            wanted.put(key, await budget.commit(payer, one, calls))
        raise
    except CallError as error:
        return CallResult(NOTHING_USED, 0.0, error=error)


def in_lane(subject: Subject, limits: Limits) -> bool:
    """Whether a subject or judge uses the batch lane: as it says itself, else as the suite does."""
    return (subject.lane or limits.lane) == "batch"


def lane_subjects(suite: LoadedSuite) -> list[Subject]:
    """Return the subjects and judges of a suite that use the batch lane."""
    judges = (*suite.judge.judges, *suite.judge.more) if suite.judge else ()
    return [one for one in (*suite.subjects, *judges) if in_lane(one, suite.limits)]
