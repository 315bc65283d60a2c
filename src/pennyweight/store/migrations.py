"""Upgrade a store to the newest schema. Each step is numbered and runs once, in a transaction."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from sqlalchemy import Connection, Table, inspect, select, update
from sqlalchemy.schema import CreateColumn

from pennyweight.errors import UsageError
from pennyweight.store import tables

Step = Callable[[Connection], None]


def _create(*wanted: Table) -> Step:
    """Create tables, unless they exist."""

    def step(connection: Connection) -> None:
        for table in wanted:
            table.create(connection, checkfirst=True)

    return step


def _add_columns(table: Table, *names: str) -> Step:
    """Add the columns that a table lacks. A table that was just created has them."""

    def step(connection: Connection) -> None:
        existing = {column["name"] for column in inspect(connection).get_columns(table.name)}
        for name in names:
            if name not in existing:
                column = CreateColumn(table.c[name]).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {column}")

    return step


def _add_to_key(table: Table, column: str) -> Step:
    """Recreate a table whose key lacks a column, so that more of its rows can coexist."""

    def step(connection: Connection) -> None:
        if column in inspect(connection).get_pk_constraint(table.name)["constrained_columns"]:
            return
        names = ", ".join(column.name for column in table.c)
        old = f"{table.name}_old"
        connection.exec_driver_sql(
            f"CREATE TABLE {old} AS SELECT {names} FROM {table.name}"  # noqa: S608
        )
        connection.exec_driver_sql(f"DROP TABLE {table.name}")
        table.create(connection)
        connection.exec_driver_sql(
            f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {old}"  # noqa: S608
        )
        connection.exec_driver_sql(f"DROP TABLE {old}")

    return step


def _index(table: Table, name: str) -> Step:
    """Create an index of a table, unless it exists."""

    def step(connection: Connection) -> None:
        existing = {index["name"] for index in inspect(connection).get_indexes(table.name)}
        if name not in existing:
            next(index for index in table.indexes if index.name == name).create(connection)

    return step


def _index_newest(connection: Connection) -> None:
    """Index the newest call and verdict of a run."""
    for table in (tables.CALL, tables.VERDICT):
        name = f"{table.name}_newest"
        existing = {index["name"] for index in inspect(connection).get_indexes(table.name)}
        wanted = table is tables.VERDICT or connection.dialect.name == "postgresql"
        if wanted and name not in existing:
            next(index for index in table.indexes if index.name == name).create(connection)


_CACHE = ("cache_write_tokens", "cached_input_price", "cache_write_price")

STEPS: tuple[tuple[Step, ...], ...] = (
    (_create(tables.RUN, tables.RECORD, tables.CALL),),
    (_create(tables.JUDGMENT), _add_columns(tables.RECORD, "passed", "work", "price_source")),
    (_create(tables.MEASURED, tables.DIGEST, tables.REMARK),),
    (_create(tables.SCENARIO, tables.VERDICT),),
    (_add_columns(tables.CALL, "held_usd", "held_tokens"),),
    (_add_columns(tables.RUN, "owner", "beat"),),
    (_add_to_key(tables.JUDGMENT, "fingerprint"),),
    (_create(tables.DECISION), _index_newest),
    (_add_to_key(tables.DECISION, "side"),),
    (_create(tables.ASIDE),),
    (_add_columns(tables.RECORD, *_CACHE), _add_columns(tables.ASIDE, *_CACHE)),
    (_create(tables.SCORE),),
    (_add_columns(tables.RECORD, "ttft_ms"), _add_columns(tables.ASIDE, "ttft_ms")),
    (_add_columns(tables.RECORD, "temperature"), _add_columns(tables.ASIDE, "temperature")),
    (_create(tables.LABEL), _add_columns(tables.DIGEST, "sides")),
    (_create(tables.GRID),),
    (_create(tables.SHARE, tables.QUEUE, tables.PORTION, tables.WORKER),),
    (_add_columns(tables.REMARK, "draw"), _index(tables.REMARK, "pennyweight_remark_record")),
    (_create(tables.SEARCH, tables.WORDS),),
    (
        _create(tables.BATCH, tables.REQUEST),
        _add_columns(tables.RECORD, "lane"),
        _add_columns(tables.ASIDE, "lane"),
    ),
    (_create(tables.TURN),),
    (_add_columns(tables.MEASURED, "failed"),),
    (_add_columns(tables.RECORD, "task_digest"), _add_columns(tables.ASIDE, "task_digest")),
)
"""Step n upgrades a store from version n to n + 1. A released step never changes."""


def version_of(connection: Connection) -> int | None:
    """Return the version of a store; None for a new one."""
    if not inspect(connection).has_table(tables.META.name):
        return None
    version: int | None = connection.scalar(select(tables.META.c.version))
    if version is not None and not (isinstance(version, int) and version >= 1):
        raise UsageError(
            f"The store has version {version!r:.40}, which no Pennyweight has written. Restore it "
            "from a backup, or use another store with --store."
        )
    return version


def is_current(connection: Connection) -> bool:
    """Whether a store is at the newest version. A store of a later version is refused."""
    version = version_of(connection)
    if version is not None and version > len(STEPS):
        raise UsageError(
            f"The store has version {version}, but this Pennyweight supports up to {len(STEPS)}. "
            "Update Pennyweight, or use another store with --store."
        )
    return version == len(STEPS)


def migrate(connection: Connection) -> None:
    """Upgrade a store or create a new one. Another process may have done so in the meantime."""
    if is_current(connection):
        return
    tables.META.create(connection, checkfirst=True)
    version = version_of(connection)
    if version is None:
        connection.execute(tables.META.insert().values(version=0))
    for step in chain.from_iterable(STEPS[version or 0 :]):
        step(connection)
    connection.execute(update(tables.META).values(version=len(STEPS)))
