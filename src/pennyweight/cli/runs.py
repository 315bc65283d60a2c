"""`pennyweight runs`: what is in the store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from pennyweight.cli.options import format_option, store_option

if TYPE_CHECKING:
    from pennyweight.store.store import Run, Store


@click.command("runs", epilog="Example: pennyweight runs --format json")
@store_option
@format_option
def command(store: str | None, format: str) -> None:
    """List the runs in the store, the newest first.

    'made' counts the attempts that were answered; those that could not be made
    are in 'errors'.
    """
    from pennyweight.render.runs import render  # noqa: PLC0415
    from pennyweight.store.store import Store  # noqa: PLC0415

    at = Store(store)
    runs = at.runs()
    if not runs and format == "table":
        click.echo(
            "No runs yet. 'pennyweight init' writes a first suite, 'pennyweight run' runs it."
        )
        return
    entries = [(as_it_is(r, at), at.statuses(r.id), at.spent(r.id)) for r in runs]
    click.echo(render(entries, format), nl=False)


def as_it_is(run: Run, store: Store) -> Run:
    """Say of a run that nobody makes and nobody ended that it was interrupted."""
    if run.status != "running" or store.is_made(run.id):
        return run
    return replace(run, status="interrupted")
