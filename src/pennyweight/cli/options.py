"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from pennyweight.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = Callable[..., None]

FORMATS = ("table", "json", "markdown", "csv")

format_option = click.option(
    "--format",
    "format",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How to print; JSON and CSV go to standard output alone.",
)

confidence_option = click.option(
    "--confidence",
    type=float,
    default=0.95,
    show_default=True,
    help="Confidence level of the intervals.",
)

store_option = click.option(
    "--store",
    metavar="ADDRESS",
    help="SQLite file or postgresql:// address (default: $PENNYWEIGHT_STORE, else .pennyweight/).",
)


def record_options(command: Command) -> Command:
    """Add the options of every command that reads and scores records."""
    options = (
        format_option,
        click.option("--answer", metavar="RULE", help="Answer rule, such as last_number."),
        click.option("--match", metavar="RULE", help="Match rule, such as numeric=0.01."),
        click.option(
            "--map", "map", multiple=True, metavar="COLUMN=THEIRS",
            help="Take a column from theirs; from several joined (A,B); or ignore it (no name).",
        ),
        click.option("--prices", metavar="FILE", help="Price runs by this YAML or JSON file."),
        click.option("--positive", metavar="LABEL", help="Label for precision and recall."),
        click.option("--weight", multiple=True, metavar="METRIC=W", help="Part of weighted_score."),
        click.option("--set", "set", multiple=True, metavar="OPTION=VALUE", help="Metric option."),
        confidence_option,
        click.option(
            "--seed", type=click.IntRange(0), default=0, show_default=True, help="Random seed."
        ),
        store_option,
        click.option("--skip-bad", is_flag=True, help="Leave out bad records and count them."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def baseline_options(command: Command) -> Command:
    """Add the options that say which records a policy is decided on, and against which."""
    options = (
        click.option("--baseline", metavar="SOURCE|NAME", help="Records to compare with."),
        click.option("--version", metavar="V", help="Version evaluated, for progressive gates."),
        click.option("--where", multiple=True, metavar="COLUMN=VALUE", help="Only these records."),
        click.option(
            "--baseline-where", multiple=True, metavar="COLUMN=VALUE",
            help="Only these records of the baseline (default: the same subject and tier).",
        ),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def share(confidence: float) -> float:
    """Read a confidence level: 95 means 0.95."""
    return confidence / 100 if 1 < confidence < 100 else confidence


def scoring_options(
    set: tuple[str, ...], positive: str | None, weight: tuple[str, ...]
) -> dict[str, Any]:
    """Read the options of metrics."""
    options = settings(set)
    if positive is not None:
        options["positive"] = positive
    if weight:
        options["weights"] = numbers("--weight", weight)
    return options


def names(values: tuple[str, ...]) -> list[str]:
    """Read names given several times, or separated by commas."""
    found = [name.strip() for value in values for name in value.split(",")]
    return [*dict.fromkeys(filter(None, found))]


def pairs(option: str, values: tuple[str, ...]) -> dict[str, str]:
    """Read NAME=VALUE entries."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{option} {value!r}: it must have the form NAME=VALUE.")
        found[name.strip()] = text.strip()
    return found


def numbers(option: str, values: tuple[str, ...]) -> dict[str, float]:
    """Read NAME=NUMBER entries."""
    entries = [entry for value in values for entry in value.split(",")]
    return {n: _number(option, n, text) for n, text in pairs(option, tuple(entries)).items()}


def settings(values: tuple[str, ...]) -> dict[str, Any]:
    """Read `--set` entries, each by the type of the option it sets."""
    from pennyweight.api.score import option_defaults  # noqa: PLC0415 - it loads polars

    defaults = option_defaults()
    return {n: _typed(n, text, defaults.get(n)) for n, text in pairs("--set", values).items()}


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
