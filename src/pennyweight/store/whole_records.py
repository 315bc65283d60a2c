"""Whole records of a run that match a filter, with their measures, a few thousand at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from sqlalchemy import distinct, func, literal, select, tuple_

from pennyweight.record import KEY, PERSON
from pennyweight.store.cells import checked, frame
from pennyweight.store.filters import ORDER, SAID, Filter, conditions, is_sqlite, joined_tables
from pennyweight.store.read_connection import fetch, reading
from pennyweight.store.search_index import with_index
from pennyweight.store.store import Store
from pennyweight.store.tables import MEASURED, RECORD

BATCH = 2_000
TEXTS = ("input", "messages", "response", "reasoning", "error", "tool_calls", "work")
"""The long texts of a record."""
LONGEST = 3
_LENGTH = sum((func.coalesce(func.length(RECORD.c[n]), 0) for n in TEXTS), literal(0))


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


def stored_rows(store: Store, run: str, batch: int = 100) -> Iterator[list[dict[str, Any]]]:
    """Yield the records of a run as they are stored, some at a time, in the order of the index."""
    key, edge = [RECORD.c[n] for n in ORDER], None
    while True:
        query = select(RECORD).where(RECORD.c.run == run).order_by(*key).limit(batch)
        query = query if edge is None else query.where(tuple_(*key) > tuple_(*edge))
        with reading(store) as connection:
            rows = [checked(RECORD, dict(row)) for row in connection.execute(query).mappings()]
        if rows:
            yield rows
        if len(rows) < batch:
            return
        edge = [literal(rows[-1][n]) for n in ORDER]


@dataclass(frozen=True, slots=True)
class RecordSizes:
    """How many records and tasks a run has, and how many characters their texts have."""

    records: int
    tasks: int
    characters: int


def record_sizes(store: Store, run: str) -> RecordSizes:
    """Add up the lengths of the texts of a run's records."""
    query = select(
        func.count(), func.count(distinct(RECORD.c.task_id)), func.coalesce(func.sum(_LENGTH), 0)
    )
    with reading(store) as connection:
        found = connection.execute(query.where(RECORD.c.run == run)).one()
    return RecordSizes(*map(int, found))


def text_length(row: Mapping[str, Any]) -> int:
    """Return how many characters the texts of a record have, as `record_sizes` counts them."""
    return sum(len(row[name] or "") for name in TEXTS)


def sampled_rows(store: Store, run: str, records: int, most: int) -> list[dict[str, Any]]:
    """Read some records of a run, at even distances in the order of the index, and the longest."""
    key = [RECORD.c[n] for n in ORDER]
    many = min(records, most)
    ordered = select(RECORD).where(RECORD.c.run == run)
    with reading(store) as connection:
        found = list(connection.execute(ordered.order_by(-_LENGTH).limit(LONGEST)).mappings())
        for number in range(many):
            place = (2 * number + 1) * records // (2 * many)
            one = ordered.order_by(*key).offset(place).limit(1)
            found += connection.execute(one).mappings()
    return [checked(RECORD, dict(row)) for row in found]
