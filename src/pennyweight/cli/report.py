"""`pennyweight report`: a report as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pennyweight.cli.notes import note_score_errors, note_sources
from pennyweight.cli.options import (
    FILE,
    baseline_options,
    confidence_option,
    log_options,
    names_option,
    option,
    scorers_option,
    store_option,
)

EPILOG = """\b
Examples:
  pennyweight report latest -o report.html --policy release.yaml
  pennyweight report latest --by category
"""


@click.command("report", epilog=EPILOG)
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@click.option(
    "-o", "--output", type=FILE, default="report.html", help="File to write: .html, .md or .pdf."
)
@names_option("--by", "Compare these groups (default: runs, subjects and tiers).", "COLUMNS")
@option("--charts", "Also write the charts to this folder, as SVG and PNG.", type=FILE)
@option("--tables", "Also write the tables to this folder, as CSV and LaTeX.", type=FILE)
@option("--policy", "Decide this policy, as 'pennyweight gate' does.", "FILE", multiple=True)
@baseline_options
@click.option("--title", help="Title of the report (default: the suite or the file).")
@scorers_option
@confidence_option
@log_options
@store_option
def command(
    sources: tuple[str, ...],
    output: Path,
    charts: Path | None,
    tables: Path | None,
    **options: Any,
) -> None:
    """Write a report of any SOURCE (default: the latest run) as one file.

    SOURCE is a run or a file, as for 'pennyweight score'. The HTML file is
    self-contained: it needs no server and no network. Writing a PDF requires
    Chromium.
    """
    from pennyweight.api.report import report, write
    from pennyweight.api.sources import resolve

    logs = {name: options.pop(name) for name in ("scorer", "filter")}
    resolved = resolve(sources or ("latest",), options["store"], **logs)
    made = report(resolved, **options)
    note_sources(resolved)
    note_score_errors(made.score_errors)
    written = write(made, output, charts=charts, tables=tables)
    click.echo(f"Wrote {output} ({output.stat().st_size / 1e3:,.0f} kB).", err=True)
    if charts:
        click.echo(f"Wrote {len(written.charts)} charts to {charts}.", err=True)
    if tables:
        click.echo(f"Wrote {len(written.tables)} tables to {tables}.", err=True)
