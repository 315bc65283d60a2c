"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import math
from typing import Any

import click

from pennyweight.errors import UsageError

FORMATS = ("table", "json", "markdown", "csv")

format_option = click.option(
    "--format",
    "format",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How to print; JSON and CSV go to standard output alone.",
)


store_option = click.option(
    "--store",
    metavar="ADDRESS",
    help="SQLite file or postgresql:// address (default: $PENNYWEIGHT_STORE, else .pennyweight/).",
)


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
    from pennyweight.define import MEASURES, METRICS  # noqa: PLC0415 - it loads polars

    defaults = {
        n: d for one in (*MEASURES.values(), *METRICS.values()) for n, d in one.options.items()
    }
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
