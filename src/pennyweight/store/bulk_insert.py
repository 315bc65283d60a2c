"""Write many rows at once, in the way that is fastest for each database."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any

from sqlalchemy import Connection, Table, select
from sqlalchemy.exc import DBAPIError

Row = tuple[Any, ...]
Rows = tuple[Table, Sequence[str], Sequence[Row]]
"""A table, its columns, and rows for it."""
GROUP_STEP, MAX_GROUP = 8, 256
"""Rows in one statement for SQLite: a multiple of the step, or fewer than the step."""


def insert(
    connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[Row]
) -> None:
    """Insert rows. A row replaces the one with the same key; rows without a key are added.

    An error replaces only an error: other records were paid for.

    SQLite gets many rows in one statement, so that the interpreter's lock is released once per
    group instead of once per row. Group sizes are multiples of eight, plus the remainder, so that
    there are few enough statements to keep them prepared. psycopg has its own way to send a
    statement many times.
    """
    names = tuple(columns)
    if connection.dialect.name != "sqlite":
        if rows:
            connection.exec_driver_sql(_statement(table, names, "%s", 1), list(rows))
        return
    at = 0
    while at < len(rows):
        left = len(rows) - at
        size = left if left < GROUP_STEP else min(MAX_GROUP, left - left % GROUP_STEP)
        values = tuple(chain.from_iterable(rows[at : at + size]))
        connection.exec_driver_sql(_statement(table, names, "?", size), values)
        at += size


def insert_if(
    connection: Connection, condition: tuple[str, Row] | None, parts: Sequence[Rows]
) -> bool:
    """Insert rows into several tables if a statement changes one row; return whether it does.

    If it does not, the transaction is to be rolled back. PostgreSQL gets everything at once and
    answers once: waiting for each statement costs both sides more than the statements.
    """
    if connection.dialect.name == "sqlite":
        if condition and connection.exec_driver_sql(*condition).rowcount != 1:
            return False
        for part in parts:
            insert(connection, *part)
        return True
    import psycopg  # noqa: PLC0415 - an extra

    link = connection.connection.driver_connection
    assert isinstance(link, psycopg.Connection)
    try:
        with link.pipeline():
            checked = link.execute(*condition) if condition else None
            for table, columns, rows in parts:
                if rows:
                    link.cursor().executemany(_statement(table, tuple(columns), "%s", 1), rows)
        return checked is None or checked.rowcount == 1
    except psycopg.Error as error:
        if link.closed:
            connection.invalidate()
        lost = bool(link.closed)
        raise DBAPIError.instance(
            None,
            None,
            error,
            psycopg.Error,
            connection_invalidated=lost,
            dialect=connection.dialect,
        ) from error


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


def has_row(connection: Connection, table: Table, columns: Sequence[str], row: Row) -> bool:
    """Whether a table contains exactly this row."""
    same = [
        table.c[name].is_not_distinct_from(value) for name, value in zip(columns, row, strict=True)
    ]
    return connection.execute(select(1).where(*same).limit(1)).first() is not None
