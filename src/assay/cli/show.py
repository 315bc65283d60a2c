"""`assay show`: one run in full."""

from __future__ import annotations

import click

from assay.cli.options import format_option, store_option


@click.command("show", epilog="Example: assay show latest")
@click.argument("run", default="latest")
@store_option
@format_option
def command(run: str, store: str | None, format: str) -> None:
    """Show a RUN: what it is made of, what it cost, how its attempts ended."""
    from assay.report.runs import render_one  # noqa: PLC0415
    from assay.store.store import Store  # noqa: PLC0415

    at = Store(store)
    found = at.find(run)
    click.echo(render_one(found, at.statuses(found.id), at.spent(found.id), format), nl=False)
