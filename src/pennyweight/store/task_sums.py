"""The results of each task and side, added up by the database, or one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pennyweight.store.queries import FLAGS, RANGES, known_name
from pennyweight.store.read_connection import fetch
from pennyweight.store.store import Store
from pennyweight.store.tables import MEASURED


def task_sums(store: Store, run: str, column: str) -> Sequence[Sequence[Any]]:
    """Return subject, tier, task, the sum of a measure and how many attempts have it; their counts.

    The counts are of those without an error, and of all. Errors have no value, as in every quality
    metric.
    """
    name = known_name(column, (*FLAGS, *RANGES))
    value = f"CASE WHEN {name} THEN 1.0 ELSE 0.0 END" if name in FLAGS else name
    answered = "(status IS NULL OR status <> 'error')"
    counted = f"CASE WHEN {answered} AND {name} IS NOT NULL THEN"
    query = (  # only a known name is in it, every value is bound
        f"SELECT subject, tier, task_id, sum({counted} {value} ELSE 0.0 END), "  # noqa: S608
        f"sum({counted} 1 ELSE 0 END), sum(CASE WHEN {answered} THEN 1 ELSE 0 END), count(*) "
        f"FROM {MEASURED.name} WHERE run = :run GROUP BY task_id, subject, tier"
    )
    return fetch(store, query, {"run": run})


def tried_tasks(store: Store, run: str) -> Mapping[tuple[str, str], set[str]]:
    """Return the tasks with an attempt that did not end in an error, by subject and tier."""
    query = (
        f"SELECT DISTINCT subject, tier, task_id FROM {MEASURED.name} "  # noqa: S608
        "WHERE run = :run AND (status IS NULL OR status <> 'error')"
    )
    found: dict[tuple[str, str], set[str]] = {}
    for subject, tier, task in fetch(store, query, {"run": run}):
        found.setdefault((subject, tier), set()).add(task)
    return found


def task_values(store: Store, run: str, column: str) -> Sequence[Sequence[Any]]:
    """Return subject, tier, task and the value of each attempt that has a measure; no errors."""
    name = known_name(column, RANGES)
    query = (
        f"SELECT subject, tier, task_id, {name} FROM {MEASURED.name} "  # noqa: S608
        f"WHERE run = :run AND (status IS NULL OR status <> 'error') AND {name} IS NOT NULL"
    )
    return fetch(store, query, {"run": run})
