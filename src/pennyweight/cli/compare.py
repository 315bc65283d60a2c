"""`pennyweight compare`: tiers, subjects, runs or files side by side."""

from __future__ import annotations

from typing import Any

import click

from pennyweight.cli.notes import note_reading, note_unfinished
from pennyweight.cli.options import names_option, record_options, scoring_options


@click.command(
    "compare",
    epilog="Example: pennyweight compare latest --by subject --baseline ours",
    no_args_is_help=True,
)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@names_option("--by", "Compare by tier, subject, source, ….", "COLUMN")
@click.option("--baseline", metavar="NAME", help="The side to compare with (T0, else the first).")
@click.option("--all-pairs", is_flag=True, help="Compare each side with each other.")
@names_option("--metric", "Compare these metrics.")
@record_options
def command(
    sources: tuple[str, ...],
    by: list[str],
    baseline: str | None,
    all_pairs: bool,
    metric: list[str],
    store: str | None,
    format: str,
    **scoring: Any,
) -> None:
    """Compare tiers, subjects, runs or files on the same tasks.

    SOURCE is what 'pennyweight score' takes. Several sources are compared with
    each other; the records of one by their tiers, else by their subjects. Only
    tasks that both sides tried are compared, task by task.
    """
    from pennyweight.api.compare import compare  # noqa: PLC0415
    from pennyweight.api.sources import resolve  # noqa: PLC0415
    from pennyweight.render.comparison import render  # noqa: PLC0415

    options = scoring_options(**scoring)
    resolved = resolve(sources, store)
    compared = compare(
        resolved, by=by, baseline=baseline, all_pairs=all_pairs, metrics=metric, **options
    )
    note_reading(compared, options["prices"])
    click.echo(render(compared, format), nl=False)
    note_unfinished(resolved)
