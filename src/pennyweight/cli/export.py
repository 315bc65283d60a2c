"""`pennyweight export`: the records of a run as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pennyweight.cli.options import FILE, names_option, store_option, where_option

EPILOG = """\b
Examples:
  pennyweight export latest -o records.parquet
  pennyweight export latest --where passed=false --where tier=T1
  pennyweight export latest --as inspect -o logs
  pennyweight export latest --judgments -o judgments
  pennyweight export latest --partition-by subject,tier -o table
"""


@click.command("export", epilog=EPILOG)
@click.argument("run", default="latest")
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="File to write: .jsonl, .csv or .parquet. With --as or --partition-by: a new folder.",
)
@click.option(
    "--as",
    "format",
    metavar="TOOL",
    help="Write the format of another tool: inspect, every_eval_ever, openai-evals, atif or otel.",
)
@names_option(
    "--partition-by", "Write Parquet files in a folder for each value of these columns.", "COLUMNS"
)
@click.option(
    "--judgments",
    is_flag=True,
    help="Write the judgments instead of the records. With -o FOLDER: a judgment.json for each.",
)
@where_option
@store_option
def command(
    run: str,
    output: Path | None,
    format: str | None,
    partition_by: list[str],
    judgments: bool,
    where: dict[str, str],
    store: str | None,
) -> None:
    """Write the records of a RUN: JSONL to standard output, or a file with -o.

    Answers are extracted by the rules of the run's suite, so scoring the file
    gives the scores of the run. With --as, files that another tool opens.
    """
    from pennyweight.api.export import export

    written: dict[str, Any] = {"format": format, "partition_by": partition_by}
    export(run, output, judgments=judgments, where=where, store=store, **written)
    if output:
        click.echo(f"Wrote {output}.", err=True)
