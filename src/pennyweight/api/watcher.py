"""What a skin is told while a run is carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pennyweight.engine.budget import Budget
    from pennyweight.engine.resume import ResumePlan
    from pennyweight.engine.tally import Tally
    from pennyweight.judges.judging import JudgingResult
    from pennyweight.judges.phases import Phase
    from pennyweight.store.store import Row, Run


class Watcher:
    """Receives the events of a run. Override the methods you need; the rest do nothing."""

    def note(self, text: str) -> None:
        """Receive advice or a warning, most of it before the first call."""

    def approve(self, run: Run, difference: ResumePlan) -> bool:  # noqa: ARG002
        """Return whether a resumed run may continue with a suite that changed."""
        return True

    def start(self, run: Run, attempts: int) -> None:
        """Receive the run, which is in the store now, and how many attempts it has at most."""

    def begin(self, phase: Phase) -> None:
        """Receive the phase that begins."""

    def progress(self, tally: Tally, budget: Budget, rows: list[Row]) -> None:
        """Receive the records that were just committed; called from the writer's thread."""

    def end(self, result: JudgingResult | None = None) -> None:
        """Receive the end of the phase, with the result of a phase of judges."""
