"""`pennyweight report`: one file to send to somebody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pennyweight.cli.options import baseline_options, confidence_option, store_option

EPILOG = "Example: pennyweight report latest -o report.html --policy release.yaml"
_PATH = click.Path(path_type=Path)


@click.command("report", epilog=EPILOG)
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@click.option(
    "-o",
    "--output",
    type=_PATH,
    default="report.html",
    show_default=True,
    help="A .html, .md or .pdf.",
)
@click.option("--charts", type=_PATH, help="Write the charts into this folder: SVG and PNG.")
@click.option("--tables", type=_PATH, help="Write the tables into this folder: CSV and LaTeX.")
@click.option(
    "--policy", multiple=True, metavar="FILE", help="Decide it, exactly as pennyweight gate does."
)
@baseline_options
@click.option("--title", help="Title of the report (default: the suite or the file).")
@confidence_option
@store_option
def command(
    sources: tuple[str, ...],
    output: Path,
    charts: Path | None,
    tables: Path | None,
    **options: Any,
) -> None:
    """Write a report of any SOURCE (default: the latest run) as one file.

    The HTML holds everything in itself: it opens without a server or network
    and prints well. A PDF is printed by Chromium.
    """
    from pennyweight.api.report import report, write  # noqa: PLC0415

    made = report(sources or ("latest",), **options)
    written = write(made, output, charts=charts, tables=tables)
    click.echo(f"Wrote {output} ({output.stat().st_size / 1e3:,.0f} kB).", err=True)
    if charts:
        click.echo(f"Wrote {len(written.charts)} charts to {charts}.", err=True)
    if tables:
        click.echo(f"Wrote {len(written.tables)} tables to {tables}.", err=True)
