"""Options of `pennyweight run` that narrow or change a suite for one run."""

from __future__ import annotations

from functools import reduce
from typing import Any

import click

from pennyweight.cli.options import ANSWERS, Command, names, option, pairs, pairs_option
from pennyweight.errors import UsageError

_NUMBER = click.IntRange(1)

SELECTION = (
    option("--limit", "Try only the first N tasks.", "N", type=_NUMBER),
    option("--sample", "Try only N tasks, drawn at random.", "N", type=_NUMBER),
    option("--seed", "Random seed of --sample (default: 0).", type=click.IntRange(0)),
    option("--task", "Try only these tasks: ids, or patterns such as 'math-*'.", "ID",
           multiple=True),
    option("--subject", "Measure only these subjects of the suite.", "NAME", multiple=True),
    option("--tier", "Measure only these tiers.", "NAME", multiple=True),
    click.option("--model", "-m", multiple=True, metavar="PROVIDER/NAME",
                 help="Measure this model in place of the suite's subjects."),
)  # fmt: skip
"""Those that pick tasks, subjects and tiers."""
_CHANGE = option(
    "--set", "Change a value of the suite, such as tiers.T1.system='Be brief.'.", "KEY=VALUE",
    multiple=True,
)  # fmt: skip
NARROWING = (
    *SELECTION,
    option("--runs", "Attempts at each task.", "N", type=_NUMBER),
    option("--concurrency", "Concurrent calls: a number, or auto.", "N"),
    option("--temperature", "Temperature of every call.", "T", type=click.FloatRange(0)),
    option("--batch", "Send the calls in the providers' batches, which are cheaper.",
           is_flag=True, default=None),
    *ANSWERS,
    pairs_option("--map", "Read FIELD of a file of tasks from the column THEIRS.", "FIELD=THEIRS"),
    _CHANGE,
)  # fmt: skip
"""The options, in the order of the help."""
REPEATED = (
    click.option("--model", "-m", multiple=True, metavar="PROVIDER/NAME",
                 help="A model that the run was started with, to confirm it."),
    option("--set", "A change that the run was started with, to confirm it.", "KEY=VALUE",
           multiple=True),
)  # fmt: skip
"""Those that other commands take, so that a run's changes to its suite need no terminal."""


def narrowing_options(command: Command) -> Command:
    """Add the options; `narrowing_keywords` reads their values."""
    return reduce(lambda made, add: add(made), reversed(NARROWING), command)


def selection_options(command: Command) -> Command:
    """Add the options that pick tasks, subjects and tiers, and `--set`."""
    return reduce(lambda made, add: add(made), reversed((*SELECTION, _CHANGE)), command)


def repeated_options(command: Command) -> Command:
    """Add the options that confirm what a run changed in its suite, as `run` takes them."""
    return reduce(lambda made, add: add(made), reversed(REPEATED), command)


def narrowing_keywords(
    model: tuple[str, ...],
    set: tuple[str, ...],
    task: tuple[str, ...] = (),
    subject: tuple[str, ...] = (),
    tier: tuple[str, ...] = (),
    concurrency: str | None = None,
    batch: bool | None = None,
    map: dict[str, str] | None = None,
    **others: Any,
) -> dict[str, Any]:
    """Return the keywords that `run` takes for the values of `narrowing_options`."""
    lists = {"subjects": subject, "tiers": tier, "models": model}
    given: dict[str, Any] = {name: names(values) for name, values in lists.items() if values}
    given |= {"tasks": list(task)} if task else {}
    given |= {name: value for name, value in others.items() if value is not None}
    if concurrency is not None:
        given["concurrency"] = _concurrency(concurrency)
    if batch:
        given["lane"] = "batch"
    if map:
        given["columns"] = map
    if set:
        from pennyweight.api.run import parsed_value

        given["set"] = {name: parsed_value(text) for name, text in pairs("--set", set).items()}
    return given


def _concurrency(text: str) -> int | str:
    if text != "auto" and not text.isdecimal():
        raise UsageError(f"--concurrency {text}: it must be a whole number, or auto.")
    return text if text == "auto" else int(text)
