"""`pennyweight run`: make the attempts of a suite, keep the records, print the scores."""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TextIO

import click

from pennyweight.cli.ending import again_of, attempts, end
from pennyweight.cli.options import format_option, names, store_option
from pennyweight.errors import UsageError
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pennyweight.engine.execution import Outcome
    from pennyweight.engine.resume import Difference
    from pennyweight.store.store import Run, Store
    from pennyweight.suite.values import Suite

EPILOG = """\b
Examples:
  pennyweight init && pennyweight run suite.yaml
  pennyweight run suite.yaml --dry-run
  pennyweight run --resume

\b
Exit codes: 0 all attempts were made; 2 wrong usage or a mistake in the suite,
nothing was called; 4 some attempts could not be made, or the store failed;
130 interrupted. With --until-decided also 1 (failed) and 3 (inconclusive).
"""


@click.command("run", epilog=EPILOG, context_settings={"max_content_width": 80})
@click.argument("suite", required=False)
@click.option("--resume", is_flag=True, help="Go on with a run (RUN, or the latest).")
@click.option("--dry-run", is_flag=True, help="Show the plan and its cost; call nothing.")
@click.option("--yes", is_flag=True, help="Do not ask before making attempts anew.")
@click.option("--record", type=click.Path(path_type=Path), help="Write a file for replay:FILE.")
@click.option("--by", multiple=True, metavar="COLUMNS", help="Group the scores (default: tier).")
@click.option(
    "--until-decided",
    "until",
    multiple=True,
    metavar="POLICY",
    help="Stop as soon as this policy is decided; print its verdict.",
)
@click.option("--baseline", metavar="SOURCE|NAME", help="What the policy compares with.")
@click.option("--version", metavar="V", help="Of what is evaluated, for progressive thresholds.")
@click.option("--watch", is_flag=True, help="Run again whenever the suite's files change.")
@store_option
@format_option
def command(
    suite: str | None,
    resume: bool,
    dry_run: bool,
    yes: bool,
    record: Path | None,
    by: tuple[str, ...],
    until: tuple[str, ...],
    baseline: str | None,
    version: str | None,
    watch: bool,
    store: str | None,
    format: str,
) -> None:
    """Make the attempts of a SUITE, keep their records, print the scores.

    Nothing that was answered is lost: Ctrl-C, a crash or a full budget ends the
    run, and --resume makes only what is missing or failed. With --resume the
    argument may be a run's id, or the suite's file for the latest run of it.
    """
    from pennyweight.engine.advice import ANSWERED_BY, shared  # noqa: PLC0415
    from pennyweight.engine.execution import execute  # noqa: PLC0415
    from pennyweight.engine.preflight import fetched  # noqa: PLC0415
    from pennyweight.store.store import Store  # noqa: PLC0415
    from pennyweight.suite.plan import count  # noqa: PLC0415

    if watch:
        from pennyweight.cli.watch import watch as again  # noqa: PLC0415

        again(suite or ".")
    if ((baseline or version) and not until) or (until and record):
        raise click.UsageError(
            "--baseline and --version go with --until-decided, and --record does not."
        )
    at = Store(store)
    click.get_current_context().call_on_close(at.close)
    run, loaded = _prepared(suite, at, names(by), resume=resume, yes=yes or dry_run)
    if dry_run:
        from pennyweight.render.plan import render  # noqa: PLC0415

        click.echo(render(loaded, format), nl=False)
        return
    if record:
        _recordable(record, at)
    _opened(at)
    for fetch in fetched(loaded):
        click.echo(f"Note: {fetch}", err=True)
    if until:
        from pennyweight.cli.until import until_decided  # noqa: PLC0415

        code = until_decided(loaded, run, at, until, baseline, version, format, fresh=not resume)
        raise click.exceptions.Exit(code)
    Thread(target=_import_scorer, daemon=True).start()
    progress, began = _progress(loaded), time.monotonic()
    click.echo(f"Run {run.id}: {attempts(count(loaded))} of {clean(loaded.name)}.", err=True)
    with _own_output(progress):
        try:
            outcome = execute(
                loaded, run, at, watch=progress, record=record, fresh=not resume, began=began
            )
        finally:
            progress.end()
        _observe(outcome, loaded, at)
        code = _judge(outcome, loaded, at, record, began, by)
    print_scores(at.find(run.id), at, list(by), format)
    if outcome.tally.done > 1 and (note := shared(loaded, at.records(run.id, ANSWERED_BY))):
        click.echo(f"Note: {clean(note)}", err=True)
    outcome = replace(outcome, spent=at.spent(run.id))
    end(outcome, again_of(at, run, record, by), at, judged=loaded.judge is not None)
    if code:
        raise click.exceptions.Exit(code)


