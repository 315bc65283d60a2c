"""Tasks that two sides solved to a different degree, compared and counted by the database."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from pennyweight.store.queries import TEXT_FILTERS, known_name
from pennyweight.store.read_connection import reading
from pennyweight.store.store import Store
from pennyweight.store.tables import MEASURED

Chosen = tuple[Sequence[str], Mapping[str, str]]
"""Runs, with the column values that select some of their records."""

MIN_DIFFERENCE = 1e-9
"""A smaller difference between two shares is a rounding error."""


@dataclass(frozen=True, slots=True)
class Change:
    """A task with the share of correct answers of each side."""

    task_id: str
    first: float
    second: float


@dataclass(frozen=True, slots=True)
class Changes:
    """The tasks that got worse and better, largest difference first, and how many there are."""

    worse: tuple[Change, ...] = ()
    better: tuple[Change, ...] = ()
    worse_count: int = 0
    better_count: int = 0


def changes(
    store: Store,
    first: Chosen,
    second: Chosen,
    most: int = 200,
    alike: Sequence[str] = (),
    result: str = "correct",
    without: Collection[str] = (),
) -> Changes:
    """Find the tasks whose share differs between two sides, up to `most` in each direction.

    Only attempts with the same value in each column of `alike` are compared, as in `compare`:
    attempts that only one side made are left out. `result` is what counts, `correct` or `passed`;
    the other one counts where it is missing. The tasks in `without` are left out: their exam
    changed.
    """
    values: dict[str, Any] = {"most": most}
    counted = _RESULTS[result]
    key = ["task_id", *(known_name(name, TEXT_FILTERS) for name in alike)]
    parts = [
        _shares(letter, *side, values, key, counted)
        for letter, side in zip("ab", (first, second), strict=True)
    ]
    left = ""
    if without:  # one value, because a database takes only some tens of thousands
        values["left"] = json.dumps([*without])
        lite = store.engine.dialect.name == "sqlite"
        names = "value FROM json_each(:left)"
        names = names if lite else "json_array_elements_text(CAST(:left AS json))"
        left = f"WHERE a.task_id NOT IN (SELECT {names}) "
    same = " AND ".join(f"a.{name} = b.{name}" for name in key)
    shares = ("avg(a.share)", "avg(b.share)")
    query = (  # only known names are in it, every value is bound
        "SELECT task_id, first, second, many FROM (SELECT task_id, first, second, "  # noqa: S608
        "count(*) OVER (PARTITION BY second > first) AS many, "
        "row_number() OVER (PARTITION BY second > first "
        "ORDER BY abs(second - first) DESC, task_id) AS place FROM "
        f"(SELECT a.task_id AS task_id, {shares[0]} AS first, {shares[1]} AS second "
        f"FROM {parts[0]} JOIN {parts[1]} ON {same} {left}GROUP BY a.task_id "
        f"HAVING abs({shares[0]} - {shares[1]}) > {MIN_DIFFERENCE}) AS d"
        ") AS ranked WHERE place <= :most ORDER BY place"
    )
    with reading(store) as connection:
        rows = connection.execute(text(query), values).all()
    worse = [row for row in rows if row[2] < row[1]]
    better = [row for row in rows if row[2] > row[1]]
    return Changes(
        tuple(Change(*row[:3]) for row in worse),
        tuple(Change(*row[:3]) for row in better),
        worse[0][3] if worse else 0,
        better[0][3] if better else 0,
    )


_RESULTS = {"correct": "coalesce(correct, passed)", "passed": "coalesce(passed, correct)"}


def _shares(
    letter: str,
    runs: Sequence[str],
    chosen: Mapping[str, str],
    values: dict[str, Any],
    key: Sequence[str],
    result: str,
) -> str:
    """Return SQL for a side's share of correct answers per task and configuration."""
    named = {f"{letter}_run{index}": run for index, run in enumerate(runs)}
    values |= named
    where = [f"run IN ({', '.join(f':{name}' for name in named)})", f"{result} IS NOT NULL"]
    for index, (name, value) in enumerate(chosen.items()):
        where.append(f"{known_name(name, TEXT_FILTERS)} = :{letter}{index}")
        values[f"{letter}{index}"] = value
    right = f"CASE WHEN {result} THEN 1.0 ELSE 0.0 END"
    return (
        f"(SELECT {', '.join(key)}, avg({right}) AS share FROM {MEASURED.name} "  # noqa: S608
        f"WHERE {' AND '.join(where)} GROUP BY {', '.join(key)}) {letter}"
    )
