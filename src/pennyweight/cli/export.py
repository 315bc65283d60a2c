"""`pennyweight export`: the records of a run as a file."""

from __future__ import annotations

from pathlib import Path

import click

from pennyweight.cli.options import store_option


@click.command("export", epilog="Example: pennyweight export latest -o records.parquet")
@click.argument("run", default="latest")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A .jsonl, .csv or .parquet.")
@click.option("--judgments", is_flag=True, help="Write the judgments, not the records.")
@store_option
def command(run: str, output: Path | None, judgments: bool, store: str | None) -> None:
    """Write the records of a RUN: JSONL on standard output, or the format of FILE's name.

    The answers are extracted by the rules of the run's suite, so a score of the
    file is the score of the run.
    """
    from pennyweight.api.export import export  # noqa: PLC0415

    export(run, output, judgments=judgments, store=store)
    if output:
        click.echo(f"Wrote {output}.", err=True)
