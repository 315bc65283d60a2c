"""Notes on standard error about the records that a command reads."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pennyweight.scoring.comparison import Comparison
    from pennyweight.scoring.scores import Scores
    from pennyweight.sources.source import Source

LISTED_PROBLEMS = 5
LISTED_COLUMNS = 12


class ReadingProgress:
    """Shows how many records were read, once reading takes more than a second."""

    def __init__(self) -> None:
        self.next = time.monotonic() + 1

    def __call__(self, records: int) -> None:
        """Show the number, at most five times a second."""
        now = time.monotonic()
        if now > self.next:
            self.next = now + 0.2
            click.echo(f"\r{records:,} records read … ", err=True, nl=False)


def note_reading(result: Scores | Comparison, prices: str | None) -> None:
    """Print which records and columns were not used, and which models have no price."""
    if result.unpriced:
        names = ", ".join(result.unpriced)
        text = f"{prices} has no price for {names}; the recorded costs are used."
        click.echo(clean(text), err=True)
    if result.left_out:
        lines = "\n".join(f"  {problem}" for problem in result.problems[:LISTED_PROBLEMS])
        were = "bad record was" if result.left_out == 1 else "bad records were"
        click.echo(clean(f"{result.left_out:,} {were} left out:\n{lines}"), err=True)
    if result.unused:
        names = clean(", ".join(result.unused[:LISTED_COLUMNS]))
        left = len(result.unused) - LISTED_COLUMNS
        more = f" and {left} more" if left > 0 else ""
        click.echo(f"Not used: {names}{more}. Read one with --map COLUMN=THEIRS.", err=True)


def note_score_errors(errors: Mapping[str, tuple[int, str]]) -> None:
    """Print how often each scorer failed."""
    if errors:
        from pennyweight.render.scores import score_error_lines

        for line in score_error_lines(errors):
            click.echo(line, err=True)


def note_sources(
    sources: Iterable[Source], map: Mapping[str, str] | None = None, answer: str | None = None
) -> None:
    """Print what people should know about records: logs whose numbers differ, doubtful columns."""
    from pennyweight.api.score import doubtful

    sources = list(sources)
    for note in doubtful(sources, map or {}, answer):
        click.echo(f"Note: {clean(note)}", err=True)
    for source in sources:
        for note in source.notes():
            click.echo(f"Note: {clean(note)}", err=True)


def note_unfinished(sources: Iterable[Source]) -> None:
    """Print which runs are incomplete, so that their scores do not cover the whole suite."""
    from pennyweight.api.score import unfinished

    for run in unfinished(sources):
        if run.narrowed:
            click.echo(clean(f"Note: run {run.run_id} has {run.narrowed}."), err=True)
        if run.made == run.planned:
            continue
        made = f"{run.made:,} of {run.planned:,} attempts made"
        click.echo(f"Note: run {run.run_id} is incomplete: {made} ({run.status}).", err=True)


def print_people(sources: Iterable[Source], confidence: float) -> None:
    """Print the metrics as people's verdicts correct them, for runs that people labelled."""
    from pennyweight.api.sources import runs_of

    runs = runs_of(sources)
    if not runs:  # files need no store
        return
    from pennyweight.api.review import labelled_runs
    from pennyweight.render.page.people import people_lines

    for found in labelled_runs(runs, confidence):
        click.echo()
        for line in people_lines(found):
            click.echo(clean(line))


def note_unanswered(sources: Iterable[Source], answer: str | None = None) -> None:
    """Print in which runs the answer rule finds hardly any answer, so accuracy means little."""
    from pennyweight.api.score import unanswered

    for note in unanswered(sources, answer):
        click.echo(f"Note: {clean(note)}", err=True)
