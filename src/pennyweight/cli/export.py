"""`pennyweight export`: the records of a run as a file."""

from __future__ import annotations

from pathlib import Path

import click

from pennyweight.cli.options import FILE, store_option, where_option

EPILOG = """\b
Examples:
  pennyweight export latest -o records.parquet
  pennyweight export latest --where passed=false --where tier=T1
  pennyweight export latest --as inspect -o logs
"""


@click.command("export", epilog=EPILOG)
@click.argument("run", default="latest")
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="File to write: .jsonl, .csv or .parquet. With --as: a new folder.",
)
@click.option(
    "--as",
    "format",
    metavar="TOOL",
    help="Write the format of another tool: inspect, every_eval_ever, openai-evals, atif or otel.",
)
@click.option("--judgments", is_flag=True, help="Write the judgments instead of the records.")
@where_option
@store_option
def command(
    run: str,
    output: Path | None,
    format: str | None,
    judgments: bool,
    where: dict[str, str],
    store: str | None,
) -> None:
    """Write the records of a RUN: JSONL to standard output, or a file with -o.

    Answers are extracted by the rules of the run's suite, so scoring the file
    gives the scores of the run. With --as, files that another tool opens.
    """
    from pennyweight.api.export import export

    export(run, output, format=format, judgments=judgments, where=where, store=store)
    if output:
        click.echo(f"Wrote {output}.", err=True)
