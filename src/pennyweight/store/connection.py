"""Open the database at an address, and say what is wrong with it in words a person can use."""

from __future__ import annotations

import os
import shlex
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from pennyweight.errors import PennyweightError, UsageError
from pennyweight.store.migrations import is_current, migrate

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection

DEFAULT = ".pennyweight/pennyweight.db"
BUSY = 30.0
"""Seconds to wait for another process that writes to the same file."""
REACH = 10
"""Seconds to wait for a server to answer."""
PASSING = {"40001", "40P01", "53300", "57P01", "57P02", "57P03"}
"""What PostgreSQL says when it is enough to try again: deadlocks, restarts, too many clients."""


class StoreError(PennyweightError):
    """The store cannot be read or written: a full disk, a lost connection, no permission."""

    exit_code = 4

    def __init__(self, problem: str, advice: str = "", *, passing: bool = False) -> None:
        super().__init__(f"{problem} {advice}".rstrip())
        self.problem = problem
        """What is wrong, without the advice that follows it in the message."""
        self.passing = passing
        """Whether the problem may disappear by itself, such as a server that restarts."""


def connect(address: str) -> Engine:
    """Connect and upgrade; a path is an SQLite file, synced to the disk at every commit."""
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
        raise StoreError(f"The store {address} cannot be made: {error.strerror}.") from error
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
    """Connect to the same for reading: without transactions, and without a question before each."""
    if engine.dialect.name == "sqlite":
        return engine
    url = engine.url
    return create_engine(
        url, isolation_level="AUTOCOMMIT", pool_use_lifo=True, connect_args=_reach(url)
    )


def _reach(url: URL) -> dict[str, Any]:
    return {} if "connect_timeout" in url.query else {"connect_timeout": REACH}


def file_of(engine: Engine) -> tuple[int, int] | None:
    """Say which file a store is; None where there is none, as on a server."""
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
        raise _wrong(address, "what is only in memory would be lost")
    return url


def _lite(url: URL) -> dict[str, Any]:
    """Open a file that cannot be written, or lies where nothing can, for reading alone.

    SQLite else wants to make files beside it. Where there is none that holds what was committed
    last, nothing changes at the moment, and it need not look. Who may write can go on at any time,
    so that is asked anew for each connection, and none is used twice.
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
    cursor.execute(f"PRAGMA busy_timeout = {BUSY * 1000:.0f}")
    end = time.monotonic() + BUSY
    while True:  # SQLite does not wait by itself when two processes make a store at once
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            break
        except connection.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA temp_store = MEMORY")  # a file more could be one too many to open
    cursor.close()


def _alone(connection: Connection) -> None:
    """Make other processes that want to upgrade wait until this transaction ends."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(4155415359)")


class guarded:  # noqa: N801
    """Turns what a database says into an error that says what to do."""

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
                passing=_passing(error),
            ) from error


def _reason(error: BaseException) -> str:
    """Give the first line of what a database says; the last one where it lists several."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    if not lines:
        return type(cause).__name__
    line = lines[-1].removeprefix("- ") if lines[0].endswith(":") else lines[0]
    return line.rstrip(".")


def _passing(error: BaseException) -> bool:
    """Whether it is PostgreSQL that went away, or asks to try again."""
    if not isinstance(error, DBAPIError) or isinstance(error.orig, sqlite3.Error):
        return False
    import psycopg  # noqa: PLC0415

    if not isinstance(error.orig, psycopg.Error):
        return False
    code = error.orig.sqlstate
    gone = code is None and isinstance(error.orig, psycopg.OperationalError)
    return error.connection_invalidated or gone or code in PASSING


def again(address: str, run: str = "") -> str:
    """Write the command that goes on with a run; a password is not told, but where it belongs.

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
    """Show an address without its password.

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
