"""`pennyweight rm`: delete runs."""

from __future__ import annotations

import contextlib
import sys

import click

from pennyweight.cli.options import store_option
from pennyweight.errors import StoreError, UsageError
from pennyweight.text.format import plural
from pennyweight.text.safe import clean


@click.command("rm", epilog="Example: pennyweight rm 20260101-120000-ab12")
@click.argument("runs", nargs=-1, required=True)
@click.option(
    "--yes", is_flag=True, help="Delete without asking, and abandon batches that are out."
)
@store_option
def command(runs: tuple[str, ...], yes: bool, store: str | None) -> None:
    """Delete RUNS with all their records. This cannot be undone."""
    from pennyweight.api.runs import delete_run
    from pennyweight.api.sources import open_store

    at = open_store(store)
    click.get_current_context().call_on_close(at.close)
    for run in [at.find_id(name) for name in runs]:
        suite = ""
        with contextlib.suppress(StoreError):  # a damaged run can be deleted too
            suite = f" of {clean(at.find(run).suite)}"
        records = plural(sum(at.statuses(run).values()), "record")
        if yes or _agreed(f"Delete run {run}{suite} with {records}?", run):
            delete_run(run, at, abandon=yes)
            click.echo(f"Deleted {run}.", err=True)


def _agreed(question: str, run: str) -> bool:
    """Ask; where nobody can answer, name the option --yes."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise UsageError(f"Run {run} was not deleted. --yes deletes without asking.") from None
