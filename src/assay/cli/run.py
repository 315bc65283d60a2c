"""`assay run`: make the attempts of a suite, keep the records, print the scores."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.cli.options import format_option, store_option

if TYPE_CHECKING:
    from assay.run.execute import Difference, Outcome
    from assay.store.store import Run, Store
    from assay.suite.values import Suite

EPILOG = """\b
Examples:
  assay init && assay run suite.yaml
  assay run suite.yaml --dry-run
  assay run --resume
"""


@click.command("run", epilog=EPILOG, context_settings={"max_content_width": 80})
@click.argument("suite", required=False)
@click.option("--resume", is_flag=True, help="Go on with a run (RUN, or the latest).")
@click.option("--dry-run", is_flag=True, help="Show the plan and its cost; call nothing.")
@click.option("--yes", is_flag=True, help="Do not ask before making attempts anew.")
@click.option("--record", type=click.Path(path_type=Path), help="Write a file for replay:FILE.")
@click.option("--by", multiple=True, metavar="COLUMNS", help="Group the scores (default: tier).")
@store_option
@format_option
def command(
    suite: str | None,
    resume: bool,
    dry_run: bool,
    yes: bool,
    record: Path | None,
    by: tuple[str, ...],
    store: str | None,
    format: str,
) -> None:
    """Make the attempts of a SUITE, keep their records, print the scores.

    Nothing that was answered is lost: Ctrl-C, a crash or a full budget ends the
    run, and --resume makes only what is missing or failed. With --resume the
    argument may be a run's id, or the suite's file for the latest run of it.
    """
    from assay.run.execute import execute, new_run, open_suite  # noqa: PLC0415
    from assay.store.store import Store  # noqa: PLC0415

    at = Store(store)
    if resume:
        run, loaded = _resumed(suite, at, yes=yes)
    else:
        if suite is None:
            raise click.UsageError("Name a suite: assay run suite.yaml ('assay init' writes one).")
        loaded = open_suite(suite)
        if dry_run:
            from assay.report.plan import render  # noqa: PLC0415

            click.echo(render(loaded), nl=False)
            return
        run = new_run(loaded)
    progress = _progress(loaded)
    click.echo(f"Run {run.id}: {run.attempts:,} attempts of {loaded.name}.", err=True)
    try:
        outcome = execute(loaded, run, at, watch=progress, record=record, fresh=not resume)
    finally:
        progress.end()
    _scores(outcome, at, list(by), format)
    _end(outcome)


def _resumed(name: str | None, store: Store, *, yes: bool) -> tuple[Run, Suite]:
    """Find the run to go on with, and agree on what is made anew."""
    from assay.run.execute import difference, open_suite  # noqa: PLC0415

    if name and Path(name).is_file():
        path = str(Path(name))
        runs = [r for r in store.runs() if Path(r.path).resolve() == Path(name).resolve()]
        run = runs[0] if runs else store.find(path)
    else:
        run = store.find(name or "latest")
    suite = open_suite(run.path) if Path(run.path).is_file() else open_suite(run.path, run.text)
    found = difference(run, suite, store)
    _tell(run, found)
    if found.asks and not yes and not (sys.stdin.isatty() and click.confirm("Go on?", err=True)):
        raise click.UsageError("Nothing was done. --yes goes on without asking.")
    return run, suite


def _tell(run: Run, found: Difference) -> None:
    for text in found.texts:
        click.echo(f"Since run {run.id} began, there is a change in {text}.", err=True)
    click.echo(
        f"{found.reused:,} attempts stand, {found.failed:,} failed and are tried again, "
        f"{found.new:,} are still to be made, {found.changed:,} changed and are made anew.",
        err=True,
    )
    if found.gone:
        click.echo(f"{found.gone:,} records are no longer part of the suite; they stay.", err=True)


def _progress(suite: Suite) -> Any:
    """Make a progress that also knows how many answers are right so far."""
    import polars as pl  # noqa: PLC0415

    from assay.run.progress import Progress  # noqa: PLC0415
    from assay.store.store import RECORD_COLUMNS  # noqa: PLC0415
    from assay.text.extract import answer  # noqa: PLC0415
    from assay.text.match import matches  # noqa: PLC0415

    at = [RECORD_COLUMNS.index(n) for n in ("response", "target")]

    def right(rows: list[Any]) -> tuple[int, int]:
        pairs = [
            (r[at[0]], r[at[1]]) for r in rows if r[at[0]] is not None and r[at[1]] is not None
        ]
        if not pairs:
            return 0, 0
        frame = pl.DataFrame(pairs, schema={"r": pl.String, "t": pl.String}, orient="row")
        found = frame.lazy().with_columns(a=answer(pl.col("r"), suite.answer))
        hits = found.select(matches(pl.col("a"), pl.col("t"), suite.match).sum()).collect().item()
        return int(hits), len(pairs)

    return Progress(right)


def _scores(outcome: Outcome, store: Store, by: list[str], format: str) -> None:
    from assay.cli.options import names  # noqa: PLC0415
    from assay.pipeline import score  # noqa: PLC0415
    from assay.report import scores as report  # noqa: PLC0415
    from assay.run.source import RunSource  # noqa: PLC0415

    if not store.statuses(outcome.run.id):
        return
    source = RunSource(store.find(outcome.run.id), store)
    tiers = outcome.run.settings["tiers"]
    columns = names(tuple(by)) or (["tier"] if len(tiers) > 1 else [])
    if len(outcome.run.settings["subjects"]) > 1 and not by:
        columns = ["subject", *columns]
    click.echo(report.render(score([source], by=columns), format), nl=False)


def _end(outcome: Outcome) -> None:
    """Say how it ended, and leave with the exit code for it."""
    run, tally = outcome.run, outcome.tally
    again = f"assay run --resume {run.id}"
    cost = outcome.spent["usd"]
    paid = f", ${cost:.4g}" if cost is not None else ""
    click.echo(f"{tally.done:,} of {tally.total:,} attempts made{paid}. Run {run.id}.", err=True)
    if outcome.interrupted:
        click.echo(f"Interrupted; go on with: {again}", err=True)
        raise click.exceptions.Exit(130)
    if tally.exhausted:
        click.echo(f"The budget of {tally.exhausted} is used up. More, then: {again}", err=True)
        raise click.exceptions.Exit(4)
    if tally.errors:
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in sorted(tally.errors.items()))
        click.echo(f"Attempts that could not be made: {kinds}. Try them again: {again}", err=True)
        raise click.exceptions.Exit(4)
