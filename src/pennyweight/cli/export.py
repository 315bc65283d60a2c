"""`pennyweight export`: the records of a run as a file."""

from __future__ import annotations

from pathlib import Path

import click

from pennyweight.cli.options import store_option


@click.command("export", epilog="Example: pennyweight export latest -o records.parquet")
@click.argument("run", default="latest")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A .jsonl, .csv or .parquet.")
@click.option("--judgments", is_flag=True, help="Write what each judge said, not the records.")
@store_option
def command(run: str, output: Path | None, judgments: bool, store: str | None) -> None:
    """Write the records of a RUN: JSONL on standard output, or the form that FILE's name says.

    The answers are in it, found by the rules of the run's suite, so that a
    score of the file is the score of the run.
    """
    from pennyweight.render.export import export  # noqa: PLC0415
    from pennyweight.store.store import Store  # noqa: PLC0415

    at = Store(store)
    export(at.find(run), at, output, judgments=judgments)
    if output:
        click.echo(f"Wrote {output}.", err=True)
