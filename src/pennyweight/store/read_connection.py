"""Read-only queries without the overhead of transactions and pings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Engine, Select
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.exc import DBAPIError

from pennyweight.store.connection import guarded
from pennyweight.store.store import Store

Row = tuple[Any, ...]

_NAMED = re.compile(r":(\w+)")


@contextmanager
def reading(store: Store) -> Iterator[Connection]:
    """Connect for reading. PostgreSQL gets no statements that begin and end a transaction."""
    engine = store.engine
    if engine.dialect.name != "sqlite":
        engine = engine.execution_options(isolation_level="AUTOCOMMIT")
    with guarded(store.address), engine.connect() as connection:
        yield connection


def fetch(
    store: Store, query: str | Select[Any], values: Mapping[str, Any] | None = None
) -> list[Row]:
    """Return the rows of a query as the driver returns them. Values are written `:name`.

    Convenient rows and connections take longer than many queries. A server is not pinged before
    each query: if the connection was lost, the query is repeated once.
    """
    engine = store.reader
    written = _written(query, named=engine.dialect.name == "sqlite")
    with guarded(store.address):
        try:
            return _fetched(engine, written, values or {})
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
        engine.dispose()
        return _fetched(engine, written, values or {})


@lru_cache(256)
def _written(query: str | Select[Any], *, named: bool) -> str:
    """Return a query in the driver's form: with values as `:name` or as `%(name)s`."""
    if not isinstance(query, str):
        query = str(query.compile(dialect=DefaultDialect(paramstyle="named")))
    return query if named else _NAMED.sub(r"%(\1)s", query)


def _fetched(engine: Engine, query: str, values: Mapping[str, Any]) -> list[Row]:
    dialect = engine.dialect
    assert dialect.loaded_dbapi is not None
    known, connection = dialect.loaded_dbapi.Error, None
    try:
        connection = engine.raw_connection()
        cursor = connection.cursor()
        cursor.execute(query, values)
        return list(cursor.fetchall())
    except known as error:
        held = connection and connection.dbapi_connection
        lost = held is not None and dialect.is_disconnect(error, held, None)
        if connection and lost:
            connection.invalidate(error)
        raise DBAPIError.instance(query, None, error, known, False, lost) from error
    finally:
        if connection:
            connection.close()
