"""`pennyweight baseline`: records under a name, to compare with later."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from pennyweight.cli.options import format_option, map_option, store_option, where_option
from pennyweight.text.format import share
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.gates.baseline import Baseline


@click.group("baseline", epilog="Example: pennyweight baseline set main latest")
def command() -> None:
    """Keep records under a name, to compare with later.

    Each baseline is a file in .pennyweight/baselines: every measure, no long texts,
    and where it came from. It outlives its run and can be committed.
    """


@command.command("set")
@click.argument("name")
@click.argument("source")
@where_option
@map_option
@store_option
def set_(
    name: str, source: str, where: dict[str, str], map: dict[str, str], store: str | None
) -> None:
    """Keep the records of SOURCE (a run or a file) as the baseline NAME."""
    from pennyweight.api.baseline import set_baseline  # noqa: PLC0415

    done = set_baseline(name, source, where=where, map=map, store=store)
    made, old = done.baseline, done.replaced
    instead = f", in place of the one of {old.source}, {_moment(old)}" if old else ""
    if done.replaces and not old:
        instead = ", in place of a damaged one"
    text = f"Kept {made.records:,} records of {made.source} as {made.path}{instead}."
    click.echo(clean(text), err=True)
    if done.missing:
        text = f"{done.missing:,} of {done.planned:,} attempts of the run are to come, so the "
        again = f"'pennyweight run --resume {done.run}', then set it again."
        click.echo(clean(f"{text}baseline is incomplete: {again}"), err=True)


@command.command("list")
@format_option
def list_(format: str) -> None:
    """List the baselines with where they came from."""
    from pennyweight.api.baseline import baselines  # noqa: PLC0415
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
    from pennyweight.api.baseline import remove  # noqa: PLC0415

    for name in names:
        remove(name)
        click.echo(f"Deleted the baseline {name}.", err=True)


def _row(one: Baseline) -> list[str]:
    whole = one.planned is None or one.planned <= one.records
    records = f"{one.records:,}" if whole else f"{one.records:,} of {one.planned:,}"
    return [one.name, clean(one.source), _moment(one), records, share(one.pass_rate)]


def _moment(one: Baseline) -> str:
    return f"{datetime.fromtimestamp(one.created, UTC):%Y-%m-%d %H:%M}"
