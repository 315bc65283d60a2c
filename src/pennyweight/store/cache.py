"""Cached results of runs: measures for filters, digests for pages, verdicts of policies.

All of it can be computed again from the records.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import Any

from sqlalchemy import BindParameter, Connection, Table, bindparam, func, select

from pennyweight.errors import DamagedError
from pennyweight.store.bulk_insert import insert
from pennyweight.store.cells import SETTINGS, DamagedRun, checked, json_cell, sound
from pennyweight.store.connection import guarded
from pennyweight.store.read_connection import Row, fetch
from pennyweight.store.store import RUN_COLUMNS, Store, StoredRun, now
from pennyweight.store.tables import (
    CALL,
    DECISION,
    DIGEST,
    LABEL,
    MEASURED,
    RECORD,
    REMARK,
    RUN,
    VERDICT,
)

SQLITE_BATCH = 5_000
"""Rows per transaction in SQLite, small enough that a run does not wait long for it."""
POSTGRES_BATCH = 50_000
"""Rows per transaction in PostgreSQL, where writers do not block each other."""

_BRIEF = tuple(c for c in DIGEST.c if c.name not in {"run", "data"})
_RUN: BindParameter[str] = bindparam("run")
_NEWEST = select(func.max(CALL.c.id)).where(CALL.c.run == RUN.c.id).scalar_subquery()
_SPOKEN = select(func.max(VERDICT.c.at)).where(VERDICT.c.run == RUN.c.id).scalar_subquery()
_STAMP = select(DIGEST.c.stamp).where(DIGEST.c.run == RUN.c.id).scalar_subquery()
_SAID = (
    select(func.max(REMARK.c.id))
    .where(REMARK.c.run == RUN.c.id, REMARK.c.task_id.is_(None))
    .scalar_subquery()
)
_LABELS = (
    select(LABEL.c[name]).where(LABEL.c.run == RUN.c.id).scalar_subquery()
    for name in ("title", "archived")
)
_DECISIONS = (  # each saved verdict has another time, so that their sum changes with any of them
    select(what).where(DECISION.c.run == RUN.c.id).scalar_subquery()
    for what in (func.count(), func.sum(DECISION.c.at))
)
_ABOUT = (*_LABELS, *_DECISIONS)
_STATE = select(*RUN_COLUMNS, _NEWEST, _SPOKEN, _STAMP, _SAID, *_ABOUT).where(RUN.c.id == _RUN)
_DATA = select(DIGEST.c.data).where(DIGEST.c.run == _RUN)
_LISTED = (
    select(*(c for c in RUN_COLUMNS if c.name not in {"text", "path", "data_hash"}), *_BRIEF)
    .select_from(RUN.outerjoin(DIGEST, DIGEST.c.run == RUN.c.id))
    .order_by(RUN.c.created.desc(), RUN.c.id)
)
_DECIDED = (
    select(
        *(DECISION.c.run, DECISION.c.policy, DECISION.c.side, DECISION.c.verdict),
        DECISION.c.stamp == DIGEST.c.stamp,
        DECISION.c.at,
        DECISION.c.stamp,
    )
    .select_from(DECISION.outerjoin(DIGEST, DIGEST.c.run == DECISION.c.run))
    .order_by(DECISION.c.run, DECISION.c.policy, DECISION.c.side)
)
_DECIDED_OF = _DECIDED.where(DECISION.c.run == _RUN)


@dataclass(frozen=True, slots=True)
class RunState:
    """The current state of a run, and which state its digest was computed from."""

    run: StoredRun
    stamp: str
    digest_stamp: str | None
    newest_remark: int | None
    decided: bool
    """Whether verdicts of policies on it are stored."""
    title: str | None
    """The title that somebody gave it."""
    row: Row = field(repr=False)
    """What was read: it changes with the run, its digest, its notes, its label, its verdicts."""

    @property
    def settled(self) -> bool:
        """Whether the run is done and its digest is of this state."""
        return self.run.status == "done" and self.digest_stamp == self.stamp


def state(store: Store, name: str) -> RunState | None:
    """Find a run by its full id and return it with its stamp, in one query."""
    if not store.exists:
        return None
    rows = fetch(store, _STATE, {"run": name})
    if not rows:
        return None
    return _state(rows[0])


@lru_cache(64)
def _state(row: Row) -> RunState:
    """Read the state of a run; most pages ask for one that was read before."""
    run = StoredRun.of(dict(zip((c.name for c in RUN_COLUMNS), row, strict=False)))
    newest, spoken, digest_stamp, remark = row[len(RUN_COLUMNS) : len(RUN_COLUMNS) + 4]
    first, last = _stamped(run.status, run.ended, run.settings)
    stamp = f"{first}{json.dumps([newest, spoken])[1:-1]}{last}"
    title = row[len(RUN_COLUMNS) + 4]
    title = title if isinstance(title, str) and title else None
    return RunState(run, stamp, digest_stamp, remark, bool(row[-2]), title, row)


def _stamped(status: str, ended: float | None, settings: Mapping[str, Any]) -> tuple[str, str]:
    """Return the start and the end of a stamp; the newest call and verdict are between them."""
    rules = [settings.get(n) for n in ("answer", "match", "confidence", "judge")]
    rules += [settings["scored"]] if "scored" in settings else []
    return f"{json.dumps([status, ended])[:-1]}, ", f", {json.dumps(rules, sort_keys=True)}]"


def stamp(store: Store, run: StoredRun) -> str:
    """Return the stamp of a run, which changes with its calls, verdicts and rules."""
    found = state(store, run.id)
    return found.stamp if found else ""


def _check_listed(row: Row) -> None:
    """Raise DamagedError for a row of `listed` whose run is damaged."""
    cells = dict(zip(LISTED, row, strict=True))
    checked(RUN, {name: cells[name] for name in LISTED if name in RUN.c})
    json_cell(cells["settings"], SETTINGS, f"settings of run {cells['id']}")


@lru_cache(4)
def readable(rows: tuple[Row, ...]) -> tuple[tuple[Row, ...], tuple[DamagedRun, ...]]:
    """Separate the rows of `listed` from damaged runs; damaged digests are left out."""
    good, bad = sound(rows, itemgetter(0), _check_listed)
    return tuple(map(_without_damage, good)), bad


def _without_damage(row: Row) -> Row:
    digest = {n: v for n, v in zip(LISTED, row, strict=True) if n not in RUN.c}
    try:
        checked(DIGEST, {name: value for name, value in digest.items() if value is not None})
    except DamagedError:
        return tuple(None if n in digest else v for n, v in zip(LISTED, row, strict=True))
    return row


LISTED = tuple(_LISTED.selected_columns.keys())
"""The columns of the rows that `listed` returns."""


def listed(store: Store) -> tuple[Row, ...]:
    """List the runs, newest first, each with its digest, without long texts."""
    if not store.exists:
        return ()
    return tuple(fetch(store, _LISTED))


@lru_cache(4)
def outdated(rows: tuple[Row, ...]) -> frozenset[str]:
    """Return the runs that ended, or whose rules changed, after their digest was computed.

    It works on readable rows of `listed`, so that a list does not need a query for each run.
    """
    names = ("id", "status", "ended", "settings", "stamp")
    places = [LISTED.index(name) for name in names]
    found = set()
    for row in rows:
        run, status, ended, settings, stamp = (row[at] for at in places)
        if stamp:
            first, last = _stamped(status, ended, json.loads(settings))
            if not (stamp.startswith(first) and stamp.endswith(last)):
                found.add(run)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """The verdict of a policy on a side of a run; `current` if it is on what the digest is of."""

    run: str
    policy: str
    side: str
    verdict: str
    current: bool
    at: float = 0.0
    """When it was stored, in Unix seconds."""
    stamp: str = ""
    """The state of the run that it is on."""


def policy_verdicts(store: Store, run: str | None = None) -> tuple[PolicyVerdict, ...]:
    """Read the stored verdicts of policies, on one run or on all."""
    if not store.exists:
        return ()
    query = _DECIDED if run is None else _DECIDED_OF
    rows = fetch(store, query, {"run": run})
    return tuple(
        PolicyVerdict(run, policy, side, verdict, bool(current), at, stamp)
        for run, policy, side, verdict, current, at, stamp in rows
    )


def save_measured(
    store: Store, run: str, names: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
    """Store measures, given as rows of the named columns. Existing rows are replaced."""
    columns = ("run", *names)
    lite = store.engine.dialect.name == "sqlite"
    size = SQLITE_BATCH if lite else POSTGRES_BATCH
    for start in range(0, len(rows), size):
        part = [(run, *row) for row in rows[start : start + size]]
        with guarded(store.address), store.engine.begin() as connection:
            if lite or len(part) < SQLITE_BATCH:
                insert(connection, MEASURED, columns, part)
            else:
                _copy(connection, columns, part)


def _copy(connection: Connection, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write many rows to PostgreSQL with COPY."""
    names = ", ".join(columns)
    key = [c.name for c in MEASURED.primary_key]
    sets = ", ".join(f"{n} = excluded.{n}" for n in columns if n not in key)
    connection.exec_driver_sql(
        f"CREATE TEMPORARY TABLE pennyweight_incoming (LIKE {MEASURED.name}) ON COMMIT DROP"
    )
    cursor = connection.connection.cursor()
    with cursor.copy(f"COPY pennyweight_incoming ({names}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    cursor.close()
    connection.exec_driver_sql(
        f"INSERT INTO {MEASURED.name} ({names}) SELECT {names} FROM pennyweight_incoming "  # noqa: S608
        f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {sets}"
    )


def analyze(store: Store) -> None:
    """Update PostgreSQL's statistics after many rows were written.

    Without those of a new run's records, it reads and sorts all of them to find a frequent word.
    """
    if store.engine.dialect.name == "sqlite":
        return
    with guarded(store.address), store.engine.begin() as connection:
        connection.exec_driver_sql(f"ANALYZE {MEASURED.name}, {RECORD.name}")


def save_digest(store: Store, run: str, **values: Any) -> None:
    """Store the digest of a run."""
    _save(store, DIGEST, {**values, "run": run})


def _save(store: Store, table: Table, values: Mapping[str, Any]) -> None:
    with guarded(store.address), store.engine.begin() as connection:
        insert(connection, table, tuple(values), [tuple(values.values())])


def digest(store: Store, run: str) -> str | None:
    """Read the digest of a run."""
    rows = fetch(store, _DATA, {"run": run})
    return str(rows[0][0]) if rows else None


def save_decision(
    store: Store, run: str, *, policy: str, side: str, verdict: str, stamp: str
) -> None:
    """Store the verdict of a policy on a side of a run, with the stamp of the run's state."""
    values = {"run": run, "policy": policy, "side": side, "verdict": verdict, "stamp": stamp}
    _save(store, DECISION, {**values, "at": now()})
