"""Watch a run: receive its events, show its progress, or call a function with it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pennyweight.engine.budget import Budget
    from pennyweight.engine.resume import ResumePlan
    from pennyweight.engine.tally import Tally
    from pennyweight.judges.judging import JudgingResult
    from pennyweight.judges.phases import Phase
    from pennyweight.render.progress import Progress
    from pennyweight.store.store import Row, StoredRun

ShowProgress = bool | Callable[[int, int], None] | None
"""Whether to show progress (None: in notebooks and terminals), or what to call with it."""


class Watcher:
    """Receives the events of a run. Override the methods you need; the rest do nothing."""

    def note(self, text: str) -> None:
        """Receive advice or a warning, most of it before the first call."""

    def approve(self, run: StoredRun, difference: ResumePlan) -> bool:  # noqa: ARG002
        """Return whether a resumed run may continue with a suite that changed."""
        return True

    def trust(self, run: StoredRun, uses: Sequence[str]) -> bool:  # noqa: ARG002
        """Return whether the suite of a run, as a store holds it, may do all of this."""
        return False

    def start(self, run: StoredRun, attempts: int) -> None:
        """Receive the run, which is in the store now, and how many attempts it has at most."""

    def begin(self, phase: Phase) -> None:
        """Receive the phase that begins."""

    def progress(self, tally: Tally, budget: Budget, rows: list[Row]) -> None:
        """Receive the records that were just committed; called from the writer's thread."""

    def end(self, result: JudgingResult | None = None) -> None:
        """Receive the end of the phase, with the result of a phase of judges."""


def watcher(watch: Watcher | None, progress: ShowProgress) -> Watcher:
    """Return what watches a run: the one that was given, or what shows its progress."""
    if watch is not None:
        return watch
    if progress is None:
        from pennyweight.render.progress import in_notebook, is_terminal  # noqa: PLC0415

        progress = in_notebook() or is_terminal(sys.stderr)
    if callable(progress):
        return _Calling(progress)
    return _Showing() if progress else Watcher()


class _Calling(Watcher):
    """Calls a function with how many attempts were made, and of how many."""

    def __init__(self, function: Callable[[int, int], None]) -> None:
        self._function = function

    def progress(self, tally: Tally, budget: Budget, rows: list[Row]) -> None:  # noqa: ARG002
        self._function(tally.done, tally.total)


class _Showing(Watcher):
    """Shows a line that is updated, and the notes."""

    def __init__(self) -> None:
        self._line: Progress | None = None

    def note(self, text: str) -> None:
        from pennyweight.text.safe import clean  # noqa: PLC0415

        print(f"Note: {clean(text)}", file=sys.stderr)

    def begin(self, phase: Phase) -> None:
        from pennyweight.render.progress import (  # noqa: PLC0415
            NotebookProgress,
            Progress,
            in_notebook,
            progress_of,
        )

        self._line = progress_of(phase, NotebookProgress if in_notebook() else Progress)

    def progress(self, tally: Tally, budget: Budget, rows: list[Row]) -> None:
        if self._line:
            self._line(tally, budget, rows)

    def end(self, result: JudgingResult | None = None) -> None:  # noqa: ARG002
        if self._line:
            self._line.end()
            self._line = None
