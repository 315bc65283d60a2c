"""The grid of tasks and sides: a row for each task, sorted and paged by the database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import delete

from pennyweight.store.bulk_insert import insert
from pennyweight.store.cache import SQLITE_BATCH
from pennyweight.store.connection import guarded
from pennyweight.store.queries import known_name
from pennyweight.store.read_connection import fetch
from pennyweight.store.store import Store, now
from pennyweight.store.tables import GRID

COLUMNS = ("task_id", "category", "mean", "agreement", "differs", "wrong", "flaky", "cells")
ORDERS = {
    "difficulty": "mean ASC NULLS LAST, task_id",
    "disagreement": "agreement ASC NULLS LAST, task_id",
    "category": "category ASC NULLS LAST, task_id",
    "task": "task_id",
}
"""The hardest tasks first, those on which the sides differ most, by category, by name."""
FILTERS = ("differs", "wrong", "flaky")


def save_grid(store: Store, run: str, sides: str, rows: Iterable[Sequence[Any]]) -> None:
    """Store the rows of a grid, in the order of `COLUMNS`. Tasks that are gone are deleted."""
    names = ("run", "sides", "made", *COLUMNS)
    made, every = now(), list(rows)
    for start in range(0, len(every), SQLITE_BATCH):
        part = [(run, sides, made, *row) for row in every[start : start + SQLITE_BATCH]]
        with guarded(store.address), store.engine.begin() as connection:
            insert(connection, GRID, names, part)
    old = GRID.c.run == run, GRID.c.sides == sides, GRID.c.made < made
    with guarded(store.address), store.engine.begin() as connection:
        connection.execute(delete(GRID).where(*old))


def grid_rows(
    store: Store, run: str, sides: str, *, order: str, only: str = "", start: int = 0, limit: int
) -> list[tuple[str, str | None, str]]:
    """Return the task, its category and its cells, as JSON, of some rows of a grid."""
    where = f"AND {known_name(only, FILTERS)} " if only else ""
    query = (  # only known names are in it, every value is bound
        f"SELECT task_id, category, cells FROM {GRID.name} "  # noqa: S608
        f"WHERE run = :run AND sides = :sides {where}"
        f"ORDER BY {ORDERS[order]} LIMIT {limit:d} OFFSET {start:d}"
    )
    found = fetch(store, query, {"run": run, "sides": sides})
    return [(str(task), category, str(cells)) for task, category, cells in found]