def _prepared(
    name: str | None, store: Store, by: list[str], *, resume: bool, yes: bool
) -> tuple[Run, Suite]:
    """Give the run to make and its suite, warned about and checked before anything is called."""
    from pennyweight.engine.execution import new_run, open_suite  # noqa: PLC0415

    with _own_output():
        if resume:
            run, suite = _resumed(name, store, by, yes=yes)
        elif name is None:
            raise click.UsageError(
                "Name a suite: pennyweight run suite.yaml ('pennyweight init' writes one)."
            )
        else:
            suite = open_suite(name, by=by)
            run = new_run(suite)
        _warn(suite)
    return run, suite


@contextlib.contextmanager
def _own_output(other: TextIO | None = None) -> Iterator[None]:
    """Keep standard output for results: what functions of the user print goes to the other one.

    All threads share it, so it is replaced once and not for each call.
    """
    with contextlib.redirect_stdout(other or sys.stderr):
        yield


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _observe(outcome: Outcome, suite: Suite, store: Store) -> None:
    """Keep what the attempts are checked for, and say how many checks broke."""
    from pennyweight.runs.observations import keep  # noqa: PLC0415

    keep(suite, outcome.run, store)
    broken = outcome.broken
    if broken:
        were = "1 check broke" if broken == 1 else f"{broken:,} checks broke"
        click.echo(f"{were}; 'pennyweight show {outcome.run.id} TASK' says why.", err=True)


def _judge(
    outcome: Outcome,
    suite: Suite,
    store: Store,
    record: Path | None,
    began: float,
    by: Sequence[str] = (),
) -> int:
    """Ask the judges what the suite wants to know of them; gives the exit code."""
    if not suite.judge:
        return 0
    from pennyweight.cli.judge import tell  # noqa: PLC0415
    from pennyweight.engine.progress import Progress  # noqa: PLC0415
    from pennyweight.judges.phases import phases, unpriced  # noqa: PLC0415

    code, notes = 0, unpriced(suite)
    for phase in phases(outcome, suite, store, record=record, began=began):
        click.echo(clean(phase.title), err=True)
        while notes:
            click.echo(f"Note: {clean(notes.pop(0))}", err=True)
        progress = Progress(lambda _: (0, 0))
        try:
            judged = phase.carry_out(progress)
        finally:
            progress.end()
        if judged:
            code = tell(judged, again_of(store, outcome.run, record, by)) or code
            if judged.interrupted or judged.tally.exhausted:
                break
    return code


def _warn(suite: Suite) -> None:
    """Say once, before the first call, what will not be as the suite may suggest."""
    from pennyweight.engine.execution import model_of  # noqa: PLC0415
    from pennyweight.engine.preflight import warnings  # noqa: PLC0415

    for warning in warnings(suite, model_of):
        click.echo(f"Note: {clean(warning)}", err=True)


def _opened(store: Store) -> None:
    """Open the store before a run is announced that it could not keep."""
    from pennyweight.store.connection import StoreError  # noqa: PLC0415

    try:
        _ = store.engine
    except StoreError as error:
        advice = "Nothing was called; --store names another."
        raise StoreError(error.problem, advice) from error


def _recordable(path: Path, store: Store) -> None:
    """Refuse a recording that cannot be written before anything is called."""
    from pennyweight.models.replay import Recorder  # noqa: PLC0415

    if path.resolve() == Path(store.address).resolve():
        raise UsageError(f"--record {path}: it is the store; name another file.")
    Recorder(path).close()


