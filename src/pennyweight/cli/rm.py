"""`pennyweight rm`: delete runs."""

from __future__ import annotations

import sys

import click

from pennyweight.cli.options import store_option
from pennyweight.errors import UsageError
from pennyweight.text.safe import clean


@click.command("rm", epilog="Example: pennyweight rm 20260101-120000-ab12")
@click.argument("runs", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
def command(runs: tuple[str, ...], yes: bool, store: str | None) -> None:
    """Delete RUNS with all their records; what they cost cannot be had back."""
    from pennyweight.store.lease import Owner  # noqa: PLC0415
    from pennyweight.store.store import Store  # noqa: PLC0415

    at = Store(store)
    click.get_current_context().call_on_close(at.close)
    found = [at.find(name) for name in runs]
    for run in found:
        records = sum(at.statuses(run.id).values())
        question = f"Delete run {run.id} of {clean(run.suite)} with {records:,} records?"
        if yes or _agreed(question, run.id):
            if not at.take(run.id, Owner.here().text):
                raise UsageError(
                    f"Run {run.id} is being made right now; stop it first (Ctrl-C), then delete it."
                )
            at.remove(run.id)
            click.echo(f"Deleted {run.id}.", err=True)


def _agreed(question: str, run: str) -> bool:
    """Ask; where nobody can answer, say how to do without."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise UsageError(f"Run {run} was not deleted. --yes goes on without asking.") from None
