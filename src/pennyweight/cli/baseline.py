"""`pennyweight baseline`: records under a name, to compare with later."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from pennyweight.cli.options import format_option, pairs, store_option
from pennyweight.errors import InputError
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from collections.abc import Callable

    from pennyweight.gates.baseline import Baseline

EPILOG = """\b
Examples:
  pennyweight baseline set main latest
  pennyweight gate latest --policy release.yaml --baseline main
"""


@click.group("baseline", epilog=EPILOG, context_settings={"max_content_width": 80})
def command() -> None:
    """Keep records under a name, to compare with later.

    Each baseline is a file in .pennyweight/baselines: every measure, no long texts,
    and where it came from. It outlives its run and can be committed.
    """


@command.command("set")
@click.argument("name")
@click.argument("source")
@click.option("--where", multiple=True, metavar="COLUMN=VALUE", help="Only these records.")
@click.option(
    "--map", "map", multiple=True, metavar="COLUMN=THEIRS", help="As in pennyweight score."
)
@store_option
def set_(
    name: str, source: str, where: tuple[str, ...], map: tuple[str, ...], store: str | None
) -> None:
    """Keep the records of SOURCE (a run or a file) as the baseline NAME."""
    from pennyweight.api.sources import resolve, unmixed  # noqa: PLC0415
    from pennyweight.gates.baseline import described, is_baseline, save  # noqa: PLC0415
    from pennyweight.gates.records import read_records  # noqa: PLC0415

    found = unmixed(resolve([source], store))
    records = read_records(found, None, {}, where=pairs("--where", where), map=pairs("--map", map))
    run = getattr(found[0], "run", None)
    old = _source_of(described, name) if is_baseline(name) else ""
    made = save(name, records, f"run {run.id}" if run else source, run)
    instead = f", in place of {old}" if old else ""
    text = f"Kept {made.records:,} records of {made.source} as {made.path}{instead}."
    click.echo(clean(text), err=True)
    if records.to_come:
        text = f"{records.to_come:,} of {records.planned:,} attempts of the run are to come, so it "
        again = f"'pennyweight run --resume {records.run}', then set it anew."
        click.echo(clean(f"{text}is no whole baseline: {again}"), err=True)


def _source_of(described: Callable[[str], Baseline], name: str) -> str:
    """Say what a baseline was made of that is about to be replaced."""
    try:
        old = described(name)
    except InputError:
        return "a damaged one"
    return f"the one of {old.source}, {_moment(old)}"


@command.command("list")
@format_option
def list_(format: str) -> None:
    """List the baselines with where they came from."""
    from pennyweight.gates.baseline import baselines  # noqa: PLC0415
    from pennyweight.render.plain import csv_table, markdown_table  # noqa: PLC0415

    found, problems = baselines()
    for problem in problems:
        click.echo(clean(problem), err=True)
    if format == "json":
        click.echo(json.dumps([asdict(one) for one in found], indent=2, ensure_ascii=False))
        return
    if not found and not problems:
        click.echo(
            "There is no baseline yet; 'pennyweight baseline set NAME RUN' keeps one.", err=True
        )
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
    from pennyweight.gates.baseline import remove  # noqa: PLC0415

    for name in names:
        remove(name)
        click.echo(f"Deleted the baseline {name}.", err=True)


def _row(one: Baseline) -> list[str]:
    rate = "—" if one.pass_rate is None else f"{one.pass_rate:.3f}"
    whole = one.planned is None or one.planned <= one.records
    records = f"{one.records:,}" if whole else f"{one.records:,} of {one.planned:,}"
    return [one.name, clean(one.source), _moment(one), records, rate]


def _moment(one: Baseline) -> str:
    return f"{datetime.fromtimestamp(one.created, UTC):%Y-%m-%d %H:%M}"
