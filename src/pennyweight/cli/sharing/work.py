"""`pennyweight work`: make attempts of a run that others have started."""

from __future__ import annotations

import contextlib

import click

from pennyweight.cli.narrowing import narrowing_keywords, repeated_options
from pennyweight.cli.options import store_option

EPILOG = """\b
Examples:
  pennyweight run suite.yaml --on workers --store postgresql://db/evals
  pennyweight work 20260101 --suite suite.yaml --store postgresql://db/evals

\b
Exit codes: 0 no attempts are left; 2 wrong usage or an error in the suite,
nothing was called; 4 some attempts could not be made, or the store failed;
130 interrupted.
"""


@click.command("work", epilog=EPILOG)
@click.argument("run", default="latest", required=False)
@click.option("--suite", "file", metavar="FILE", help="The suite's file on this machine.")
@click.option(
    "--subject", "subjects", multiple=True, metavar="NAME",
    help="Make only attempts of this subject. May be repeated.",
)  # fmt: skip
@repeated_options
@store_option
def command(
    run: str,
    file: str | None,
    subjects: tuple[str, ...],
    model: tuple[str, ...],
    set: tuple[str, ...],
    store: str | None,
) -> None:
    """Make attempts of a RUN that others have started.

    Any number of workers, on any machines, share the attempts and the limits of a
    run in a PostgreSQL store. A worker writes each record before it takes the next
    attempt. Stop and start workers at any time: what one does not finish, another
    makes. A suite that exists only in the store runs no commands or functions,
    reads no files, and sends no key elsewhere, unless you confirm it or name its
    file with --suite.
    """
    from pennyweight.api.sharing.work import work
    from pennyweight.api.sources import open_store
    from pennyweight.cli.run import compute_numbers
    from pennyweight.cli.run_display import RunDisplay
    from pennyweight.render.run_end import work_sentences

    at = open_store(store)
    click.get_current_context().call_on_close(at.close)
    display = RunDisplay(at)
    with contextlib.redirect_stdout(display):
        result = work(
            run, suite=file, store=at, subjects=subjects, watch=display,
            **narrowing_keywords(model, set),
        )  # fmt: skip
    failed = sum(result.errors.values())
    ended = result.tally.end
    for line in work_sentences(
        result.run.id, result.made, failed, result.left, ended, display.command
    ):
        click.echo(line, err=True)
    if not (result.left or result.tally.lost):
        compute_numbers(at, result.run.id)
    if result.interrupted:
        raise click.exceptions.Exit(130)
    if failed or result.tally.stop_reason:
        raise click.exceptions.Exit(4)
