"""Watch a run: receive its events, show its progress, or call a function with it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pennyweight.errors import UsageError
from pennyweight.record import AttemptKey

if TYPE_CHECKING:
    from pennyweight.engine.budget import Budget
    from pennyweight.engine.resume import ResumePlan
    from pennyweight.engine.tally import Tally
    from pennyweight.exports.otlp import OtlpEndpoint
    from pennyweight.exports.span_sender import SpanSender
    from pennyweight.judges.judging import JudgingResult
    from pennyweight.judges.phases import Phase
    from pennyweight.render.progress import Progress
    from pennyweight.store.lanes.batches import OutBatches
    from pennyweight.store.store import Row, Store, StoredRun
    from pennyweight.suite.values import LoadedSuite

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

    def waiting(self, out: OutBatches, pause: float) -> None:
        """Receive what is out in batches, and in how many seconds it is asked for again."""


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


def results_come_later(suite: LoadedSuite) -> bool:
    """Whether attempts are decided after all of them were made: by judges, scorers or code."""
    scenarios = (task.scenario for task in suite.tasks if task.scenario)
    by_code = any(b.check.by == "code" for one in scenarios for _, b in one.all())
    return bool(suite.judge or suite.scorers or by_code)


class ExportingWatcher(Watcher):
    """Passes the events of a run on, and has its attempts sent."""

    def __init__(
        self, watch: Watcher, endpoint: OtlpEndpoint, store: Store, suite: LoadedSuite
    ) -> None:
        self._watch, self._endpoint, self._store, self._suite = watch, endpoint, store, suite
        self._export: SpanSender | None = None
        self._makes_attempts = False

    def note(self, text: str) -> None:
        """Pass it on."""
        self._watch.note(text)

    def approve(self, run: StoredRun, difference: ResumePlan) -> bool:
        """Pass it on."""
        return self._watch.approve(run, difference)

    def trust(self, run: StoredRun, uses: Sequence[str]) -> bool:
        """Pass it on."""
        return self._watch.trust(run, uses)

    def start(self, run: StoredRun, attempts: int) -> None:
        """Start sending."""
        from pennyweight.exports.span_sender import SpanSender  # noqa: PLC0415 - most runs need none

        self._watch.start(run, attempts)
        later = results_come_later(self._suite)
        self._export = SpanSender(self._endpoint, run, self._rows, self._watch.note, later)
        self._export.start()

    def begin(self, phase: Phase) -> None:
        """Remember whether attempts are made."""
        from pennyweight.judges.phases import PhaseKind  # noqa: PLC0415

        self._makes_attempts = phase.kind is PhaseKind.ATTEMPTS
        self._watch.begin(phase)

    def progress(self, tally: Tally, budget: Budget, rows: list[Row]) -> None:
        """Have the attempts sent; the rows of judges are none."""
        self._watch.progress(tally, budget, rows)
        if self._export and self._makes_attempts:
            self._export.add(rows)

    def end(self, result: JudgingResult | None = None) -> None:
        """Pass it on."""
        self._watch.end(result)

    def waiting(self, out: OutBatches, pause: float) -> None:
        """Pass it on."""
        self._watch.waiting(out, pause)

    def finish(self) -> tuple[str, ...]:
        """Send the rest; return what came of it."""
        return (self._export.finish(),) if self._export else ()

    def _rows(self, keys: Sequence[AttemptKey]) -> Iterator[dict[str, Any]]:
        """Read attempts from the store, with what is decided about them."""
        from pennyweight.api.export import decided_rows  # noqa: PLC0415 - it loads all of scoring
        from pennyweight.stored_runs.source import RunSource  # noqa: PLC0415

        wanted, tasks = set(keys), frozenset(key.task_id for key in keys)
        source = RunSource(self._store.find(keys[0].run), self._store, tasks=tasks)
        for row in decided_rows(source, {}):
            if AttemptKey.of(row) in wanted:
                yield row


def check_whole(suite: LoadedSuite, until: object) -> None:
    """Refuse to stop a narrowed run early: a policy is decided on the whole suite."""
    if until and suite.narrowing and suite.narrowing.is_part(len(suite.tasks), suite.runs):
        raise UsageError(
            "--until-decided decides on the whole suite; it excludes --limit, --task, --sample and "
            "fewer --runs."
        )
