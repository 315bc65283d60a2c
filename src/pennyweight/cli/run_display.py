"""A run in the terminal: notes, questions, a progress line and the end of each phase."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import click

from pennyweight.api.run import Watcher
from pennyweight.render.progress import is_terminal, progress_of
from pennyweight.render.run_end import (
    broken_sentence,
    difference_sentences,
    end_sentences,
    failure_sentences,
    judging_sentences,
    made_sentence,
    narrowed_suffix,
    phase_title,
    resume_command,
    retry_sentence,
    waiting_line,
)
from pennyweight.text.format import plural
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pennyweight.api.runs import Run
    from pennyweight.engine.budget import Budget
    from pennyweight.engine.resume import ResumePlan
    from pennyweight.engine.tally import Tally
    from pennyweight.judges.judging import JudgingResult
    from pennyweight.judges.phases import Phase
    from pennyweight.render.progress import Progress
    from pennyweight.store.lanes.batches import OutBatches
    from pennyweight.store.store import Row, RunSettings, Store, StoredRun


class RunDisplay(Watcher, io.TextIOBase):
    """Shows a run on standard error.

    It is also a stream. Standard output is for results, so what functions of the suite print goes
    here, above the progress line.
    """

    def __init__(
        self,
        store: Store,
        record: Path | None = None,
        by: Sequence[str] = (),
        *,
        yes: bool = False,
        until: Sequence[str] = (),
        otel: str | None = None,
    ) -> None:
        self._otel = ("--otel", otel) if otel else ()
        self._store, self._record, self._by = store, record, by
        self._yes, self._until = yes, until
        self._line: Progress | None = None
        self._last = ""
        self._run = ""
        self._settings: RunSettings = {}

    def write(self, text: str) -> int:
        """Print what a function of the suite printed."""
        if self._line:
            return self._line.write(text)
        click.echo(text, nl=False, err=True)
        return len(text)

    def note(self, text: str) -> None:
        """Print a note, above the progress line if there is one."""
        self.write(f"Note: {clean(text)}\n")

    def approve(self, run: StoredRun, difference: ResumePlan) -> bool:
        """Print what a resumed run reuses; ask if the suite has changed."""
        for sentence in difference_sentences(run.id, difference):
            _print(sentence)
        if not difference.asks or self._yes:
            return True
        return sys.stdin.isatty() and click.confirm("Continue?", err=True)

    def trust(self, run: StoredRun, uses: Sequence[str]) -> bool:
        """Print what a suite from a store would do, and ask; only a person can answer."""
        if not sys.stdin.isatty():
            return False
        _print(f"The suite of run {run.id} comes from the store, not from a file. It would:")
        for use in uses:
            _print(f"  - {clean(use)}")
        return click.confirm("Do you trust it?", err=True)

    def start(self, run: StoredRun, attempts: int) -> None:
        """Announce the run."""
        self._run, self._settings = run.id, run.settings
        most = "at most " if self._until else ""
        part = narrowed_suffix(run.settings)
        suite = clean(f"{run.suite}{part}")
        _print(f"Run {run.id}: {most}{plural(attempts, 'attempt')} of {suite}.")

    def begin(self, phase: Phase) -> None:
        """Start the progress line of a phase."""
        if self._last and is_terminal(sys.stderr):
            click.echo("\r\x1b[2K", nl=False, err=True)
        self._last = ""
        if phase.suite is None:
            _print(phase_title(phase))
        self._line = progress_of(phase)

    def progress(self, tally: Tally, budget: Budget, rows: list[Row]) -> None:
        """Update the progress line."""
        if self._line:
            self._line(tally, budget, rows)

    def end(self, result: JudgingResult | None = None) -> None:
        """End the progress line; print the result of a phase of judges."""
        if self._line:
            self._line.end()
            self._line = None
        if result:
            for sentence in judging_sentences(result, self.command):
                _print(sentence)

    def waiting(self, out: OutBatches, pause: float) -> None:
        """Show what is out in batches; on a terminal, in one line."""
        line = waiting_line(out, pause)
        if is_terminal(sys.stderr):
            click.echo(f"\r\x1b[2K{line}", nl=False, err=True)
        elif line != self._last:
            click.echo(line, err=True)
        self._last = line

    @property
    def command(self) -> str:
        """The command that continues the run with the same options."""
        return resume_command(
            self._store.address,
            self._run,
            self._record,
            self._by,
            (*self._until, *self._otel),
            self._settings,
        )

    def result(self, result: Run) -> None:
        """Print how the run ended and how to continue it."""
        run, ended = result.id, result.ended
        failed = sum(result.errors.values())
        if result.broken_checks:
            _print(broken_sentence(run, result.broken_checks))
        if result.score_errors:
            from pennyweight.render.scores import score_error_lines

            for line in score_error_lines(result.score_errors):
                _print(line)
        for note in result.notes:
            self.note(note)
        if result.is_early_stopping:
            most = plural(result.attempts, "attempt")
            _print(f"{result.made:,} of at most {most} made. Run {run}.")
        else:
            made, spent, judged = result.made, result.spent, result.has_judges
            _print(made_sentence(run, result.attempts, made, failed, spent, judged=judged))
        if result.errors:
            for sentence in failure_sentences(run, result.errors, result.error_examples):
                _print(sentence)
        if ended.reason or result.exit_code == 130:
            _print(retry_sentence(ended, result.retries or 0, result.last_error))
        for sentence in end_sentences(
            ended,
            self.command,
            missing=result.missing,
            answered=result.made,
            last_error=result.last_error,
        ):
            _print(sentence)


def _print(sentence: str) -> None:
    if sentence:
        click.echo(sentence, err=True)
