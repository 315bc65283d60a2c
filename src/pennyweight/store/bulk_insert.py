"""Write many rows at once, in the way each database takes them fastest."""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Table

Row = tuple[Any, ...]
STEP, MOST = 8, 256
"""SQLite takes up to so many rows in one statement, and any number below the first of them."""


def insert(
    connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[Row]
) -> None:
    """Insert rows; one whose key is there is replaced. Rows without a key are added.

    An error replaces nothing but an error: what is there was paid for.

    SQLite gets many rows as one statement: it is left and entered again, with the interpreter's
    lock to wait for, once a group and not once a row. Groups are multiples of eight, and the rest:
    few enough statements to be kept prepared. psycopg has a way of its own to send a statement
    many times.
    """
    names = tuple(columns)
    if connection.dialect.name != "sqlite":
        if rows:
            connection.exec_driver_sql(_statement(table, names, "%s", 1), list(rows))
        return
    at = 0
    while at < len(rows):
        left = len(rows) - at
        size = left if left < STEP else min(MOST, left - left % STEP)
        values = tuple(chain.from_iterable(rows[at : at + size]))
        connection.exec_driver_sql(_statement(table, names, "?", size), values)
        at += size


@cache
def _statement(table: Table, columns: tuple[str, ...], mark: str, rows: int) -> str:
    row = f"({', '.join([mark] * len(columns))})"
    values = ", ".join([row] * rows)
    text = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES {values}"  # noqa: S608
    key = [c.name for c in table.primary_key]
    if not set(key) <= set(columns):
        return text
    sets = ", ".join(f"{c} = excluded.{c}" for c in columns if c not in key)
    text = f"{text} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {sets}"
    if "fingerprint" not in columns:
        return text
    return f"{text} WHERE excluded.status <> 'error' OR {table.name}.status = 'error'"


def is_there(connection: Connection, table: Table, columns: Sequence[str], row: Row) -> bool:
    """Whether a table has this very row."""
    same = [
        table.c[name].is_not_distinct_from(value) for name, value in zip(columns, row, strict=True)
    ]
    return connection.execute(select(1).where(*same).limit(1)).first() is not None
