"""`pennyweight compare`: tiers, subjects, runs or files side by side."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import click

from pennyweight.cli.options import format_option, names, numbers, pairs, settings, store_option
from pennyweight.cli.score import _Progress, _resolved, _rules, note_unfinished
from pennyweight.text.safe import clean

EPILOG = """\b
Examples:
  pennyweight compare records.jsonl
  pennyweight compare before.jsonl after.jsonl
  pennyweight compare latest --by subject --baseline ours
  pennyweight compare latest before.jsonl --by source
  pennyweight compare study.csv --map task_id=experiment,subtest --by tier
"""


@click.command(
    "compare", epilog=EPILOG, context_settings={"max_content_width": 80}, no_args_is_help=True
)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--by", multiple=True, metavar="COLUMN", help="Compare by tier, subject, source, ….")
@click.option("--baseline", metavar="NAME", help="The side to compare with (T0, else the first).")
@click.option("--all-pairs", is_flag=True, help="Compare each side with each other.")
@click.option("--metric", multiple=True, metavar="NAMES", help="Compare these metrics.")
@format_option
@click.option("--answer", metavar="RULE", help="How answers are found, such as last_number.")
@click.option("--match", metavar="RULE", help="How answers are matched, such as numeric=0.01.")
@click.option(
    "--map",
    "map",
    multiple=True,
    metavar="COLUMN=THEIRS",
    help="Take a column from theirs; from several joined (A,B); or ignore it (no name).",
)
@click.option("--prices", metavar="FILE", help="Price runs anew: YAML or JSON, by model.")
@click.option("--positive", metavar="LABEL", help="The label precision and recall are about.")
@click.option("--weight", multiple=True, metavar="METRIC=W", help="A part of weighted_score.")
@click.option("--set", "set", multiple=True, metavar="OPTION=VALUE", help="Set a metric's option.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of draws.")
@store_option
@click.option("--skip-bad", is_flag=True, help="Leave out bad records and say how many.")
def command(
    sources: tuple[str, ...],
    by: tuple[str, ...],
    baseline: str | None,
    all_pairs: bool,
    metric: tuple[str, ...],
    format: str,
    answer: str | None,
    match: str | None,
    map: tuple[str, ...],
    prices: str | None,
    positive: str | None,
    weight: tuple[str, ...],
    set: tuple[str, ...],
    confidence: float,
    seed: int,
    skip_bad: bool,
    store: str | None,
) -> None:
    """Compare tiers, subjects, runs or files on the same tasks.

    SOURCE is what 'pennyweight score' takes. Several sources are compared with each
    other; the records of one by their tiers, else by their subjects. Only tasks
    that both sides tried are compared, task by task.
    """
    from pennyweight.render.comparison import render  # noqa: PLC0415
    from pennyweight.scoring.comparison import compare  # noqa: PLC0415

    options: dict[str, Any] = settings(set)
    if positive is not None:
        options["positive"] = positive
    if weight:
        options["weights"] = numbers("--weight", weight)
    own = tuple(names(by))
    asked = _resolved(sources, store, prices)
    asked = [replace(one, own=own) if hasattr(one, "own") else one for one in asked]
    found = compare(
        asked,
        by=names(by),
        baseline=baseline,
        all_pairs=all_pairs,
        metrics=names(metric),
        confidence=confidence / 100 if 1 < confidence < 100 else confidence,
        seed=seed,
        map=pairs("--map", map),
        skip_bad=skip_bad,
        progress=_Progress() if sys.stderr.isatty() else None,
        **options,
        **_rules(answer, match),
    )
    if found.left_out:
        lines = "\n".join(f"  {problem}" for problem in found.problems[:5])
        were = "bad record was" if found.left_out == 1 else "bad records were"
        click.echo(clean(f"{found.left_out:,} {were} left out:\n{lines}"), err=True)
    if found.unused:
        listed = clean(", ".join(found.unused[:12]))
        more = f" and {len(found.unused) - 12} more" if len(found.unused) > 12 else ""
        click.echo(f"Not used: {listed}{more}. --map COLUMN=THEIRS says what one is.", err=True)
    click.echo(render(found, format), nl=False)
    note_unfinished(asked)
