"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import click

from pennyweight.cli.notes import ReadingProgress
from pennyweight.errors import UsageError, unknown

Command = Callable[..., None]
Decorator = Callable[[Command], Command]

FILE = click.Path(path_type=Path)


def names(values: Sequence[str]) -> list[str]:
    """Read names from repeated options or separated by commas."""
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


def option(flag: str, help: str, metavar: str | None = None, **settings: Any) -> Decorator:
    """Return an option."""
    return click.option(flag, metavar=metavar, help=help, **settings)


def names_option(flag: str, help: str, metavar: str = "NAMES") -> Decorator:
    """Return an option for names; the command gets a list."""
    return option(flag, help, metavar, multiple=True, callback=lambda _, __, v: names(v))


def pairs_option(flag: str, help: str, metavar: str) -> Decorator:
    """Return an option for NAME=VALUE entries; the command gets a dict."""
    return option(flag, help, metavar, multiple=True, callback=lambda _, __, v: pairs(flag, v))


def format_choice(*formats: str) -> Decorator:
    """Return the option `--format`; the first format is the default."""
    return option("--format", "Output format.", type=click.Choice(formats), default=formats[0])


format_option = format_choice("table", "json", "markdown", "csv")

by_option = names_option("--by", "Group the scores (default: tier).", "COLUMNS")

recording_option = option("--record", "Record replies, for models named replay:FILE.", type=FILE)

confidence_option = option(
    "--confidence",
    "Confidence level of the intervals.",
    type=float,
    default=0.95,
    callback=lambda _, __, level: level / 100 if 1 < level < 100 else level,
)

store_option = option(
    "--store",
    "SQLite file or postgresql:// address (default: $PENNYWEIGHT_STORE, else .pennyweight/).",
    "ADDRESS",
)

map_option = pairs_option(
    "--map",
    "Read COLUMN from the column THEIRS, or from several joined (A,B). Without THEIRS, ignore it.",
    "COLUMN=THEIRS",
)

where_option = pairs_option(
    "--where", "Use only records with this value in a column or measure.", "COLUMN=VALUE"
)

scorers_option = names_option(
    "--scorers", "Score the records now. FILE.py has your scorers, metrics and measures.", "FILES"
)

skip_bad_option = option("--skip-bad", "Leave out bad records, and count them.", is_flag=True)

WEIGHTS = ("records", "tasks")
"""Values of `--weight` that say what counts once."""

LOGS = (
    option("--scorer", "The score that decides, in a log with several.", "NAME"),
    option("--filter", "The filter of responses, in a log with several.", "NAME"),
)
"""Options that choose what is read from the log of another tool; `log_options` reads them."""

ANSWERS = (
    option("--answer", "How to extract answers, such as last_number.", "RULE"),
    option("--match", "How to match answers, such as numeric=0.01.", "RULE"),
)
"""Options that decide which answers are correct, in place of the suite; `answer_options`."""

errors_option = option(
    "--errors",
    "Leave errors out, or count them as failures.",
    type=click.Choice(["exclude", "failures"]),
)

SCORING = (
    *LOGS,
    *ANSWERS,
    map_option,
    where_option,
    scorers_option,
    option("--prices", "Compute the cost of runs from this YAML or JSON file.", "FILE"),
    option("--positive", "Positive label, for precision and recall.", "LABEL"),
    errors_option,
    option("--k", "Attempts at a task in pass_at_k and others.", "N", type=click.IntRange(1)),
    option(
        "--weight",
        "'tasks' counts each task once in means; METRIC=W is a weight in weighted_score.",
        "tasks|METRIC=W",
        multiple=True,
    ),
    option("--set", "Option of a metric, such as bins=15.", "OPTION=VALUE", multiple=True),
    confidence_option,
    option("--seed", "Random seed.", type=click.IntRange(0), default=0),
    skip_bad_option,
    store_option,
    format_option,
)

POLICY = (
    option("--baseline", "Records that the policy compares with.", "SOURCE|NAME"),
    option("--version", "Evaluated version, for progressive thresholds.", "V"),
    where_option,
    pairs_option(
        "--baseline-where",
        "Use only these records of the baseline (default: the same subject and tier).",
        "COLUMN=VALUE",
    ),
)


def record_options(command: Command) -> Command:
    """Add the options of every command that scores records; `scoring_options` reads them."""
    return reduce(lambda made, add: add(made), reversed(SCORING), command)


def log_options(command: Command) -> Command:
    """Add the options that choose what is read from a log."""
    return reduce(lambda made, add: add(made), reversed(LOGS), command)


def answer_options(command: Command) -> Command:
    """Add the options that decide which answers are correct."""
    return reduce(lambda made, add: add(made), reversed(ANSWERS), command)


def baseline_options(command: Command) -> Command:
    """Add the options that select the records of a policy and its baseline."""
    return reduce(lambda made, add: add(made), reversed(POLICY), command)


def scoring_options(
    scorers: Sequence[str],
    set: Sequence[str],
    positive: str | None,
    k: int | None,
    errors: str | None,
    weight: Sequence[str],
    **keywords: Any,
) -> dict[str, Any]:
    """Return the keywords that `score` and `compare` take for the values of `record_options`."""
    from pennyweight.api.score import named_scorers

    own = named_scorers(scorers)  # their files may declare metrics, which have settings
    options = keywords | {"scorers": own} | settings(set)
    options |= {
        n: v for n, v in (("positive", positive), ("k", k), ("errors", errors)) if v is not None
    }
    if weighted := [w for w in weight if w not in WEIGHTS]:
        options["weights"] = numbers("--weight", weighted)
    if whole := [w for w in weight if w in WEIGHTS]:
        options["weight"] = whole[-1]
    if sys.stderr.isatty():
        options["progress"] = ReadingProgress()
    return options


def settings(values: Sequence[str]) -> dict[str, Any]:
    """Read `--set` entries, each by the type of the option it sets."""
    from pennyweight.api.score import option_defaults

    defaults, given = option_defaults(), pairs("--set", values)
    for name in given:
        if name not in defaults:
            hint = "'pennyweight metrics NAME' shows a metric's options."
            raise UsageError(unknown("Option", name, defaults, hint))
    return {n: _typed(n, text, defaults[n]) for n, text in given.items()}


def _typed(name: str, text: str, default: Any) -> Any:
    if name in {"weights", "grades"}:
        return numbers(f"--set {name}", (text.replace(":", "="),))
    whole = isinstance(default, int) or name in {"k", "n"}
    if isinstance(default, bool) or not (whole or isinstance(default, float)):
        return text
    number = _number("--set", name, text)
    if whole and number != int(number):
        raise UsageError(f"--set {name}={text}: it must be a whole number.")
    return int(number) if whole else number


def _number(option: str, name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise UsageError(f"{option} {name}={text}: {text!r} is not a number.") from None
    if not math.isfinite(number):
        raise UsageError(f"{option} {name}={text}: it must be a finite number.")
    return number
