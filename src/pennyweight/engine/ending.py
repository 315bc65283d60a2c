"""Why a run or a phase of it ended, as values. The sentences are in `render/run_end.py`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Limit(StrEnum):
    """What the limits of a suite restrict."""

    USD = "usd"
    TOKENS = "tokens"
    SECONDS = "seconds"


class ClosedBecause(StrEnum):
    """Why an account receives no more calls."""

    LONG_WAIT = "long_wait"
    """It asks for a longer pause than Pennyweight waits."""
    SILENT = "silent"
    """It has not answered for a long time."""
    NEVER_ANSWERED = "never_answered"
    """It has not answered a single call: a wrong address, or a server that is not running."""
    REFUSED = "refused"
    """It refused many calls in a row: its key, its quota, or an unknown model."""


@dataclass(frozen=True, slots=True)
class LimitReached:
    """The next call could exceed a limit of the suite."""

    limit: Limit
    maximum: float
    spent: float = 0.0
    held: float = 0.0
    """Reserved for calls that did not report their usage and may be charged."""
    next_call: float | None = None
    """The maximum that the next call may use; None if not known before."""


@dataclass(frozen=True, slots=True)
class CallTooLarge:
    """A single call could use more than a limit allows in total."""

    limit: Limit
    maximum: float
    needed: float
    task: str = ""
    judging: bool = False


@dataclass(frozen=True, slots=True)
class AccountClosed:
    """An account, or one of its models, was given up; others continued."""

    account: str
    because: ClosedBecause
    amount: float
    """Seconds of waiting or silence, or the number of refused calls."""
    error: str = ""
    model: str = ""
    """The model that was given up; empty where it is the whole account."""


@dataclass(frozen=True, slots=True)
class TakenOver:
    """Another process continued the run while this one was silent."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The store gave this worker up, because it was silent; others have its attempts."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """The run was deleted while attempts of it were made."""


@dataclass(frozen=True, slots=True)
class BatchesOut:
    """Requests are out in providers' batches; their replies are collected later."""

    requests: int
    batches: int
    refused: str = ""
    """Why a provider did not take a further batch."""


Lost = TakenOver | GivenUp | Deleted
"""The reasons after which nothing more may be written."""
StopReason = BatchesOut | LimitReached | CallTooLarge | AccountClosed | Lost


class EndKind(StrEnum):
    """How a run, or a phase of it, ended."""

    DONE = "done"
    INCOMPLETE = "incomplete"
    """Everything was tried, and some attempts failed."""
    INTERRUPTED = "interrupted"
    WAITING = "waiting"
    """Requests are out in batches, as `RunEnd.reason` says."""
    STOPPED = "stopped"
    """It stopped for the reason in `RunEnd.reason`."""
    DECIDED = "decided"
    """The policy was decided before all attempts were made."""


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended, and the reason if it stopped early."""

    kind: EndKind
    reason: StopReason | None = None

    @property
    def is_limit(self) -> bool:
        """Whether higher limits in the suite would let the run continue."""
        return isinstance(self.reason, LimitReached | CallTooLarge)
