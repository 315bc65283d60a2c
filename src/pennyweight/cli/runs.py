"""`pennyweight runs`: the runs in the store."""

from __future__ import annotations

import click

from pennyweight.cli.options import format_option, store_option


@click.command("runs", epilog="Example: pennyweight runs --format json")
@store_option
@format_option
def command(store: str | None, format: str) -> None:
    """List the runs in the store, the newest first.

    'made' counts the answered attempts; 'errors' counts those that failed.
    """
    from pennyweight.api.runs import list_runs
    from pennyweight.render.runs import render

    runs = list_runs(store)
    if not runs and format == "table":
        click.echo(
            "No runs yet. 'pennyweight init' writes a first suite, 'pennyweight run' runs it."
        )
        return
    click.echo(render([(one.run, one.records, one.spent) for one in runs], format), nl=False)
