"""What commands that read records say on standard error beside their result."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pennyweight.scoring.comparison import Comparison
    from pennyweight.scoring.scores import Scores
    from pennyweight.sources.source import Source

LISTED_PROBLEMS = 5
LISTED_COLUMNS = 12


class ReadingProgress:
    """Shows on the terminal how many records were read, once reading takes a while."""

    def __init__(self) -> None:
        self.next = time.monotonic() + 1

    def __call__(self, records: int) -> None:
        """Show the number, but not too often."""
        now = time.monotonic()
        if now > self.next:
            self.next = now + 0.2
            click.echo(f"\r{records:,} records read … ", err=True, nl=False)


def note_reading(result: Scores | Comparison, prices: str | None) -> None:
    """Tell which records and columns were not used, and whose cost the price list leaves."""
    if result.unpriced:
        names = ", ".join(result.unpriced)
        click.echo(clean(f"{prices} names no price for {names}: the cost stays."), err=True)
    if result.left_out:
        lines = "\n".join(f"  {problem}" for problem in result.problems[:LISTED_PROBLEMS])
        were = "bad record was" if result.left_out == 1 else "bad records were"
        click.echo(clean(f"{result.left_out:,} {were} left out:\n{lines}"), err=True)
    if result.unused:
        names = clean(", ".join(result.unused[:LISTED_COLUMNS]))
        left = len(result.unused) - LISTED_COLUMNS
        more = f" and {left} more" if left > 0 else ""
        click.echo(f"Not used: {names}{more}. Read one with --map COLUMN=THEIRS.", err=True)


def note_unfinished(sources: Iterable[Source]) -> None:
    """Tell which runs lack attempts: then no score covers the whole suite."""
    from pennyweight.api.score import unfinished  # noqa: PLC0415

    for run in unfinished(sources):
        of = f"{run.made:,} of {run.planned:,} attempts of run {run.run_id}"
        click.echo(f"Note: {of} {'is' if run.made == 1 else 'are'} made ({run.status}).", err=True)


def note_unanswered(sources: Iterable[Source], answer: str | None = None) -> None:
    """Tell in which runs the answer rule finds hardly any answer: then accuracy means nothing."""
    from pennyweight.api.score import unanswered  # noqa: PLC0415

    for note in unanswered(sources, answer):
        click.echo(f"Note: {clean(note)}", err=True)