def _resumed(name: str | None, store: Store, by: Sequence[str], *, yes: bool) -> tuple[Run, Suite]:
    """Find the run to go on with, and agree on what is made anew."""
    from pennyweight.engine.execution import open_suite  # noqa: PLC0415
    from pennyweight.engine.resume import difference  # noqa: PLC0415

    if name and Path(name).is_file():
        path = str(Path(name))
        runs = [r for r in store.runs() if Path(r.path).resolve() == Path(name).resolve()]
        run = runs[0] if runs else store.find(path)
    else:
        run = store.find(name or "latest")
    there = Path(run.path).is_file()
    if not there:
        click.echo(
            f"Note: {clean(run.path)} is gone; the suite is taken as run {run.id} kept it.",
            err=True,
        )
    suite = open_suite(run.path, None if there else run.text, by)
    found = difference(run, suite, store)
    _tell(run, found)
    if found.asks and not yes and not (sys.stdin.isatty() and click.confirm("Go on?", err=True)):
        raise UsageError("Nothing was done. --yes goes on without asking.")
    return run, suite


def _tell(run: Run, found: Difference) -> None:
    for text in found.texts:
        click.echo(f"Since run {run.id} began, there is a change in {text}.", err=True)
    click.echo(
        f"{attempts(found.reused)} stand{'s' if found.reused == 1 else ''}, "
        f"{found.failed:,} failed and {_are(found.failed)} tried again, "
        f"{found.new:,} {_are(found.new)} still to be made, "
        f"{found.changed:,} changed and {_are(found.changed)} made anew.",
        err=True,
    )
    if found.gone:
        records = "1 record is" if found.gone == 1 else f"{found.gone:,} records are"
        click.echo(f"{records} no longer part of the suite.", err=True)
    if found.gone or found.changed:
        click.echo(
            "What the suite no longer asks for is set aside: no score counts it, and it comes back "
            "with the suite that made it.",
            err=True,
        )


def _progress(suite: Suite) -> Any:
    """Make a progress that also knows how many answers are right so far, where that is quick."""
    import polars as pl  # noqa: PLC0415

    from pennyweight.engine.progress import Progress  # noqa: PLC0415
    from pennyweight.store.store import RECORD_COLUMNS  # noqa: PLC0415
    from pennyweight.text.extraction import answer  # noqa: PLC0415
    from pennyweight.text.matching import matches  # noqa: PLC0415

    at = [RECORD_COLUMNS.index(n) for n in ("response", "target", "passed")]

    def right(rows: list[Any]) -> tuple[int, int]:
        decided = [r[at[2]] for r in rows if r[at[2]] is not None]
        if decided:
            return sum(decided), len(decided)
        pairs = [
            (r[at[0]], r[at[1]]) for r in rows if r[at[0]] is not None and r[at[1]] is not None
        ]
        if not pairs or "math" in {suite.match.kind, suite.match.each}:
            return 0, 0
        frame = pl.DataFrame(pairs, schema={"r": pl.String, "t": pl.String}, orient="row")
        found = frame.lazy().with_columns(a=answer(pl.col("r"), suite.answer))
        hits = found.select(matches(pl.col("a"), pl.col("t"), suite.match).sum()).collect().item()
        return int(hits), len(pairs)

    return Progress(right)


def _import_scorer() -> None:
    """Import what makes the scores, while the first answers are waited for."""
    import pennyweight.api.score  # noqa: PLC0415
    import pennyweight.render.scores  # noqa: F401, PLC0415


def print_scores(run: Run, store: Store, by: list[str], format: str) -> None:
    """Print the scores of a run, its tiers side by side."""
    from pennyweight.api.score import score  # noqa: PLC0415
    from pennyweight.cli.notes import note_unanswered  # noqa: PLC0415
    from pennyweight.render import scores as report  # noqa: PLC0415
    from pennyweight.runs.source import RunSource  # noqa: PLC0415

    if not store.statuses(run.id):
        if format == "json":
            click.echo('{"groups": []}')
        return
    source = RunSource(run, store)
    tiers = run.settings["tiers"]
    columns = names(tuple(by)) or (["tier"] if len(tiers) > 1 else [])
    if len(run.settings["subjects"]) > 1 and not by:
        columns = ["subject", *columns]
    scores = score([source], by=columns)
    click.echo(report.render(scores, format, brief=True), nl=False)
    right = [group.estimates["accuracy"].value for group in scores.groups]
    apart = len(tiers) == 1 or "tier" in columns
    if not apart or not all(isinstance(value, float) and value >= 0.5 for value in right):
        note_unanswered([source])  # where most are right, most have an answer
