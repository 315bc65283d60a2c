"""Counts of a run, or of a phase of it, while it executes."""

from __future__ import annotations

from dataclasses import dataclass, field

from pennyweight.engine.ending import BatchesOut, EndKind, Lost, RunEnd, StopReason


@dataclass(slots=True)
class Tally:
    """Counts of a phase, and why it stops."""

    total: int
    done: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    """Failed attempts by the kind of their error."""
    retries: int = 0
    retried: str = ""
    """The kind of the last error that was retried."""
    last_error: str = ""
    first_error: str = ""
    """The first failure, which is told at once: it may be a wrong address."""
    notes: list[str] = field(default_factory=list)
    """What a person has to know besides."""
    paused_until: float = 0.0
    """When the account that failed last is called again (monotonic)."""
    interrupted: bool = False
    stop_reason: StopReason | None = None
    stopping: bool = False

    @property
    def lost(self) -> bool:
        """Whether another process has continued the run, or has deleted it."""
        return isinstance(self.stop_reason, Lost)

    @property
    def waits(self) -> bool:
        """Whether it ended because requests are out in batches."""
        return isinstance(self.stop_reason, BatchesOut) and self.stop_reason.requests > 0

    def set_reason(self, reason: StopReason | None) -> None:
        """Set why the phase stops, unless another process has taken the run over."""
        if not self.lost:
            self.stop_reason = reason or self.stop_reason

    @property
    def failed(self) -> int:
        """The number of failed attempts."""
        return sum(self.errors.values())

    @property
    def missing(self) -> int:
        """The number of attempts without a reply."""
        return self.total - self.done + self.failed

    @property
    def end(self) -> RunEnd:
        """How the phase ended, once it has."""
        if self.interrupted:
            return RunEnd(EndKind.INTERRUPTED, self.stop_reason)
        if self.waits:
            return RunEnd(EndKind.WAITING, self.stop_reason)
        if self.stop_reason:
            return RunEnd(EndKind.STOPPED, self.stop_reason)
        return RunEnd(EndKind.INCOMPLETE if self.missing else EndKind.DONE)
