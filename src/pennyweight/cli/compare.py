"""`pennyweight compare`: tiers, subjects, runs or files side by side."""

from __future__ import annotations

import sys

import click

from pennyweight.cli.notes import ReadingProgress, note_reading, note_unfinished
from pennyweight.cli.options import names, pairs, record_options, scoring_options, share

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
@record_options
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
    from pennyweight.api.compare import compare  # noqa: PLC0415
    from pennyweight.api.sources import resolve  # noqa: PLC0415
    from pennyweight.render.comparison import render  # noqa: PLC0415

    options = scoring_options(set, positive, weight)
    resolved = resolve(sources, store)
    comparison = compare(
        resolved,
        by=names(by),
        baseline=baseline,
        all_pairs=all_pairs,
        metrics=names(metric),
        confidence=share(confidence),
        seed=seed,
        map=pairs("--map", map),
        skip_bad=skip_bad,
        prices=prices,
        answer=answer,
        match=match,
        progress=ReadingProgress() if sys.stderr.isatty() else None,
        **options,
    )
    note_reading(comparison, prices)
    click.echo(render(comparison, format), nl=False)
    note_unfinished(resolved)
