"""The tasks of a run with their results, and why they did not pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

import polars as pl

from pennyweight.render.attempts import attempts_of, why_failed
from pennyweight.render.plain import csv_table, markdown_table, markdown_text, one_line
from pennyweight.render.terminal import table_text
from pennyweight.stored_runs.task_results import TaskResult
from pennyweight.text.format import MISSING, count, plural

MAX_TASKS = 20
"""The most tasks that are listed unless all are asked for."""
MAX_ID_LENGTH = 500
_SIDE = ("task_id", "subject", "tier")
Key = tuple[str, str, str]
"""A task, a subject and a tier."""


def first_shown(results: Sequence[TaskResult], *, every: bool) -> list[TaskResult]:
    """Return the tasks to list: those that did not pass first; all of them if `every` is set."""
    ranked = sorted(results, key=lambda result: not result.bad)
    return ranked if every else ranked[:MAX_TASKS]


def reasons(frames: Iterable[pl.DataFrame]) -> dict[Key, str]:
    """Return why attempts at tasks did not pass; the attempts at one task follow each other."""
    found = groupby(attempts_of(frames), key=itemgetter(*_SIDE))
    return {key: why_failed(list(several)) for key, several in found}


def render(
    results: Sequence[TaskResult],
    whys: Mapping[Key, str],
    hidden: int,
    format: str,  # noqa: A002
    *,
    failed: bool = False,
) -> str:
    """Write a table of tasks, `failed` ones or all; `hidden` is how many are not in it."""
    head = ["task", "subject", "tier", "category", "passed", "why"]
    rows = [
        [
            one_line(r.task_id, MAX_ID_LENGTH),
            *(one_line(x, 24) for x in (r.subject, r.tier)),
            one_line(r.category or MISSING, 16),
            _passed(r),
            whys.get((r.task_id, r.subject, r.tier), "") or MISSING,
        ]
        for r in results
    ]
    if format == "csv":
        return csv_table([head, *rows])
    several = [i for i in (1, 2, 3) if len({row[i] for row in rows}) > 1]
    columns = (0, *several, 4, 5)
    table = [[row[i] for i in columns] for row in (head, *rows)]
    hint = "." if failed else ", --failed what did not pass."
    more = f"{plural(hidden, 'more result')}: --all lists them{hint}"
    if format == "markdown":
        text = markdown_table(table, right=(len(columns) - 2,))
        return f"{text}\n{markdown_text(more)}\n" if hidden else text
    text = table_text(table[0], table[1:], right=(len(columns) - 2,))
    return f"{text}{more}\n" if hidden else text


def _passed(result: TaskResult) -> str:
    """Write how many of the attempts that were made passed."""
    made = result.attempts - result.errors
    if not made or result.undecided == made:
        return MISSING
    return f"{count(result.passed)}/{count(made)}"
