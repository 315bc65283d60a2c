"""`pennyweight plan`: how many tasks and repeats a question needs."""

from __future__ import annotations

from typing import Any

import click

from pennyweight.cli.options import (
    confidence_option,
    format_option,
    map_option,
    names_option,
    option,
    skip_bad_option,
    store_option,
    where_option,
)
from pennyweight.errors import UsageError

EPILOG = """\b
Examples:
  pennyweight plan latest --difference 5% --tasks 300
  pennyweight plan --rate 80% --width 4% --cost-per-attempt 0.002
  pennyweight plan --mean 0.02 --sd 0.03 --difference 10%
"""


def _whole(values: tuple[str, ...]) -> list[int]:
    numbers = [text.strip() for value in values for text in value.split(",") if text.strip()]
    for text in numbers:
        if not text.isdecimal():
            raise UsageError(f"--runs {text}: it must be whole numbers such as 1,3,5.")
    return [int(text) for text in numbers]


@click.command("plan", epilog=EPILOG, no_args_is_help=True)
@click.argument("pilot", nargs=-1, metavar="[PILOT]...")
@option("--difference", "Show a difference this large between two sides.", "AMOUNT")
@option("--width", "Get an interval this wide.", "AMOUNT")
@option("--no-worse", "Show that one side is worse by less than this.", "AMOUNT")
@option("--policy", "Decide this policy; repeat it for several.", "FILE", multiple=True)
@option("--metric", "Metric to plan for (default: the headline of the pilot).", "NAME")
@option("--rate", "Assume this rate.", "SHARE")
@option("--mean", "Assume this mean of a cost, time or score.", "AMOUNT")
@option("--sd", "Assume this standard deviation of single attempts.", "AMOUNT")
@option("--task-share", "Share of the variance between tasks (assumed: 70%).", "SHARE")
@option("--correlation", "Correlation of two sides' tasks (assumed: 0.7).", type=float)
@option("--runs", "How often each task may be tried.", "LIST", multiple=True, default=["1,3,5,10"],
        callback=lambda _, __, v: _whole(v))  # fmt: skip
@option("--power", "How often the question should be answered.", "SHARE", default="80%")
@option("--comparisons", "How many comparisons share the level.", type=int, default=1)
@option("--tasks", "How many tasks there are.", "N", type=int)
@option("--cost-per-attempt", "Cost of an attempt (default: the pilot's mean).", "AMOUNT")
@names_option("--by", "Column whose values are the sides of the pilot.", "COLUMN")
@where_option
@map_option
@confidence_option
@skip_bad_option
@store_option
@format_option
def command(pilot: tuple[str, ...], format: str, **options: Any) -> None:
    """Plan how many tasks and repeats a question needs, and what they cost.

    PILOT is a run or a file, as for 'pennyweight score'; its records show how
    the metric varies. Without one, give --rate, or --mean and --sd. AMOUNT is
    in points for a rate, and relative (10%) for a cost or a time.
    """
    from pennyweight.api.plan import plan
    from pennyweight.render.sample_plan import render

    click.echo(render(plan(pilot or None, **options), format), nl=False)
