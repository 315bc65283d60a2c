"""A connection for one query: what only reads needs no transaction around it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from assay.store.connect import guarded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from assay.store.store import Store


@contextmanager
def reading(store: Store) -> Iterator[Connection]:
    """Connect for reading; PostgreSQL is spared the words that begin and end a transaction."""
    engine = store.engine
    if engine.dialect.name != "sqlite":
        engine = engine.execution_options(isolation_level="AUTOCOMMIT")
    with guarded(store.address), engine.connect() as connection:
        yield connection
