"""`pennyweight runs`: the runs in the store."""

from __future__ import annotations

import click

from pennyweight.cli.options import format_option, store_option


@click.command("runs", epilog="Example: pennyweight runs --format json")
@store_option
@format_option
def command(store: str | None, format: str) -> None:
    """List the runs in the store, the newest first.

    'made' counts the answered attempts, without errors. The headline is
    that of all records, with its 95 % interval.
    """
    from pennyweight.api.runs import all_runs, headlines
    from pennyweight.render.runs import render
    from pennyweight.text.safe import clean

    runs, damaged = all_runs(store)
    if not runs and not damaged and format == "table":
        click.echo(
            "No runs yet. 'pennyweight init' writes a first suite, 'pennyweight run' runs it."
        )
        return
    entries = [(one.run, one.records, one.spent) for one in runs]
    if runs or format != "table":
        click.echo(render(entries, format, damaged, headlines(runs, store)), nl=False)
    for one in damaged:
        click.echo(clean(f"Run {one.id} cannot be read. {one.problem} {one.advice}"), err=True)
