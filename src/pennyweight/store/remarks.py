"""What people say about records and runs, with author and time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, insert, select

from pennyweight.record import KEY, KEY_IN_RUN, AttemptKey
from pennyweight.store.cells import checked, json_cell
from pennyweight.store.connection import guarded
from pennyweight.store.read_connection import fetch
from pennyweight.store.store import Store, now
from pennyweight.store.tables import REMARK


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark about a record or a run. `tags` are all tags of the run from then on."""

    id: int
    who: str
    at: float
    verdict: str | None
    note: str | None
    tags: tuple[str, ...] | None


def add_remark(
    store: Store,
    about: str | AttemptKey,
    *,
    who: str,
    verdict: str | None = None,
    note: str | None = None,
    tags: Sequence[str] | None = None,
    draw: str | None = None,
) -> None:
    """Store what a person says about a run, given by its id, or about a record."""
    values = {
        **_place(about),
        "who": who,
        "verdict": verdict,
        "note": note,
        "tags": None if tags is None else json.dumps(list(tags)),
        "at": now(),
        "draw": draw,
    }
    with guarded(store.address), store.engine.begin() as connection:
        connection.execute(insert(REMARK).values(values))


_OF_RUNS = (
    select(REMARK.c.run, REMARK.c.note, REMARK.c.tags)
    .where(REMARK.c.task_id.is_(None))
    .order_by(REMARK.c.id)
)
_OF_ONE = select(REMARK).where(REMARK.c.run == bindparam("run")).order_by(REMARK.c.id.desc())
_OF_RUN = _OF_ONE.where(REMARK.c.task_id.is_(None))
_OF_RECORD = _OF_ONE.where(*(REMARK.c[n] == bindparam(n) for n in KEY_IN_RUN))


def _place(about: str | AttemptKey) -> dict[str, Any]:
    return {"run": about} if isinstance(about, str) else about._asdict()


def of_runs(store: Store) -> tuple[tuple[str, str | None, str | None], ...]:
    """Read the run, note and tags (as JSON) of every remark about a run; the oldest first."""
    return tuple((r[0], r[1], r[2]) for r in fetch(store, _OF_RUNS))


@dataclass(frozen=True, slots=True)
class RecordVerdict:
    """The latest verdict of a person about a record; `draws` are how queues chose the record."""

    key: AttemptKey
    who: str
    verdict: str
    note: str | None
    draws: frozenset[str]
    at: float


_VERDICTS = (
    select(*(REMARK.c[n] for n in (*KEY, "who", "verdict", "note", "draw", "at")))
    .where(REMARK.c.run == bindparam("run"), REMARK.c.verdict.is_not(None))
    .order_by(REMARK.c.id)
)


def record_verdicts(store: Store, run: str) -> list[RecordVerdict]:
    """Read the latest verdict of each person about each record of a run."""
    latest: dict[tuple[AttemptKey, str], RecordVerdict] = {}
    for row in fetch(store, _VERDICTS, {"run": run}):
        key = AttemptKey(*row[: len(KEY)])
        who, verdict, note, draw, at = row[len(KEY) :]
        before = latest.pop((key, who), None)
        draws = (before.draws if before else frozenset()) | ({draw} if draw else set())
        latest[key, who] = RecordVerdict(key, who, verdict, note, draws, at)
    return list(latest.values())


def remarks(store: Store, about: str | AttemptKey) -> list[Remark]:
    """Read the remarks about a run, given by its id, or about a record; the newest first."""
    names = REMARK.c.keys()
    query = _OF_RUN if isinstance(about, str) else _OF_RECORD
    found = fetch(store, query, _place(about))
    rows = (checked(REMARK, dict(zip(names, row, strict=True))) for row in found)
    return [
        Remark(
            **{name: r[name] for name in ("id", "who", "at", "verdict", "note")},
            tags=tuple(json_cell(r["tags"], [str], "tags of a remark")) if r["tags"] else None,
        )
        for r in rows
    ]
