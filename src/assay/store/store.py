"""A store of runs: open it, add to it, read from it."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from sqlalchemy import Engine, create_engine, delete, event, func, select, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from assay.errors import AssayError, UsageError
from assay.store.migrations import migrate
from assay.store.tables import CALL, JUDGMENT, RECORD, RUN

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from sqlalchemy import Table

DEFAULT = ".assay/assay.db"
ROWS = 20_000
Row = tuple[Any, ...]

RECORD_COLUMNS = tuple(RECORD.c.keys())
JUDGMENT_COLUMNS = tuple(JUDGMENT.c.keys())
CALL_COLUMNS = tuple(column.name for column in CALL.c if column.name != "id")

_TYPES: dict[type, Any] = {str: pl.String, int: pl.Int64, float: pl.Float64, bool: pl.Boolean}


class StoreError(AssayError):
    """The store cannot be read or written: a full disk, a lost connection, no permission."""

    exit_code = 4


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a suite, with everything needed to repeat it."""

    id: str
    suite: str
    path: str
    text: str
    data_hash: str
    status: str
    """`running`, `done`, `stopped` (interrupted or out of budget) or `failed`."""
    attempts: int
    created: float
    ended: float | None
    settings: dict[str, Any]


class Store:
    """A store at an address; several processes may use it at the same time."""

    def __init__(self, address: str | None = None) -> None:
        self.address = address or os.environ.get("ASSAY_STORE") or DEFAULT
        self._engine: Engine | None = None

    @property
    def exists(self) -> bool:
        """Whether there is something at the address, without making it."""
        return "://" in self.address or Path(self.address).exists()

    @property
    def engine(self) -> Engine:
        """The connections, opened and upgraded on first use."""
        if self._engine is None:
            self._engine = _open(self.address)
        return self._engine

    def close(self) -> None:
        """Let go of all connections."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def add_run(self, run: Run) -> None:
        """Write a new run down."""
        values = {
            **{c.name: getattr(run, c.name) for c in RUN.c},
            "settings": json.dumps(run.settings),
        }
        with _guarded(self.address), self.engine.begin() as connection:
            connection.execute(RUN.insert().values(values))

    def set_run(self, run_id: str, **values: Any) -> None:
        """Change what is known about a run."""
        if "settings" in values:
            values["settings"] = json.dumps(values["settings"])
        with _guarded(self.address), self.engine.begin() as connection:
            connection.execute(update(RUN).where(RUN.c.id == run_id).values(**values))

    def runs(self) -> list[Run]:
        """List the runs, the newest first."""
        if not self.exists:
            return []
        with _guarded(self.address), self.engine.connect() as connection:
            rows = connection.execute(
                select(RUN).order_by(RUN.c.created.desc(), RUN.c.id)
            ).mappings()
            return [Run(**{**row, "settings": json.loads(row["settings"])}) for row in rows]

    def find(self, name: str) -> Run:
        """Find a run by its id, a unique beginning of it, or `latest`."""
        runs = self.runs()
        if name == "latest" and runs:
            return runs[0]
        found = [r for r in runs if r.id == name] or [r for r in runs if r.id.startswith(name)]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(r.id for r in found[:5])
            raise UsageError(f"{name!r} is the beginning of several runs: {ids}. Give more of it.")
        where = f"in the store {_shown(self.address)}"
        if not runs:
            raise UsageError(f"There is no run {where} yet; 'assay run SUITE' makes one.")
        raise UsageError(f"There is no run {name!r} {where}; 'assay runs' lists them.")

    def write(self, records: Sequence[Row], calls: Sequence[Row]) -> None:
        """Write records and calls in one transaction; a record that is there is replaced."""
        with _guarded(self.address), self.engine.begin() as connection:
            if records:
                connection.exec_driver_sql(self._insert(RECORD, RECORD_COLUMNS), list(records))
            if calls:
                connection.exec_driver_sql(self._insert(CALL, CALL_COLUMNS), list(calls))

    def write_judgments(self, judgments: Sequence[Row], calls: Sequence[Row]) -> None:
        """Write judgments and calls in one transaction; a judge's older judgment is replaced."""
        with _guarded(self.address), self.engine.begin() as connection:
            if judgments:
                text = self._insert(JUDGMENT, JUDGMENT_COLUMNS)
                connection.exec_driver_sql(text, list(judgments))
            if calls:
                connection.exec_driver_sql(self._insert(CALL, CALL_COLUMNS), list(calls))

    def judgments(self, run_id: str) -> pl.DataFrame:
        """Read the judgments of a run, in a fixed order."""
        c = JUDGMENT.c
        query = select(JUDGMENT).where(c.run == run_id)
        query = query.order_by(c.attempt, c.task_id, c.subject, c.tier, c.judge)
        schema = {column.name: _TYPES[column.type.python_type] for column in c}
        with _guarded(self.address), self.engine.connect() as connection:
            rows = [tuple(row) for row in connection.execute(query)]
        return pl.DataFrame(rows, schema=schema, orient="row")

    def _insert(self, table: Table, columns: Sequence[str]) -> str:
        mark = "?" if self.engine.dialect.name == "sqlite" else "%s"
        values = ", ".join([mark] * len(columns))
        text = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608
        if table is CALL:
            return text
        key = [c.name for c in table.primary_key]
        sets = ", ".join(f"{c} = excluded.{c}" for c in columns if c not in key)
        return f"{text} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {sets}"

    def made(self, run_id: str) -> dict[tuple[str, str, str, int], tuple[str, str]]:
        """Say which attempts of a run have a record: their fingerprint and status."""
        c = RECORD.c
        query = select(c.subject, c.tier, c.task_id, c.attempt, c.fingerprint, c.status)
        with _guarded(self.address), self.engine.connect() as connection:
            rows = connection.execute(query.where(c.run == run_id))
            return {(r[0], r[1], r[2], r[3]): (r[4], r[5]) for r in rows}

    def spent(self, run_id: str) -> dict[str, Any]:
        """Add up the ledger of a run."""
        c = CALL.c
        query = select(
            func.count().label("calls"),
            func.sum(c.cost_usd).label("usd"),
            func.sum(c.prompt_tokens).label("prompt_tokens"),
            func.sum(c.completion_tokens).label("completion_tokens"),
        ).where(c.run == run_id)
        with _guarded(self.address), self.engine.connect() as connection:
            row = connection.execute(query).mappings().one()
            return {n: int(v) if v is not None and n != "usd" else v for n, v in row.items()}

    def statuses(self, run_id: str) -> dict[str, int]:
        """Count the records of a run by status."""
        query = select(RECORD.c.status, func.count()).where(RECORD.c.run == run_id)
        with _guarded(self.address), self.engine.connect() as connection:
            return {r[0]: r[1] for r in connection.execute(query.group_by(RECORD.c.status))}

    def records(
        self, run_id: str, columns: Container[str] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Read records of a run, some thousand at a time, in the order of their key."""
        chosen = [c for c in RECORD.c if columns is None or c.name in columns]
        query = select(*chosen).where(RECORD.c.run == run_id).order_by(*RECORD.primary_key)
        schema = {c.name: _TYPES[c.type.python_type] for c in chosen}
        with _guarded(self.address), self.engine.connect() as connection:
            rows = connection.execution_options(yield_per=ROWS).execute(query)
            for part in rows.partitions():
                yield pl.DataFrame([tuple(r) for r in part], schema=schema, orient="row")

    def remove(self, run_id: str) -> None:
        """Delete a run with all that belongs to it."""
        with _guarded(self.address), self.engine.begin() as connection:
            for column in (JUDGMENT.c.run, CALL.c.run, RECORD.c.run, RUN.c.id):
                connection.execute(delete(column.table).where(column == run_id))


def _open(address: str) -> Engine:
    """Connect; a path is an SQLite file, in WAL mode and synced to the disk at every commit."""
    plain = "://" not in address
    try:
        if plain:
            Path(address).parent.mkdir(parents=True, exist_ok=True)
        url = make_url(f"sqlite:///{address}" if plain else address)
        if url.drivername in {"postgresql", "postgres"}:
            url = url.set(drivername="postgresql+psycopg")
        engine = create_engine(url, pool_pre_ping=True)
    except OSError as error:
        raise StoreError(f"The store {address} cannot be made: {error.strerror}.") from error
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise UsageError(
            f"--store {_shown(address)}: give a path for SQLite or postgresql://… for PostgreSQL "
            f"(which needs the extra 'postgresql'): {error}"
        ) from None
    if url.drivername.startswith("sqlite"):
        event.listen(engine, "connect", _prepare_sqlite)
    with _guarded(address), engine.begin() as connection:
        if engine.dialect.name == "postgresql":  # two processes may open a new store at once
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(4155415359)")
        migrate(connection)
    return engine


def _prepare_sqlite(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA busy_timeout = 30000")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


class _guarded:  # noqa: N801
    """Turns what a database says into an error that says what to do."""

    def __init__(self, address: str) -> None:
        self.address = address

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if isinstance(error, SQLAlchemyError):
            cause = error.orig if isinstance(error, DBAPIError) else error
            reason = (
                str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
            )
            raise StoreError(
                f"The store {_shown(self.address)} cannot be used: {reason}. What was committed is "
                "safe; mend this and go on with 'assay run --resume'."
            ) from error


def _shown(address: str) -> str:
    """Show an address without its password."""
    if "://" not in address:
        return address
    try:
        return make_url(address).render_as_string(hide_password=True)
    except ArgumentError:
        return address.split("://", maxsplit=1)[0] + "://…"


def now() -> float:
    """Give the time as records keep it: Unix seconds."""
    return time.time()
