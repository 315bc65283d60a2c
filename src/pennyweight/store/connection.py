"""Open the database at an address, and turn its errors into messages with advice."""

from __future__ import annotations

import os
import shlex
import sqlite3
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from pennyweight.errors import StoreError, UsageError
from pennyweight.store.migrations import is_current, migrate

DEFAULT = ".pennyweight/pennyweight.db"
BUSY_TIMEOUT = 30.0
"""Seconds to wait for another process that writes to the same file."""
CONNECT_TIMEOUT = 10
"""Seconds to wait for a server to accept a connection."""
TRANSIENT_STATES = {"40001", "40P01", "53300", "57P01", "57P02", "57P03"}
"""The SQLSTATEs of PostgreSQL that a retry can solve: deadlocks, restarts, too many clients."""


def connect(address: str) -> Engine:
    """Connect and upgrade the schema. A path is an SQLite file, synced to disk at every commit."""
    url = _url(address)
    lite = url.drivername.startswith("sqlite")
    try:
        if "://" not in address:
            Path(address).parent.mkdir(parents=True, exist_ok=True)
        if lite:
            engine = create_engine(url, **_lite(url))
            event.listen(engine, "connect", _prepare_sqlite)
        else:
            engine = create_engine(url, pool_pre_ping=True, connect_args=_reach(url))
    except OSError as error:
        raise StoreError(f"The store {address} cannot be created: {error.strerror}.") from error
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise _wrong(address, str(error)) from None
    try:
        with guarded(address), engine.connect() as connection:
            current = is_current(connection)
        if not current:
            with guarded(address), engine.begin() as connection:
                _alone(connection)
                migrate(connection)
    except BaseException:
        engine.dispose()
        raise
    return engine


def connect_reader(engine: Engine) -> Engine:
    """Connect to the same database for reading, without transactions and without a ping."""
    if engine.dialect.name == "sqlite":
        return engine
    url = engine.url
    return create_engine(
        url, isolation_level="AUTOCOMMIT", pool_use_lifo=True, connect_args=_reach(url)
    )


def _reach(url: URL) -> dict[str, Any]:
    return {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_TIMEOUT}


def file_of(engine: Engine) -> tuple[int, int] | None:
    """Identify the file of a store by device and inode; None for a server."""
    path = engine.url.database
    if engine.dialect.name != "sqlite" or not path:
        return None
    try:
        found = os.stat(path)  # noqa: PTH116 - this is asked at every commit
    except OSError:
        return (0, 0)
    return found.st_dev, found.st_ino


def _url(address: str) -> URL:
    try:
        url = make_url(address if "://" in address else f"sqlite:///{address}")
    except (ArgumentError, ValueError):  # its text may hold the password
        raise _wrong(address, "it cannot be read; a password needs %-escapes") from None
    if url.drivername in {"postgresql", "postgres"}:
        url = url.set(drivername="postgresql+psycopg")
    kind = url.get_backend_name()
    if kind not in {"sqlite", "postgresql"}:
        raise _wrong(address, f"{kind} is not supported")
    if kind == "sqlite" and url.database in {None, "", ":memory:"}:
        raise _wrong(address, "a store in memory would be lost")
    return url


def _lite(url: URL) -> dict[str, Any]:
    """Open a file that is not writable, or is in a folder that is not writable, as read-only.

    Otherwise SQLite creates files next to it. Without a write-ahead log nothing is changing at the
    moment, and SQLite does not need to look for one. A process with write access can continue at
    any time, so this is checked for each connection, and no connection is used twice.
    """
    file = Path(url.database or "")
    if not file.is_file() or (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)):
        return {"pool_use_lifo": True}

    def opened() -> sqlite3.Connection:
        log = Path(f"{file}-wal")
        still = "" if log.exists() and log.stat().st_size else "&immutable=1"
        name = f"file:{quote(str(file.absolute()))}?mode=ro{still}"
        return sqlite3.connect(name, uri=True, check_same_thread=False)

    return {"creator": opened, "poolclass": NullPool}


def _wrong(address: str, why: str) -> UsageError:
    return UsageError(
        f"--store {shown(address)}: give a path for SQLite or postgresql://… for PostgreSQL "
        f"(which needs the extra 'postgresql'): {why}."
    )


def _prepare_sqlite(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT * 1000:.0f}")
    end = time.monotonic() + BUSY_TIMEOUT
    while True:  # SQLite does not wait by itself when two processes create a store at once
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            break
        except connection.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA temp_store = MEMORY")  # one more open file could exceed the limit
    cursor.close()


def _alone(connection: Connection) -> None:
    """Make other processes that want to upgrade the schema wait until this transaction ends."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(4155415359)")


class guarded:  # noqa: N801
    """Turns the errors of a database into a StoreError with advice."""

    def __init__(self, address: str) -> None:
        self.address = address

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if isinstance(error, SQLAlchemyError | OverflowError | UnicodeError):
            raise StoreError(
                f"The store {shown(self.address)} cannot be used: {_reason(error)}.",
                "Everything committed is safe. Fix this, then continue with "
                f"{again(self.address)!r}.",
                transient=_is_transient(error),
            ) from error


def _reason(error: BaseException) -> str:
    """Return the first line of a database's message; the last one if it lists several."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    if not lines:
        return type(cause).__name__
    line = lines[-1].removeprefix("- ") if lines[0].endswith(":") else lines[0]
    return line.rstrip(".")


def _is_transient(error: BaseException) -> bool:
    """Whether PostgreSQL went away or asks for a retry."""
    if not isinstance(error, DBAPIError) or isinstance(error.orig, sqlite3.Error):
        return False
    import psycopg  # noqa: PLC0415

    if not isinstance(error.orig, psycopg.Error):
        return False
    code = error.orig.sqlstate
    gone = code is None and isinstance(error.orig, psycopg.OperationalError)
    return error.connection_invalidated or gone or code in TRANSIENT_STATES


def again(address: str, run: str = "") -> str:
    """Return the command that resumes a run. A password is replaced by a placeholder.

    >>> again("team.db", "20260101-000000-0001")
    'pennyweight run --resume 20260101-000000-0001 --store team.db'
    """
    command = f"pennyweight run --resume {run}".rstrip()
    if address in {DEFAULT, os.environ.get("PENNYWEIGHT_STORE")}:
        return command
    if shown(address) != address:
        return f"PENNYWEIGHT_STORE=… {command}"
    return f"{command} --store {shlex.quote(address)}"


def shown(address: str) -> str:
    """Return an address without its password.

    >>> shown("postgresql://me:secret@host/db?sslpassword=too")
    'postgresql://me:***@host/db?sslpassword=hidden'
    """
    if "://" not in address:
        return address
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        return address.split("://", maxsplit=1)[0] + "://…"
    hidden = {name: "hidden" for name in url.query if "password" in name}
    return url.update_query_dict(hidden).render_as_string(hide_password=True)
