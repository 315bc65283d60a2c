"""Whole records of a run that match a filter, with their measures, a few thousand at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from pennyweight.record import KEY, PERSON
from pennyweight.store.cells import frame
from pennyweight.store.filters import ORDER, SAID, Filter, conditions, is_sqlite, joined_tables
from pennyweight.store.read_connection import fetch
from pennyweight.store.search_index import with_index
from pennyweight.store.store import Store
from pennyweight.store.tables import MEASURED, RECORD

BATCH = 2_000


def whole_records(
    store: Store, run: str, wanted: Filter, batch: int = BATCH
) -> Iterator[pl.DataFrame]:
    """Yield the records in the order of the index; at least one table, which may be empty."""
    own, measures = list(RECORD.c), [c for c in MEASURED.c if c.name not in RECORD.c]
    read = [f"r.{c.name}" for c in own] + [f"m.{c.name}" for c in measures]
    decided = [c for c in MEASURED.c if c.name in RECORD.c and c.name not in KEY]
    read += [f"m.{c.name}" for c in decided] + [f"({SAID} ORDER BY p.id DESC LIMIT 1)"]
    wanted = with_index(store, run, wanted)
    narrow = wanted.measured
    key = [f"{'m' if narrow else 'r'}.{n}" for n in ORDER]
    tables, order = joined_tables(narrow=narrow), ", ".join(key)
    edge: tuple[Any, ...] | None = None
    while True:
        where, values = conditions(run, wanted, lite=is_sqlite(store), narrow=narrow)
        if edge is not None:
            marks = {f"k{i}": part for i, part in enumerate(edge)}
            where.append(f"({order}) > ({', '.join(f':{mark}' for mark in marks)})")
            values |= marks
        query = (  # only known names are in it, every value is bound
            f"SELECT {', '.join(read)} FROM {tables} WHERE {' AND '.join(where)} "  # noqa: S608
            f"ORDER BY {order} LIMIT {batch:d}"
        )
        rows = fetch(store, query, values)
        if rows or edge is None:
            yield _table(own, measures, decided, rows)
        if len(rows) < batch:
            return
        names = [c.name for c in own]
        edge = tuple(rows[-1][names.index(n)] for n in ORDER)


def _table(own: Any, measures: Any, decided: Any, rows: Any) -> pl.DataFrame:
    """Join the columns; a measure takes the place of the record's column of the same name."""
    first = len(own)
    records = frame(RECORD, own, [row[:first] for row in rows])
    rest = frame(MEASURED, [*measures, *decided], [row[first:-1] for row in rows])
    found = [
        s.zip_with(s.is_not_null(), records[s.name]) for s in rest if s.name in records.columns
    ]
    said = pl.Series(PERSON, [row[-1] for row in rows], dtype=pl.String)
    new = [s for s in rest if s.name not in records.columns]
    return records.with_columns(*found).hstack([*new, said])
