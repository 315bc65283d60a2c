"""`pennyweight score`: metrics of any records."""

from __future__ import annotations

from typing import Any

import click

from pennyweight.api import ALIASES
from pennyweight.cli.notes import (
    note_reading,
    note_score_errors,
    note_sources,
    note_unanswered,
    note_unfinished,
    print_people,
)
from pennyweight.cli.options import names_option, option, record_options, scoring_options
from pennyweight.errors import InputError

KNOWN_NAMES = "; ".join(f"{name} ← {', '.join(others)}" for name, others in ALIASES.items())

EPILOG = f"""\b
Examples:
  pennyweight score results/ --by tier --metric accuracy,cost_of_pass
  pennyweight score log.csv --map task_id=question --map answer=reply
  zcat log.jsonl.gz | pennyweight score - --format json

Other column names that are recognized: {KNOWN_NAMES}.
"""


@click.command("score", epilog=EPILOG, no_args_is_help=True)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@names_option("--by", "Group by these columns (tables: by subject, tier, data set).", "COLUMNS")
@names_option("--metric", "Compute only these metrics.")
@option("--all", "Show every metric, not only the most important ones.", is_flag=True)
@option("--sort", "Best group first, by this metric (from four groups on: the headline).", "METRIC")
@option(
    "--estimand",
    "What intervals are about: tasks like these, or these tasks alone.",
    type=click.Choice(["tasks-like-these", "these-tasks"]),
    default="tasks-like-these",
)
@record_options
@option("--checks", "Apply the checks of this suite to the runs.", "SUITE")
@option("--on", "Measure the files of a table on a Ray cluster.", "ray[://HOST:PORT]")
@option("--per-task", "Also write each record with its measures to FILE.", "FILE")
def command(
    sources: tuple[str, ...],
    by: list[str],
    metric: list[str],
    all: bool,
    sort: str | None,
    estimand: str,
    checks: str | None,
    on: str | None,
    per_task: str | None,
    store: str | None,
    format: str,
    **scoring: Any,
) -> None:
    """Compute metrics of any records, with confidence intervals.

    SOURCE is a run (its id, a unique prefix, or 'latest'), a file (JSONL, JSON,
    CSV or Parquet, plain, .gz or .zst), the log of another tool (Inspect,
    promptfoo, lm-evaluation-harness, …), a folder or a quoted pattern of them
    ('runs/**/*.parquet'), or '-' for standard input. Folders such as tier=T0
    name columns.
    """
    from pennyweight.api.score import score
    from pennyweight.api.sources import resolve
    from pennyweight.render.scores import is_overview, render

    options = scoring_options(**scoring)
    logs = {name: options.pop(name) for name in ("scorer", "filter")}
    resolved = resolve(sources, store, **logs)
    if sort and metric:
        metric = [*metric, sort]
    files: dict[str, Any] = {"per_task": per_task, "checks": checks, "on": on}
    brief = is_overview(format, every=all, sort=sort)
    sides = None if format in {"table", "markdown"} else ()
    scores = score(
        resolved,
        by=by or sides,
        metrics=metric,
        estimand=estimand,
        overview=brief,
        **files,
        **options,
    )
    note_reading(scores, options["prices"])
    if not sum(group.records for group in scores.groups):
        raise InputError(["There are no records to score."])
    click.echo(render(scores, format, every=all, sort=sort), nl=False)
    if format in {"table", "markdown"} and not options["where"]:
        print_people(resolved, options["confidence"])
    for note in scores.notes:
        click.echo(f"Note: {note}", err=True)
    has_accuracy = "accuracy" in scores.groups[0].estimates
    note_sources(resolved, options["map"], options["answer"] if has_accuracy else "")
    note_unfinished(resolved)
    if has_accuracy:
        note_unanswered(resolved, options["answer"])
    note_score_errors(scores.score_errors)
    if per_task:
        click.echo(f"Wrote every record with its measures to {per_task}.", err=True)
