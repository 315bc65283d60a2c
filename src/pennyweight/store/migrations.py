"""Upgrade a store to the newest schema. Each step is numbered and runs once, in a transaction."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, Table, inspect, select, update
from sqlalchemy.schema import CreateColumn

from pennyweight.errors import UsageError
from pennyweight.store.tables import (
    ASIDE,
    CALL,
    DECISION,
    DIGEST,
    JUDGMENT,
    MEASURED,
    META,
    RECORD,
    REMARK,
    RUN,
    SCENARIO,
    VERDICT,
)


def _first(connection: Connection) -> None:
    for table in (RUN, RECORD, CALL):
        table.create(connection, checkfirst=True)


def _judgments(connection: Connection) -> None:
    JUDGMENT.create(connection, checkfirst=True)
    _add_columns(connection, RECORD, "passed", "work", "price_source")


def _cached_results(connection: Connection) -> None:
    for table in (MEASURED, DIGEST, REMARK):
        table.create(connection, checkfirst=True)


def _scenarios(connection: Connection) -> None:
    for table in (SCENARIO, VERDICT):
        table.create(connection, checkfirst=True)


def _held(connection: Connection) -> None:
    _add_columns(connection, CALL, "held_usd", "held_tokens")


def _leases(connection: Connection) -> None:
    _add_columns(connection, RUN, "owner", "beat")


def _several_judgments(connection: Connection) -> None:
    """Add the fingerprint to the key, so that judgments by several rubrics can coexist."""
    _with_key(connection, JUDGMENT, "fingerprint")


def _decisions(connection: Connection) -> None:
    """Store verdicts of policies, and index the newest call and verdict of a run."""
    DECISION.create(connection, checkfirst=True)
    for table, name in ((CALL, "pennyweight_call_newest"), (VERDICT, "pennyweight_verdict_newest")):
        there = {index["name"] for index in inspect(connection).get_indexes(table.name)}
        wanted = table is VERDICT or connection.dialect.name == "postgresql"
        if wanted and name not in there:
            next(index for index in table.indexes if index.name == name).create(connection)


def _several_decisions(connection: Connection) -> None:
    """Add the side to the key, so that verdicts of several policies and sides can coexist."""
    _with_key(connection, DECISION, "side")


def _set_aside(connection: Connection) -> None:
    """Keep records that a changed suite no longer asks for, in a table that nothing counts."""
    ASIDE.create(connection, checkfirst=True)


def _with_key(connection: Connection, table: Table, column: str) -> None:
    """Recreate a table whose key lacks a column. Its rows are kept."""
    key = inspect(connection).get_pk_constraint(table.name)["constrained_columns"]
    if column in key:
        return
    names = ", ".join(column.name for column in table.c)
    old = f"{table.name}_old"
    for text in (
        f"CREATE TABLE {old} AS SELECT {names} FROM {table.name}",  # noqa: S608
        f"DROP TABLE {table.name}",
    ):
        connection.exec_driver_sql(text)
    table.create(connection)
    connection.exec_driver_sql(
        f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {old}"  # noqa: S608
    )
    connection.exec_driver_sql(f"DROP TABLE {old}")


def _add_columns(connection: Connection, table: Table, *names: str) -> None:
    """Add the columns that a table lacks. A table that was just created has them."""
    there = {column["name"] for column in inspect(connection).get_columns(table.name)}
    for name in names:
        if name not in there:
            column = CreateColumn(table.c[name]).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {column}")


STEPS: tuple[Callable[[Connection], None], ...] = (
    _first,
    _judgments,
    _cached_results,
    _scenarios,
    _held,
    _leases,
    _several_judgments,
    _decisions,
    _several_decisions,
    _set_aside,
)
"""Step n upgrades a store from version n to n + 1. A released step never changes."""


def is_current(connection: Connection) -> bool:
    """Whether a store is at the newest version. A store of a later version is refused."""
    if not inspect(connection).has_table(META.name):
        return False
    version = connection.scalar(select(META.c.version))
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
    META.create(connection, checkfirst=True)
    version = connection.scalar(select(META.c.version))
    if version is None:
        connection.execute(META.insert().values(version=0))
        version = 0
    for step in STEPS[version:]:
        step(connection)
    connection.execute(update(META).values(version=len(STEPS)))
