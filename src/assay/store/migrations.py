"""Bring a store to the newest schema. Each step is numbered and runs once, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import inspect, select, update

from assay.errors import UsageError
from assay.store.tables import CALL, META, RECORD, RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection


def _first(connection: Connection) -> None:
    for table in (RUN, RECORD, CALL):
        table.create(connection, checkfirst=True)


STEPS: tuple[Callable[[Connection], None], ...] = (_first,)
"""Step n brings a store from version n to n + 1. A step that was released never changes."""


def migrate(connection: Connection) -> None:
    """Upgrade a store, or make a new one; one from a later Assay is refused, not harmed."""
    if not inspect(connection).has_table(META.name):
        META.create(connection, checkfirst=True)
    version = connection.scalar(select(META.c.version))
    if version is None:
        connection.execute(META.insert().values(version=0))
        version = 0
    if version > len(STEPS):
        raise UsageError(
            f"The store has version {version}, this Assay knows up to {len(STEPS)}; "
            "update Assay, or name another store with --store."
        )
    for step in STEPS[version:]:
        step(connection)
    if version < len(STEPS):
        connection.execute(update(META).values(version=len(STEPS)))
