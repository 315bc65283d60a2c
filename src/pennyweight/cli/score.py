"""`pennyweight score`: metrics of any records."""

from __future__ import annotations

import sys

import click

from pennyweight.api import ALIASES
from pennyweight.cli.notes import ReadingProgress, note_reading, note_unanswered, note_unfinished
from pennyweight.cli.options import names, pairs, record_options, scoring_options, share
from pennyweight.errors import InputError

KNOWN_NAMES = "; ".join(f"{name} ← {', '.join(others)}" for name, others in ALIASES.items())

EPILOG = f"""\b
Examples:
  pennyweight score records.jsonl
  pennyweight score results/ --by tier --metric accuracy,cost_of_pass
  pennyweight score log.csv --map answer=output --map task_id=case
  zcat log.jsonl.gz | pennyweight score -

Names that are understood: {KNOWN_NAMES}.
"""


@click.command(
    "score", epilog=EPILOG, context_settings={"max_content_width": 80}, no_args_is_help=True
)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--by", multiple=True, metavar="COLUMNS", help="Group by these columns.")
@click.option("--metric", multiple=True, metavar="NAMES", help="Only these metrics.")
@record_options
@click.option("--checks", metavar="SUITE", help="Check runs by this suite.")
@click.option("--per-task", metavar="FILE", help="Write each record with its measures.")
def command(
    sources: tuple[str, ...],
    by: tuple[str, ...],
    metric: tuple[str, ...],
    format: str,
    answer: str | None,
    match: str | None,
    map: tuple[str, ...],
    checks: str | None,
    prices: str | None,
    per_task: str | None,
    positive: str | None,
    weight: tuple[str, ...],
    set: tuple[str, ...],
    confidence: float,
    seed: int,
    skip_bad: bool,
    store: str | None,
) -> None:
    """Compute metrics of any records, each with its interval.

    SOURCE is a run (its id, a beginning of it, or 'latest'), a file (JSONL,
    JSON, CSV or Parquet, plain, .gz or .zst), a folder of such files, or '-'
    for standard input.
    """
    from pennyweight.api.score import score  # noqa: PLC0415
    from pennyweight.api.sources import resolve  # noqa: PLC0415
    from pennyweight.render.scores import render  # noqa: PLC0415

    options = scoring_options(set, positive, weight)
    resolved = resolve(sources, store)
    scores = score(
        resolved,
        by=names(by),
        metrics=names(metric),
        confidence=share(confidence),
        seed=seed,
        map=pairs("--map", map),
        skip_bad=skip_bad,
        per_task=per_task,
        prices=prices,
        checks=checks,
        answer=answer,
        match=match,
        progress=ReadingProgress() if sys.stderr.isatty() else None,
        **options,
    )
    note_reading(scores, prices)
    if not sum(group.records for group in scores.groups):
        raise InputError(["There are no records to score."])
    click.echo(render(scores, format), nl=False)
    note_unfinished(resolved)
    if "accuracy" in scores.groups[0].estimates:
        note_unanswered(resolved, answer)
    if per_task:
        click.echo(f"Wrote every record with its measures to {per_task}.", err=True)
