"""`pennyweight compare`: tiers, subjects, runs or files side by side."""

from __future__ import annotations

from typing import Any

import click

from pennyweight.cli.notes import (
    note_reading,
    note_score_errors,
    note_sources,
    note_unfinished,
)
from pennyweight.cli.options import names_option, option, record_options, scoring_options
from pennyweight.errors import UsageError

EPILOG = """\b
Examples:
  pennyweight compare latest --by subject --baseline ours
  pennyweight compare before.jsonl after.jsonl --metric accuracy
  pennyweight compare before.jsonl after.jsonl --metric pass_rate --margin 2%
  pennyweight compare latest --tasks
  pennyweight compare log.csv --map subject=agent --map task_id=suite,question
"""


@click.command(
    "compare",
    epilog=EPILOG,
    no_args_is_help=True,
)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@names_option("--by", "Column whose values are the sides: tier, subject, source, …", "COLUMN")
@option("--baseline", "Side to compare with (default: T0, else the first).", "NAME")
@option("--all-pairs", "Compare every side with every other.", is_flag=True)
@names_option("--metric", "Compare these metrics.")
@option("--sort", "Best side first, by this metric (from four sides on: the headline).", "METRIC")
@option("--margin", "Test if a side is no worse by more than this, or equivalent.", "2%")
@option("--tasks", "List what each task contributes, the most influential first.", is_flag=True)
@record_options
def command(
    sources: tuple[str, ...],
    by: list[str],
    baseline: str | None,
    all_pairs: bool,
    metric: list[str],
    sort: str | None,
    margin: str | None,
    tasks: bool,
    store: str | None,
    format: str,
    **scoring: Any,
) -> None:
    """Compare tiers, subjects, runs or files on the same tasks.

    SOURCE is a run or a file, as for 'pennyweight score'. Several sources are
    compared with each other. Within one source, tiers are compared, or subjects
    if there is only one tier. Only tasks that both sides tried are compared,
    task by task.
    """
    from pennyweight.api.compare import compare
    from pennyweight.api.sources import resolve
    from pennyweight.render import compared_tasks
    from pennyweight.render.comparison import is_overview, render

    options = scoring_options(**scoring)
    if options.pop("weight", "tasks") != "tasks":
        raise UsageError("compare tests tasks, each once; --weight records is for score.")
    logs = {name: options.pop(name) for name in ("scorer", "filter")}
    resolved = resolve(sources, store, **logs)
    sides: dict[str, Any] = {"by": by, "baseline": baseline, "all_pairs": all_pairs}
    sides["overview"] = is_overview(format, sort)
    compared = compare(resolved, **sides, metrics=metric, margin=margin, **options)
    note_reading(compared, options["prices"])
    text = compared_tasks.render(compared, format) if tasks else render(compared, format, sort)
    click.echo(text, nl=False)
    note_sources(resolved, options["map"], options["answer"])
    note_unfinished(resolved)
    note_score_errors(compared.score_errors)
