"""`assay runs`: what is in the store."""

from __future__ import annotations

import click

from assay.cli.options import format_option, store_option


@click.command("runs", epilog="Example: assay runs --format json")
@store_option
@format_option
def command(store: str | None, format: str) -> None:
    """List the runs in the store, the newest first."""
    from assay.report.runs import render  # noqa: PLC0415
    from assay.store.store import Store  # noqa: PLC0415

    at = Store(store)
    runs = at.runs()
    if not runs and format == "table":
        click.echo("There is no run yet; 'assay init' writes a first suite, 'assay run' runs it.")
        return
    click.echo(render([(r, at.statuses(r.id), at.spent(r.id)) for r in runs], format), nl=False)
