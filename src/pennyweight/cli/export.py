"""`pennyweight export`: the records of a run as a file."""

from __future__ import annotations

from pathlib import Path

import click

from pennyweight.cli.options import FILE, store_option, where_option

EPILOG = """\b
Examples:
  pennyweight export latest -o records.parquet
  pennyweight export latest --where passed=false --where tier=T1
"""


@click.command("export", epilog=EPILOG)
@click.argument("run", default="latest")
@click.option("-o", "--output", type=FILE, help="File to write: .jsonl, .csv or .parquet.")
@click.option("--judgments", is_flag=True, help="Write the judgments instead of the records.")
@where_option
@store_option
def command(
    run: str, output: Path | None, judgments: bool, where: dict[str, str], store: str | None
) -> None:
    """Write the records of a RUN: JSONL to standard output, or a file with -o.

    Answers are extracted by the rules of the run's suite, so scoring the file
    gives the scores of the run.
    """
    from pennyweight.api.export import export

    export(run, output, judgments=judgments, where=where, store=store)
    if output:
        click.echo(f"Wrote {output}.", err=True)
