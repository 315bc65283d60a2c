"""`pennyweight runs`: the runs in the store."""

from __future__ import annotations

import click

from pennyweight.cli.options import format_option, store_option

EPILOG = """\b
Examples:
  pennyweight runs --tag release
  pennyweight runs --format json
"""


@click.command("runs", epilog=EPILOG)
@click.option("--tag", help="Only runs with this tag, as given on the page.")
@click.option("--archived", is_flag=True, help="Archived runs too.")
@store_option
@format_option
def command(store: str | None, format: str, tag: str | None, archived: bool) -> None:
    """List the runs in the store, the newest first.

    'made' counts the answered attempts, without errors. The headline is
    that of the best side, with its 95 % interval.
    """
    from pennyweight.api.runs import all_runs, headlines
    from pennyweight.render.runs import render
    from pennyweight.text.safe import clean

    runs, damaged = all_runs(store, tag=tag, archived=archived)
    if not runs and not damaged and format == "table":
        none = "No runs yet. 'pennyweight init' writes a first suite, 'pennyweight run' runs it."
        if all_runs(store)[0]:
            none = "No run matches. --archived lists archived runs too."
        click.echo(none)
        return
    entries = [(one.run, one.records, one.spent) for one in runs]
    if runs or format != "table":
        out = {one.run.id: one.out for one in runs if one.out}
        click.echo(render(entries, format, damaged, headlines(runs, store), out), nl=False)
    for one in damaged:
        click.echo(clean(f"Run {one.id} cannot be read. {one.problem} {one.advice}"), err=True)
