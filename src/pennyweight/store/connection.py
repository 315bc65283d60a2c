"""Open the database at an address, and turn its errors into messages with advice."""

from __future__ import annotations

import logging
import math
import os
import shlex
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, ExceptionContext, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InvalidatePoolError,
    NoSuchModuleError,
    SQLAlchemyError,
)
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from pennyweight.errors import StoreError, UsageError
from pennyweight.sources.home import create_folder
from pennyweight.store.migrations import is_current, migrate, version_of

DEFAULT = ".pennyweight/pennyweight.db"
BUSY_TIMEOUT = 30.0
"""Seconds to wait for another process that writes to the same file."""
SHORT_WAIT = 0.5
"""Seconds to wait for a lock that was just waited for in vain."""
CONNECT_TIMEOUT = 10
"""Seconds to wait for a server to accept a connection."""
IDLE = 0.1
"""Seconds after which a connection is tried before it is used: the server may have restarted."""
TRANSIENT_STATES = {"25P03", "40001", "40P01", "53300", "57P01", "57P02", "57P03"}
"""The SQLSTATEs of PostgreSQL that a retry can solve: deadlocks, restarts, too many clients."""


_UNHEARD = logging.NullHandler()
"""psycopg also logs the errors that it raises; without a handler they land on the terminal."""


def connect(address: str) -> Engine:
    """Connect and upgrade the schema. A path is an SQLite file, synced to disk at every commit."""
    url = _url(address)
    lite = url.drivername.startswith("sqlite")
    try:
        if lite:
            if not (url.database or "").startswith("file:"):
                _create_private(Path(url.database or ""))
            engine = create_engine(url, **_lite(url))
            event.listen(engine, "connect", _prepare_sqlite)
            LockWait().listen(engine)
        else:
            logging.getLogger("psycopg").addHandler(_UNHEARD)
            engine = create_engine(url, pool_use_lifo=True, connect_args=_reach(url))
            event.listen(engine, "connect", _limit_lock_wait)
            event.listen(engine, "checkin", _note_use)
            event.listen(engine, "checkout", _ping_if_idle)
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
                if lite:
                    _back_up(connection, Path(url.database or ""))
                migrate(connection)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _create_private(file: Path) -> None:
    """Create the file of a store and its folder so that only this user can read them.

    SQLite gives the files next to it the same mode. Existing files and folders stay as they are.
    """
    create_private_folder(file.parent)
    if not file.exists() and os.access(file.parent, os.W_OK):
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))


def create_private_folder(folder: Path) -> None:
    """Create a folder, and those above it, so that only this user can read them."""
    for place in reversed([folder, *folder.parents]):
        if not place.exists():
            create_folder(place)


def connect_reader(engine: Engine) -> Engine:
    """Connect to the same database for reading, without transactions and without a ping."""
    if engine.dialect.name == "sqlite":
        return engine
    url = engine.url
    reader = create_engine(
        url, isolation_level="AUTOCOMMIT", pool_use_lifo=True, connect_args=_reach(url)
    )
    event.listen(reader, "connect", _limit_lock_wait)
    return reader


def _limit_lock_wait(connection: Any, _record: Any) -> None:
    """Have a PostgreSQL server wait no longer for a lock than SQLite does."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = {BUSY_TIMEOUT * 1000:.0f}")
    connection.commit()


def limit_idle(engine: Engine) -> None:
    """Have PostgreSQL end a transaction that a stopped process leaves open: others wait for it."""
    if engine.dialect.name != "sqlite" and not event.contains(engine, "checkout", _limit_idle):
        event.listen(engine, "checkout", _limit_idle)


def _limit_idle(connection: Any, record: Any, _proxy: Any) -> None:
    if not record.info.get("idle_limited"):
        with connection.cursor() as cursor:
            milliseconds = f"{BUSY_TIMEOUT * 1000 / 3:.0f}"
            cursor.execute(f"SET idle_in_transaction_session_timeout = {milliseconds}")
        connection.commit()
        record.info["idle_limited"] = True


def _note_use(_connection: Any, record: Any) -> None:
    record.info["used"] = time.monotonic()


def _ping_if_idle(connection: Any, record: Any, _proxy: Any) -> None:
    """Replace a connection that a server has closed meanwhile; one in steady use is not asked."""
    if time.monotonic() - record.info.get("used", math.inf) < IDLE:
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        connection.rollback()
    except Exception as error:
        raise InvalidatePoolError from error


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


def _back_up(connection: Connection, file: Path) -> None:
    """Copy a store that is about to be upgraded; an earlier copy of the same version stays."""
    version = version_of(connection)
    copy = file.with_name(f"{file.name}.v{version}.backup")
    if version is None or is_current(connection):
        return
    if copy.exists():
        if _holds_version(copy, version):
            return
        raise StoreError(
            f"The store {file} must be upgraded, but {copy} exists and is not its backup.",
            "Nothing was changed. Move that file away, or name another store with --store.",
        )
    part = copy.with_name(f"{copy.name}.part")
    try:
        part.unlink(missing_ok=True)
        _create_private(part)
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(part)) as target:
            source.backup(target)
        part.replace(copy)
    except (OSError, sqlite3.Error) as error:
        part.unlink(missing_ok=True)
        raise StoreError(
            f"The store {file} must be upgraded, but its backup {copy} cannot be written: {error}.",
            "Nothing was changed. Free some space or name another store with --store.",
        ) from error


def _holds_version(file: Path, version: int) -> bool:
    try:
        with closing(sqlite3.connect(file)) as store:
            found = store.execute("SELECT version FROM pennyweight_meta").fetchone()
    except sqlite3.Error:
        return False
    return bool(found == (version,))


class LockWait:
    """Waits for a lock once: after a wait in vain, further statements fail at once for a while.

    A run that ends because its store is locked still has to end its run and its lease.
    """

    def __init__(self) -> None:
        self._failed = -math.inf

    def listen(self, engine: Engine) -> None:
        """Adjust how long the connections of an engine wait."""
        event.listen(engine, "handle_error", self._note)
        event.listen(engine, "checkout", self._adjust)

    def _note(self, context: ExceptionContext) -> None:
        if "locked" in str(context.original_exception):
            self._failed = time.monotonic()

    def _adjust(self, connection: Any, record: ConnectionPoolEntry, _: Any) -> None:
        wait = SHORT_WAIT if time.monotonic() - self._failed < BUSY_TIMEOUT else BUSY_TIMEOUT
        if record.info.setdefault("wait", BUSY_TIMEOUT) != wait:
            connection.execute(f"PRAGMA busy_timeout = {wait * 1000:.0f}")
            record.info["wait"] = wait


_NO_DATABASE = "file is not a database"
"""What SQLite says of a file that something else wrote."""


class guarded:  # noqa: N801
    """Turns the errors of a database into a StoreError with advice."""

    def __init__(self, address: str) -> None:
        self.address = address

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if isinstance(error, SQLAlchemyError | OverflowError | UnicodeError):
            reason = _reason(error)
            then = again(self.address)
            advice = f"Everything committed is safe. Fix this, then continue with {then!r}."
            if reason == _NO_DATABASE:
                advice = "Name another file with --store, or move this one away."
            raise StoreError(
                f"The store {shown(self.address)} cannot be used: {reason}.",
                advice,
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
