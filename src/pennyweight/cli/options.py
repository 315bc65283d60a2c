"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from pennyweight.cli.notes import ReadingProgress
from pennyweight.errors import UsageError, unknown

Command = Callable[..., None]

FORMATS = ("table", "json", "markdown", "csv")
FORMAT_HELP = "Output format; JSON and CSV go to standard output alone."


def names(values: Sequence[str]) -> list[str]:
    """Read names given several times, or separated by commas."""
    parts = [name.strip() for value in values for name in value.split(",")]
    return [*dict.fromkeys(filter(None, parts))]


def pairs(option: str, values: Sequence[str]) -> dict[str, str]:
    """Read NAME=VALUE entries."""
    read: dict[str, str] = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{option} {value!r}: it must have the form NAME=VALUE.")
        read[name.strip()] = text.strip()
    return read


def numbers(option: str, values: Sequence[str]) -> dict[str, float]:
    """Read NAME=NUMBER entries."""
    entries = [entry for value in values for entry in value.split(",")]
    return {n: _number(option, n, text) for n, text in pairs(option, entries).items()}


def names_option(flag: str, help: str, metavar: str = "NAMES") -> Callable[[Command], Command]:
    """Return an option for names; the command gets a list."""
    return click.option(
        flag, multiple=True, metavar=metavar, help=help, callback=lambda _, __, v: names(v)
    )


def pairs_option(flag: str, help: str, metavar: str) -> Callable[[Command], Command]:
    """Return an option for NAME=VALUE entries; the command gets a dict."""
    return click.option(
        flag, multiple=True, metavar=metavar, help=help, callback=lambda _, __, v: pairs(flag, v)
    )


def format_choice(formats: Sequence[str], help: str) -> Callable[[Command], Command]:
    """Return the option `--format`; the first format is the default."""
    kind = click.Choice(formats)
    return click.option("--format", type=kind, default=formats[0], show_default=True, help=help)


format_option = format_choice(FORMATS, FORMAT_HELP)

confidence_option = click.option(
    "--confidence",
    type=float,
    default=0.95,
    show_default=True,
    callback=lambda _, __, level: level / 100 if 1 < level < 100 else level,
    help="Confidence level of the intervals.",
)

store_option = click.option(
    "--store",
    metavar="ADDRESS",
    help="SQLite file or postgresql:// address (default: $PENNYWEIGHT_STORE, else .pennyweight/).",
)

map_option = pairs_option(
    "--map",
    "Read COLUMN from theirs, or from several joined (A,B); ignore it if no name follows.",
    "COLUMN=THEIRS",
)

where_option = pairs_option("--where", "Only these records.", "COLUMN=VALUE")

skip_bad_option = click.option("--skip-bad", is_flag=True, help="Leave out and count bad records.")


def record_options(command: Command) -> Command:
    """Add the options of every command that scores records; `scoring_options` reads them."""
    options = (
        click.option("--answer", metavar="RULE", help="Answer rule, such as last_number."),
        click.option("--match", metavar="RULE", help="Match rule, such as numeric=0.01."),
        map_option,
        click.option("--prices", metavar="FILE", help="Price runs by this YAML or JSON file."),
        click.option("--positive", metavar="LABEL", help="Label for precision and recall."),
        click.option("--weight", multiple=True, metavar="METRIC=W", help="Part of weighted_score."),
        click.option("--set", multiple=True, metavar="OPTION=VALUE", help="Metric option."),
        confidence_option,
        click.option(
            "--seed", type=click.IntRange(0), default=0, show_default=True, help="Random seed."
        ),
        skip_bad_option,
        store_option,
        format_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


def baseline_options(command: Command) -> Command:
    """Add the options that say which records a policy is decided on, and against which."""
    options = (
        click.option("--baseline", metavar="SOURCE|NAME", help="Records to compare with."),
        click.option("--version", metavar="V", help="Version evaluated, for progressive gates."),
        where_option,
        pairs_option(
            "--baseline-where",
            "Only these records of the baseline (default: the same subject and tier).",
            "COLUMN=VALUE",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def scoring_options(
    set: Sequence[str], positive: str | None, weight: Sequence[str], **keywords: Any
) -> dict[str, Any]:
    """Return the keywords that `score` and `compare` take for the values of `record_options`."""
    options = keywords | settings(set)
    if positive is not None:
        options["positive"] = positive
    if weight:
        options["weights"] = numbers("--weight", weight)
    if sys.stderr.isatty():
        options["progress"] = ReadingProgress()
    return options


def settings(values: Sequence[str]) -> dict[str, Any]:
    """Read `--set` entries, each by the type of the option it sets."""
    from pennyweight.api.score import option_defaults  # noqa: PLC0415 - it loads polars

    defaults, given = option_defaults(), pairs("--set", values)
    for name in given:
        if name not in defaults:
            hint = "'pennyweight metrics NAME' shows a metric's options."
            raise UsageError(unknown("Option", name, defaults, hint))
    return {n: _typed(n, text, defaults[n]) for n, text in given.items()}


def _typed(name: str, text: str, default: Any) -> Any:
    if name in {"weights", "grades"}:
        return numbers(f"--set {name}", (text.replace(":", "="),))
    if isinstance(default, bool) or not isinstance(default, int | float):
        return text
    number = _number("--set", name, text)
    if isinstance(default, int) and number != int(number):
        raise UsageError(f"--set {name}={text}: it must be a whole number.")
    return int(number) if isinstance(default, int) else number


def _number(option: str, name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise UsageError(f"{option} {name}={text}: {text!r} is not a number.") from None
    if not math.isfinite(number):
        raise UsageError(f"{option} {name}={text}: it must be a finite number.")
    return number
