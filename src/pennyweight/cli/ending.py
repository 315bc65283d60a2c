"""How `pennyweight run` ends: what was made, what failed and why, and how to go on."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pennyweight.engine.execution import Outcome
    from pennyweight.engine.tally import Tally
    from pennyweight.store.store import Run, Store


def attempts(number: int) -> str:
    """Count attempts in words."""
    return "1 attempt" if number == 1 else f"{number:,} attempts"


def again_of(store: Store, run: Run, record: Path | None, by: Sequence[str]) -> str:
    """Write the command that goes on with a run as it was asked for."""
    from pennyweight.store.connection import again  # noqa: PLC0415

    more = ["--record", str(record)] if record else []
    more += [part for columns in by for part in ("--by", columns)]
    return " ".join([again(store.address, run.id), *map(shlex.quote, more)])


def end(outcome: Outcome, again: str, store: Store, *, judged: bool) -> None:
    """Say how it ended, and leave with the exit code for it.

    What was interrupted when nothing was left to do, not even for a judge, has ended well.
    """
    from pennyweight.render.plain import cost_text  # noqa: PLC0415

    run, tally = outcome.run, outcome.tally
    cost = cost_text(outcome.spent)
    paid = f", {cost}" if cost else ""
    failed = sum(tally.errors.values())
    missing = f", {failed:,} could not be made" if failed else ""
    made = f"{tally.done - failed:,} of {attempts(tally.total)} made{missing}"
    if not tally.total:
        made = "No attempt was left to make" if judged else "Nothing was left to make"
    click.echo(f"{made}{paid}. Run {run.id}.", err=True)
    if tally.errors:
        _tell_errors(run, tally.errors, store)
    if outcome.interrupted or tally.exhausted:
        tell_retried(tally)
    if outcome.interrupted and (outcome.missing or judged):
        click.echo(f"Interrupted; go on with: {again}", err=True)
        raise click.exceptions.Exit(130)
    if tally.exhausted:
        said = clean(tally.exhausted)
        what = "Raise limits in the suite, then: " if is_limit(said) else "Go on later with: "
        if is_limit(said) and tally.said and tally.done == failed:
            what = "No call was answered; when that is mended: "
        anew = " --yes" if what.startswith("Raise") else ""  # a changed suite is asked about
        click.echo(f"{said} {what}{again}{anew}", err=True)
    elif outcome.missing:
        click.echo(f"Try them again: {again}", err=True)
    if outcome.missing:
        raise click.exceptions.Exit(4)


def tell_retried(tally: Tally) -> None:
    """Say with what calls failed that were to be tried again when the run ended."""
    from pennyweight.render.plain import one_line  # noqa: PLC0415

    if not tally.said or tally.said in (tally.exhausted or ""):
        return
    number = tally.retries
    were = "1 call failed and was" if number == 1 else f"{number:,} calls failed and were"
    click.echo(f"{were} tried again, the last: {one_line(tally.said, 300)}", err=True)


def is_limit(said: str) -> bool:
    """Whether a run ended at a limit of its suite, not because an account was given up."""
    return "budget" in said or "limits." in said


def _tell_errors(run: Run, kinds: dict[str, int], store: Store) -> None:
    """Say why attempts failed: one example for each kind of error."""
    from pennyweight.render.plain import one_line  # noqa: PLC0415
    from pennyweight.runs.failures import failures  # noqa: PLC0415

    counted = ", ".join(f"{n:,} {kind}" for kind, n in sorted(kinds.items()))
    click.echo(f"Attempts that could not be made: {counted}. For example:", err=True)
    tasks = []
    for one in failures(run.id, store):
        if one.kind in kinds:
            tasks.append(one.task)
            click.echo(
                f"  {one.kind}, task {one_line(one.task)}: {one_line(one.message, 300)}", err=True
            )
    if tasks:
        click.echo(f"'pennyweight show {run.id} {one_line(tasks[0])}' shows one in full.", err=True)
