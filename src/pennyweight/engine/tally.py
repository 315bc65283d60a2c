"""What has happened in a run, or in a phase of it, so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from pennyweight.engine.ending import EndKind, RunEnd, StopReason, TakenOver


@dataclass(slots=True)
class Tally:
    """Counts of a phase while it runs, and why it stops."""

    total: int
    done: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    """Failed attempts by the kind of their error."""
    retries: int = 0
    retried: str = ""
    """The kind of the last error that was retried."""
    last_error: str = ""
    """The message of that error."""
    paused_until: float = 0.0
    """When the account that failed last is called again (monotonic time)."""
    interrupted: bool = False
    stop_reason: StopReason | None = None
    stopping: bool = False

    @property
    def lost(self) -> bool:
        """Whether another process has continued the run."""
        return isinstance(self.stop_reason, TakenOver)

    def set_reason(self, reason: StopReason | None) -> None:
        """Set why attempts are left out; that another process has the run is never overwritten."""
        if not self.lost:
            self.stop_reason = reason or self.stop_reason

    @property
    def failed(self) -> int:
        """How many attempts failed."""
        return sum(self.errors.values())

    @property
    def missing(self) -> int:
        """How many attempts have no answer."""
        return self.total - self.done + self.failed

    @property
    def end(self) -> RunEnd:
        """How the phase ended, once it has."""
        if self.interrupted:
            return RunEnd(EndKind.INTERRUPTED, self.stop_reason)
        if self.stop_reason:
            return RunEnd(EndKind.STOPPED, self.stop_reason)
        return RunEnd(EndKind.INCOMPLETE if self.missing else EndKind.DONE)
