"""`pennyweight run`: make the attempts of a suite, store the records, print the scores."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pennyweight.cli.narrowing import narrowing_keywords, narrowing_options
from pennyweight.cli.options import by_option, format_option, option, recording_option, store_option
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.store.store import Store, StoredRun

EPILOG = """\b
Examples:
  pennyweight run suite.yaml --dry-run
  pennyweight run suite.yaml --limit 3 --tier T0 --set settings.max_tokens=64
  pennyweight run questions.csv -m openai/gpt-5-mini
  pennyweight run suite.yaml --batch
  pennyweight run -m local/smollm2-135m --ask "What is 2 + 2?"

\b
Exit codes: 0 all attempts were made; 2 wrong usage or an error in the suite,
nothing was called; 4 some attempts could not be made, or the store failed;
130 interrupted. With --until-decided also 1 (failed) and 3 (inconclusive).
"""


@click.command("run", epilog=EPILOG)
@click.argument("suite", required=False)
@click.option("--resume", is_flag=True, help="Continue a run (default: the latest).")
@click.option("--suite", "file", metavar="FILE", help="With --resume: the suite's file.")
@option("--force", "With --resume: take the run over from another process.", is_flag=True)
@option("--ask", "Ask the models this question, in place of a SUITE.", "QUESTION")
@narrowing_options
@option("--dry-run", "Show the plan and its cost; call nothing.", is_flag=True)
@option("--yes", "Repeat changed attempts without asking.", is_flag=True)
@recording_option
@by_option
@click.option(
    "--until-decided",
    "until",
    multiple=True,
    metavar="POLICY",
    help="Stop as soon as this policy is decided; print its verdict.",
)
@option("--baseline", "Records that the policy compares with.", "SOURCE|NAME")
@option("--version", "Evaluated version, for progressive thresholds.", "V")
@option("--on", "Who makes the attempts: ray, ray://HOST:PORT, or workers.", "WHERE")
@option("--otel", "Send every attempt to this OTLP/HTTP endpoint.", "ADDRESS")
@option(
    "--probe",
    "Cut the chains of thought of the run SUITE, and ask for the answers.",
    "truncation",
    type=click.Choice(["truncation"]),
)
@option("--watch", "Run again when the suite's files change.", is_flag=True)
@store_option
@format_option
def command(
    suite: str | None,
    resume: bool,
    file: str | None,
    force: bool,
    ask: str | None,
    dry_run: bool,
    yes: bool,
    record: Path | None,
    by: list[str],
    until: tuple[str, ...],
    baseline: str | None,
    version: str | None,
    on: str | None,
    otel: str | None,
    probe: Any,
    watch: bool,
    store: str | None,
    format: str,
    **narrowing: Any,
) -> None:
    """Make the attempts of a SUITE, store their records, print the scores.

    No answer is lost: after Ctrl-C, a crash or a reached limit, --resume makes
    only the attempts that are missing or failed. With --resume, SUITE may also be
    the id of a run; without SUITE, the latest run continues. A suite that exists
    only in the store runs no commands or functions, reads no files, and sends no
    key elsewhere, unless you confirm it or name its file with --suite.

    With --model, SUITE may also be a file of tasks, or a question with a space in
    it. The options from --limit to --set hold for this run alone, and --resume
    keeps them.
    """
    if watch:
        from pennyweight.cli.watch import watch as repeat

        repeat(suite or ".")
    _check_together(
        file, resume=resume, force=force, until=until, record=record, compares=baseline or version
    )
    _check_named(suite, ask, narrowing["model"], resume=resume, probe=probe)
    from pennyweight.api import run as api
    from pennyweight.api.sources import open_store
    from pennyweight.cli.run_display import RunDisplay

    options = narrowing_keywords(**narrowing)
    at = open_store(store)
    click.get_current_context().call_on_close(at.close)
    against = (("--baseline", baseline), ("--version", version))
    words = [word for policy in until for word in ("--until-decided", policy)]
    words += [word for option, value in against if value for word in (option, value)]
    display = RunDisplay(at, record, by, yes=yes or dry_run, until=words, otel=otel)
    if dry_run:
        from pennyweight.render.plan import render

        with contextlib.redirect_stdout(display):
            plan = api.plan(
                suite,
                resume=resume,
                file=file,
                store=at,
                by=by,
                watch=display,
                probe=probe,
                ask=ask,
                **options,
            )
        click.echo(render(plan, format), nl=False)
        return
    if on and (until or record or probe):
        raise click.UsageError("--on excludes --until-decided, --record and --probe.")
    if on == "workers" and ask is not None:
        raise click.UsageError("--ask excludes --on workers.")
    if on == "workers":
        from pennyweight.cli.sharing.elsewhere import put_up

        put_up(suite, resume=resume, file=file, store=at, by=by, watch=display, **options)
        return
    policy = api.Until(until, baseline, version) if until else None
    with contextlib.redirect_stdout(display):
        if resume:
            result = api.resume(
                suite or "latest", suite=file, store=at, record=record, by=by, watch=display,
                until=policy, force=force, otel=otel, on=on, **options,
            )  # fmt: skip
        else:
            result = api.run(
                suite or "", store=at, record=record, by=by, watch=display, until=policy,
                otel=otel, probe=probe, on=on, ask=ask, **options,
            )  # fmt: skip
    if not until:
        print_scores(result.stored, at, by, format)
    display.result(result)
    if result.verdict:
        from pennyweight.cli.gate import show

        show(result.verdict, "table" if format == "csv" else format)
    compute_numbers(at, result.id)
    if result.exit_code:
        raise click.exceptions.Exit(result.exit_code)


def compute_numbers(store: Store, run: str) -> None:
    """Compute what the page of a run shows, if that adds little to the time of the run."""
    from pennyweight.api.pages.ended_run import compute_ahead

    compute_ahead(store, run, lambda text: click.echo(text, err=True))


def _check_together(
    file: str | None,
    *,
    resume: bool,
    force: bool,
    until: tuple[str, ...],
    record: Path | None,
    compares: str | None,
) -> None:
    """Refuse options that exclude each other, or that need others."""
    if (compares and not until) or (until and record):
        raise click.UsageError(
            "--baseline and --version require --until-decided; --record excludes it."
        )
    if (file or force) and not resume:
        raise click.UsageError(
            "--suite requires --resume; without it, name the suite itself."
            if file
            else "--force requires --resume: it takes over a run from another process."
        )


def _check_named(
    suite: str | None, ask: str | None, models: tuple[str, ...], *, resume: bool, probe: str | None
) -> None:
    if ask is not None:
        if suite is not None or resume or probe:
            raise click.UsageError("--ask takes the place of a SUITE, --resume and --probe.")
        if not ask.strip() or not models:
            raise click.UsageError('--ask needs a question and a model: -m PROVIDER/NAME --ask "…"')
        return
    if probe and (resume or suite is None):
        raise click.UsageError("--probe needs a run: pennyweight run RUN --probe truncation.")
    if suite is None and not resume:
        raise click.UsageError(
            "Name a suite: pennyweight run suite.yaml ('pennyweight init' writes one)."
        )


def print_scores(run: StoredRun, store: Store, by: list[str], format: str) -> None:
    """Print the scores of a run, its tiers side by side."""
    from pennyweight.api.runs import replies_of_run, scores_of_run
    from pennyweight.render.scores import is_overview, render

    if replies := replies_of_run(run, store):
        from pennyweight.render.runs import render_replies

        click.echo(render_replies(replies, format), nl=False)
        return
    scores, notes = scores_of_run(run, by, overview=is_overview(format), store=store)
    if scores is not None:
        rest = f"'pennyweight score {run.id} --all'"
        click.echo(render(scores, format, rest=rest), nl=False)
    elif format == "json":
        click.echo('{"groups": []}')
    for note in notes:
        click.echo(f"Note: {clean(note)}", err=True)
