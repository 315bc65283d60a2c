"""`assay baseline`: records under a name, to compare with later."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from assay.cli.options import format_option, pairs, store_option
from assay.text.safe import clean

if TYPE_CHECKING:
    from assay.gates.baseline import Baseline

EPILOG = """\b
Examples:
  assay baseline set main latest
  assay gate latest --policy release.yaml --baseline main
"""


@click.group("baseline", epilog=EPILOG, context_settings={"max_content_width": 80})
def command() -> None:
    """Keep records under a name, to compare with later.

    Each baseline is a file in .assay/baselines: every measure, no long texts,
    and where it came from. It outlives its run and can be committed.
    """


@command.command("set")
@click.argument("name")
@click.argument("source")
@click.option("--where", multiple=True, metavar="COLUMN=VALUE", help="Only these records.")
@click.option("--map", "map", multiple=True, metavar="COLUMN=THEIRS", help="As in assay score.")
@store_option
def set_(
    name: str, source: str, where: tuple[str, ...], map: tuple[str, ...], store: str | None
) -> None:
    """Keep the records of SOURCE (a run or a file) as the baseline NAME."""
    from assay.cli.gate import resolved  # noqa: PLC0415
    from assay.gates.baseline import save  # noqa: PLC0415
    from assay.gates.records import read_records  # noqa: PLC0415

    found = resolved((source,), store)
    records = read_records(found, None, {}, where=pairs("--where", where), map=pairs("--map", map))
    run = getattr(found[0], "run", None)
    made = save(name, records, f"run {run.id}" if run else source, run)
    click.echo(clean(f"Kept {made.records:,} records of {made.source} as {made.path}."), err=True)


@command.command("list")
@format_option
def list_(format: str) -> None:
    """List the baselines with where they came from."""
    from assay.gates.baseline import baselines  # noqa: PLC0415
    from assay.report.plain import csv_table, markdown_table  # noqa: PLC0415

    found = baselines()
    if format == "json":
        click.echo(json.dumps([asdict(one) for one in found], indent=2, ensure_ascii=False))
        return
    if not found:
        click.echo("There is no baseline yet; 'assay baseline set NAME RUN' keeps one.", err=True)
        return
    rows = [["name", "source", "kept", "records", "pass_rate"], *map(_row, found)]
    if format != "table":
        make = csv_table if format == "csv" else markdown_table
        click.echo(make(rows), nl=False)
        return
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


@command.command("rm")
@click.argument("names", nargs=-1, required=True)
def rm(names: tuple[str, ...]) -> None:
    """Delete baselines."""
    from assay.gates.baseline import remove  # noqa: PLC0415

    for name in names:
        remove(name)
        click.echo(f"Deleted the baseline {name}.", err=True)


def _row(one: Baseline) -> list[str]:
    moment = datetime.fromtimestamp(one.created, UTC)
    rate = "—" if one.pass_rate is None else f"{one.pass_rate:.3f}"
    return [one.name, clean(one.source), f"{moment:%Y-%m-%d %H:%M}", f"{one.records:,}", rate]
