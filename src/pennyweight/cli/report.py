"""`pennyweight report`: one file to send to somebody."""

from __future__ import annotations

from pathlib import Path

import click

from pennyweight.cli.options import (
    baseline_options,
    confidence_option,
    pairs,
    share,
    store_option,
)

EPILOG = """\b
Examples:
  pennyweight report latest -o report.html
  pennyweight report records.jsonl -o report.md --charts charts
  pennyweight report latest -o report.html --policy release.yaml --baseline main
"""


@click.command("report", epilog=EPILOG, context_settings={"max_content_width": 80})
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=Path("report.html"),
    show_default=True, help="A .html, .md or .pdf.",
)  # fmt: skip
@click.option("--charts", type=click.Path(path_type=Path), help="Write the charts: SVG and PNG.")
@click.option("--tables", type=click.Path(path_type=Path), help="Write tables: CSV and LaTeX.")
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
    policy: tuple[str, ...],
    baseline: str | None,
    version: str | None,
    where: tuple[str, ...],
    baseline_where: tuple[str, ...],
    title: str | None,
    confidence: float,
    store: str | None,
) -> None:
    """Write a report of any SOURCE (default: the latest run) as one file.

    The HTML holds everything in itself: it opens without a server or network
    and prints well. A PDF is printed by Chromium.
    """
    from pennyweight.api import report as api  # noqa: PLC0415

    made = api.report(
        sources or ("latest",),
        policy=policy,
        baseline=baseline,
        where=pairs("--where", where),
        baseline_where=pairs("--baseline-where", baseline_where),
        version=version,
        title=title,
        confidence=share(confidence),
        store=store,
    )
    written = api.write(made, output, charts=charts, tables=tables)
    click.echo(f"Wrote {output} ({output.stat().st_size / 1e3:,.0f} kB).", err=True)
    if charts:
        click.echo(f"Wrote {len(written.charts)} charts to {charts}.", err=True)
    if tables:
        click.echo(f"Wrote {len(written.tables)} tables to {tables}.", err=True)
