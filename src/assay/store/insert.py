"""Write many rows at once, in the way each database takes them fastest."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Table

Row = tuple[Any, ...]
MOST = 8
"""SQLite takes up to 2 ** MOST rows in one statement."""


def insert(
    connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[Row]
) -> None:
    """Insert rows; one whose key is there is replaced. Rows without a key are added.

    SQLite gets groups of 1, 2, 4, … rows as one statement each: it is left and entered again,
    with the interpreter's lock to wait for, once a group and not once a row. psycopg has a way of
    its own to send a statement many times.
    """
    names = tuple(columns)
    if connection.dialect.name != "sqlite":
        if rows:
            connection.exec_driver_sql(_statement(table, names, "%s", 1), list(rows))
        return
    at = 0
    while at < len(rows):
        size = 1 << min(MOST, (len(rows) - at).bit_length() - 1)
        values = tuple(value for row in rows[at : at + size] for value in row)
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
    return f"{text} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {sets}"


def is_there(connection: Connection, table: Table, columns: Sequence[str], row: Row) -> bool:
    """Whether a table has this very row."""
    same = [
        table.c[name].is_not_distinct_from(value) for name, value in zip(columns, row, strict=True)
    ]
    return connection.execute(select(1).where(*same).limit(1)).first() is not None
