"""A store of runs: open it, write to it, read from it."""

from __future__ import annotations

import json
import os
import time
import weakref
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, TypedDict, TypeVar, cast

import polars as pl
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    Table,
    func,
    select,
    update,
)

from pennyweight.errors import StoreError, UsageError
from pennyweight.record import AttemptKey
from pennyweight.store.cells import SETTINGS, DamagedRun, checked, frame, json_cell, sound
from pennyweight.store.connection import DEFAULT, connect, connect_reader, file_of, guarded, shown
from pennyweight.store.lease import Fence, FencedError, Lease, insert_fenced, remove_run
from pennyweight.store.tables import CALL, JUDGMENT, RECORD, RUN

READ_BATCH = 2_000
"""Records read at a time. Their texts are in memory twice, as Python objects and in Polars."""
PATIENCE = 30.0
"""Seconds to wait for a database server that went away while a run is written."""
Row = tuple[Any, ...]
T = TypeVar("T")
Correction = tuple[str, dict[str, Any]]
"""A task, and the new values of its records."""

RUN_COLUMNS = tuple(c for c in RUN.c if c.name not in {"owner", "beat"})
RECORD_COLUMNS = tuple(RECORD.c.keys())
JUDGMENT_COLUMNS = tuple(JUDGMENT.c.keys())
CALL_COLUMNS = tuple(column.name for column in CALL.c if column.name != "id")
RESERVED = "reserved"
"""The kind of ledger rows that hold what calls in flight may cost, until they are taken back."""


class VerifiedAttempts(TypedDict):
    """The attempts that a command verifies; their answers are not compared with targets."""

    subjects: list[str]
    other_tasks: list[str]
    """The tasks that no command verifies."""


class RunSettings(TypedDict, total=False):
    """What a run stores about its suite, in addition to the suite's text."""

    pennyweight: str
    """The version that created the run."""
    python: str
    seed: int | None
    runs: int
    tasks: int
    subjects: list[str]
    tiers: list[str]
    limits: Mapping[str, Any]
    answer: Mapping[str, Any]
    match: Mapping[str, Any]
    confidence: str | None
    judge: Mapping[str, Any]
    """The judges that count, their rubric and their consensus."""
    log: Mapping[str, Any]
    """The tools and files that the run was imported from."""
    until_decided: Mapping[str, Any]
    """The plan of a run that stops early."""
    verified: VerifiedAttempts
    partial: list[str]
    """What its suite lacks of the suite of another tool that it was made from."""
    narrowing: Mapping[str, Any]
    """The options that narrowed or changed its suite (`suite/narrowing.py`)."""
    grading: Mapping[str, Any]
    """Its scorers, and the models that are asked about sentences and questions."""
    scores: Mapping[str, Any]
    """The scores of its records by name: what their values are, and how to read them."""
    scored: float
    """When scores were last stored."""


class Spending(TypedDict):
    """The sums of a run's ledger. A sum is null if no call has the value."""

    calls: int
    usd: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    held_usd: float | None
    """Reserved for calls whose cost is not known."""
    held_tokens: int | None
    unpriced: int
    """The number of calls whose cost is not known."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One execution of a suite, with everything needed to repeat it."""

    id: str
    suite: str
    path: str
    text: str
    data_hash: str
    status: str
    """`running`, `done`, `stopped` (interrupted, or a limit was reached) or `failed`."""
    attempts: int
    created: float
    ended: float | None
    settings: RunSettings

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> StoredRun:
        """Make a run from a row of the table."""
        cells = checked(RUN, row)
        settings = json_cell(cells["settings"], SETTINGS, f"settings of run {cells['id']}")
        return cls(**{**cells, "settings": settings})

    @property
    def sides(self) -> dict[str, list[str]]:
        """The names of its subjects and tiers, by column."""
        settings = self.settings
        return {"subject": settings.get("subjects", []), "tier": settings.get("tiers", [])}

    @property
    def place(self) -> str:
        """The path of its suite, relative to the current folder if that is shorter."""
        return min(self.path, os.path.relpath(self.path), key=len)


