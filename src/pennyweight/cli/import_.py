"""`pennyweight import`: keep logs of other tools as a run."""

from __future__ import annotations

from typing import Any

import click

from pennyweight.cli.options import log_options, map_option, skip_bad_option, store_option
from pennyweight.text.format import plural
from pennyweight.text.safe import clean

EPILOG = "Example: pennyweight import logs/2026-11-15_sums.eval --as sums-1"


@click.command("import", epilog=EPILOG, no_args_is_help=True)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--as", "name", metavar="NAME", help="The id of the run (default: the time).")
@map_option
@log_options
@skip_bad_option
@store_option
def command(paths: tuple[str, ...], name: str | None, **options: Any) -> None:
    """Keep logs of other tools, or files of records, as a run in the store.

    PATH is a log, a file of records or a folder, as for 'pennyweight score'. The
    run has the steps, messages and checks of the log, and the page shows it like
    any other run: pennyweight serve. The verdict of the tool counts.
    """
    from pennyweight.api.log_import import import_logs
    from pennyweight.api.sources import open_store
    from pennyweight.cli.run import compute_numbers

    at = open_store(options.pop("store"))
    click.get_current_context().call_on_close(at.close)
    made = import_logs(list(paths), name, store=at, **options)
    for note in made.notes:
        click.echo(f"Note: {clean(note)}", err=True)
    if made.left_out:
        click.echo(f"{plural(made.left_out, 'bad record')} left out.", err=True)
    errors = f", including {plural(made.errors, 'error')}," if made.errors else ""
    click.echo(f"Imported {plural(made.records, 'record')}{errors} as run {made.run_id}.")
    compute_numbers(at, made.run_id)
