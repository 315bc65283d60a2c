"""`pennyweight report`: one file to send to somebody."""

from __future__ import annotations

from pathlib import Path

import click

from pennyweight.cli.options import store_option

EPILOG = """\b
Examples:
  pennyweight report latest -o report.html
  pennyweight report records.jsonl -o report.md --charts charts
  pennyweight report latest -o report.html --policy release.yaml
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
    "--policy", multiple=True, metavar="FILE", help="Decide on it, as pennyweight gate does."
)
@click.option("--title", help="What stands at the top (default: the suite or file).")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of the intervals.")
@store_option
def command(
    sources: tuple[str, ...],
    output: Path,
    charts: Path | None,
    tables: Path | None,
    policy: tuple[str, ...],
    title: str | None,
    confidence: float,
    store: str | None,
) -> None:
    """Write a report of any SOURCE (default: the latest run) as one file.

    The HTML holds everything in itself: it opens without a server or network
    and prints well. A PDF is printed by Chromium.
    """
    from pennyweight.api.report import verdicts  # noqa: PLC0415
    from pennyweight.render import files  # noqa: PLC0415
    from pennyweight.render.digest import digest  # noqa: PLC0415
    from pennyweight.render.report import Report  # noqa: PLC0415
    from pennyweight.render.view import run_facts  # noqa: PLC0415
    from pennyweight.runs.source import resolve  # noqa: PLC0415
    from pennyweight.store.store import Store  # noqa: PLC0415

    at = Store(store)
    found = resolve(sources or ("latest",), at)
    made = digest(found, confidence=confidence)
    runs = [s.run for s in found if not isinstance(s, str)]
    report = Report(
        title or files.titles(found),
        made,
        [run_facts(r, at.statuses(r.id), at.spent(r.id)) for r in runs],
        " ".join(s if isinstance(s, str) else s.run.id for s in found),
        verdicts(found, policy, made) if policy else (),
    )
    pictures = files.write_charts(made, charts) if charts else []
    files.write_report(report, output, pictures)
    click.echo(f"Wrote {output} ({output.stat().st_size / 1e3:,.0f} kB).", err=True)
    if charts:
        click.echo(f"Wrote {len(pictures)} charts to {charts}.", err=True)
    if tables:
        click.echo(f"Wrote {len(files.write_tables(made, tables))} tables to {tables}.", err=True)