class Store:
    """A store at an address. Several processes may use it at the same time."""

    def __init__(self, address: str | None = None) -> None:
        self.address = address or os.environ.get("PENNYWEIGHT_STORE") or DEFAULT
        self._engine: Engine | None = None
        self._reader: Engine | None = None
        self._file: tuple[int, int] | None = None
        self.leases: dict[str, Lease] = {}
        """The runs that this process has taken through this store."""
        self.fences: dict[str, Fence] = {}
        """By shared run: the right of this process to write its records."""

    @property
    def exists(self) -> bool:
        """Whether there is a store at the address, without creating it."""
        return "://" in self.address or Path(self.address).exists()

    @property
    def engine(self) -> Engine:
        """The connections, opened and upgraded on first use."""
        if self._engine is None:
            self._engine = connect(self.address)
            self._file = file_of(self._engine)
            weakref.finalize(self, self._engine.dispose)
        return self._engine

    @property
    def reader(self) -> Engine:
        """Connections for reading only."""
        if self._reader is None:
            self._reader = connect_reader(self.engine)
            weakref.finalize(self, self._reader.dispose)
        return self._reader

    def close(self) -> None:
        """Close all connections."""
        for engine in (self._reader, self._engine):
            if engine is not None:
                engine.dispose()
        self._reader = self._engine = None

    def add_run(self, run: StoredRun) -> None:
        """Add a new run."""
        values = {c.name: getattr(run, c.name) for c in RUN_COLUMNS}
        values["settings"] = json.dumps(run.settings)
        with guarded(self.address), self.engine.begin() as connection:
            connection.execute(RUN.insert().values(values))

    def set_run(self, run_id: str, *, patience: float | None = None, **values: Any) -> None:
        """Change columns of a run, unless this process has lost the run to another one.

        `patience` is how many seconds to wait for a server that went away.
        """
        if "settings" in values:
            values["settings"] = json.dumps(values["settings"])
        query = update(RUN).where(RUN.c.id == run_id).values(**values)
        lease = self.leases.get(run_id)
        if lease:
            query = query.where(RUN.c.owner == lease.owner)

        def change(connection: Connection, _: bool) -> None:
            if not connection.execute(query).rowcount and lease:
                lease.lose()

        self._change(change, patience)

    def runs(self) -> list[StoredRun]:
        """List the runs, newest first, except damaged ones."""
        return self.all_runs()[0]

    def all_runs(self) -> tuple[list[StoredRun], tuple[DamagedRun, ...]]:
        """List the runs, newest first, and those that cannot be read."""
        if not self.exists:
            return [], ()
        query = select(*RUN_COLUMNS).order_by(RUN.c.created.desc(), RUN.c.id)
        with guarded(self.address), self.engine.connect() as connection:
            rows = [{**row} for row in connection.execute(query).mappings()]
        runs: list[StoredRun] = []
        _, damaged = sound(rows, itemgetter("id"), lambda row: runs.append(StoredRun.of(row)))
        return runs, damaged

    def find(self, name: str) -> StoredRun:
        """Find a run by its id, an unambiguous prefix of it, or `latest`."""
        query = select(*RUN_COLUMNS).where(RUN.c.id == self.find_id(name))
        with guarded(self.address), self.engine.connect() as connection:
            return StoredRun.of({**connection.execute(query).mappings().one()})

    def find_id(self, name: str) -> str:
        """Find the id of a run, whose other cells may be damaged."""
        runs: list[str] = []
        if self.exists:
            query = select(RUN.c.id).order_by(RUN.c.created.desc(), RUN.c.id)
            with guarded(self.address), self.engine.connect() as connection:
                runs = [str(id_) for id_ in connection.scalars(query)]
        if name == "latest" and runs:
            return runs[0]
        found = [r for r in runs if r == name] or [r for r in runs if r.startswith(name)]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(found[:5])
            more = ", …" if len(found) > 5 else ""
            raise UsageError(f"{name!r} is ambiguous: it matches {ids}{more}.")
        where = f"in the store {shown(self.address)}"
        if not runs:
            raise UsageError(f"There is no run {where} yet; 'pennyweight run SUITE' creates one.")
        raise UsageError(f"There is no run {name!r} {where}; 'pennyweight runs' lists them.")

    def write(self, records: Sequence[Row], calls: Sequence[Row]) -> None:
        """Write records and calls in one transaction. A record replaces the one with the same key.

        An error replaces only an error. If another process has taken the run, only the calls are
        written: they were paid for.
        """
        self._write(RECORD, RECORD_COLUMNS, records, calls)

    def write_judgments(self, judgments: Sequence[Row], calls: Sequence[Row]) -> None:
        """Write judgments and calls in one transaction. The same judgment is replaced."""
        self._write(JUDGMENT, JUDGMENT_COLUMNS, judgments, calls)

    def _write(
        self, table: Table, columns: Sequence[str], rows: Sequence[Row], calls: Sequence[Row]
    ) -> None:
        tried = False

        def change(connection: Connection, again: bool) -> None:
            nonlocal tried
            tried, paid = tried or again, (CALL, CALL_COLUMNS, calls)
            insert_fenced(self, connection, (table, columns, rows), paid, again=tried)

        try:
            self._change(change)
        except FencedError:
            self._change(change)  # the calls alone: they were paid for

    def _change(
        self, change: Callable[[Connection, bool], None], patience: float | None = None
    ) -> None:
        """Make a change in one transaction, waiting for a server that restarts."""

        def once(again: bool) -> None:
            with guarded(self.address), self.engine.begin() as connection:
                change(connection, again)

        self.patiently(once, patience)

    def patiently(self, ask: Callable[[bool], T], patience: float | None = None) -> T:
        """Return an answer of the database; one that restarts is asked `again`."""
        engine, end = self.engine, None
        while True:
            if self._file != file_of(engine):  # SQLite would write to the deleted file
                raise StoreError(
                    f"The store {shown(self.address)} was deleted or replaced while it was in use. "
                    "Restore the file, or its records are lost."
                )
            try:
                return ask(end is not None)
            except StoreError as error:
                end = end or time.monotonic() + (PATIENCE if patience is None else patience)
                if not error.transient or time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def update_tasks(self, run_id: str, tasks: Iterable[Correction]) -> None:
        """Update the values that records repeat from their tasks, in one transaction."""
        c = RECORD.c
        with guarded(self.address), self.engine.begin() as connection:
            for task_id, values in tasks:
                query = update(RECORD).where(c.run == run_id, c.task_id == task_id)
                connection.execute(query.values(**values))

    def task_values(self, run_id: str, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
        """Yield each distinct pair of a task and the values that records repeat from it."""
        chosen = [RECORD.c.task_id, *(RECORD.c[name] for name in columns)]
        query = select(*chosen).where(RECORD.c.run == run_id).distinct()
        with guarded(self.address), self.engine.connect() as connection:
            for row in connection.execution_options(yield_per=READ_BATCH).execute(query):
                yield row[0], tuple(row[1:])

    def judgments(self, run_id: str, columns: Container[str] | None = None) -> pl.DataFrame:
        """Read the judgments of a run, or some of their columns, in a fixed order."""
        c = JUDGMENT.c
        chosen = [column for column in c if columns is None or column.name in columns]
        order = self._order(c.attempt, c.task_id, c.subject, c.tier, c.judge, c.at)
        query = select(*chosen).where(c.run == run_id).order_by(*order)
        with guarded(self.address), self.engine.connect() as connection:
            rows = connection.execution_options(yield_per=READ_BATCH).execute(query)
            parts = [frame(JUDGMENT, chosen, part) for part in rows.partitions()]
        return pl.concat([frame(JUDGMENT, chosen, ()), *parts])

    def attempts(self, run_id: str) -> dict[AttemptKey, tuple[str, str]]:
        """Return the fingerprint and status of each attempt of a run that has a record."""
        c = RECORD.c
        query = select(c.subject, c.tier, c.task_id, c.attempt, c.fingerprint, c.status)
        with guarded(self.address), self.engine.connect() as connection:
            rows = connection.execute(query.where(c.run == run_id))
            return {AttemptKey(run_id, *r[:4]): (r[4], r[5]) for r in rows}

    def spent(self, run_id: str) -> Spending:
        """Sum the ledger of a run. The cost of `unpriced` calls is not known."""
        c = CALL.c
        is_call = c.kind != RESERVED
        unknown = c.cost_usd.is_(None) & ((c.status == "ok") | c.held_tokens.is_not(None))
        query = select(
            func.count().filter(is_call).label("calls"),
            func.sum(c.cost_usd).label("usd"),
            func.sum(c.prompt_tokens).label("prompt_tokens"),
            func.sum(c.completion_tokens).label("completion_tokens"),
            func.sum(c.held_usd).label("held_usd"),
            func.sum(c.held_tokens).label("held_tokens"),
            func.count().filter(is_call & unknown).label("unpriced"),
        ).where(c.run == run_id)
        with guarded(self.address), self.engine.connect() as connection:
            row = connection.execute(query).mappings().one()
            sums = {n: v if v is None or n.endswith("usd") else int(v) for n, v in row.items()}
            if sums["held_usd"] is not None:  # a sum of reservations that were taken back
                sums["held_usd"] = round(sums["held_usd"], 12) or None
            return cast("Spending", {**sums, "held_tokens": sums["held_tokens"] or None})

    def statuses(self, run_id: str) -> dict[str, int]:
        """Count the records of a run by status."""
        query = select(RECORD.c.status, func.count()).where(RECORD.c.run == run_id)
        with guarded(self.address), self.engine.connect() as connection:
            return {r[0]: r[1] for r in connection.execute(query.group_by(RECORD.c.status))}

    def records(
        self, run_id: str, columns: Container[str] | None = None, tasks: Collection[str] = ()
    ) -> Iterator[pl.DataFrame]:
        """Read the records of a run, or of some of its tasks, in the order of the index."""
        chosen = [c for c in RECORD.c if columns is None or c.name in columns]
        order = self._order(*RECORD.primary_key)
        some = [RECORD.c.task_id.in_(tasks)] if tasks else []
        query = select(*chosen).where(RECORD.c.run == run_id, *some).order_by(*order)
        with guarded(self.address), self.engine.connect() as connection:
            rows = connection.execution_options(yield_per=READ_BATCH).execute(query)
            assert rows.cursor is not None
            try:
                part: Sequence[Any] = rows.fetchmany(READ_BATCH)  # includes what was buffered
                while part:
                    yield frame(RECORD, chosen, part)
                    # past SQLAlchemy, because creating a Row for each record is slow
                    part = rows.cursor.fetchmany(READ_BATCH) if rows.cursor else ()
            finally:
                rows.close()

    def _order(self, *columns: Column[Any]) -> list[ColumnElement[Any]]:
        """Order text by code points on every server, as SQLite does."""
        lite = self.engine.dialect.name == "sqlite"
        return [c if lite or c.type.python_type is not str else c.collate("C") for c in columns]

    def remove(self, run_id: str) -> None:
        """Delete a run with everything that belongs to it."""
        remove_run(self, run_id)


def now() -> float:
    """Return the time in Unix seconds, as records store it."""
    return time.time()
