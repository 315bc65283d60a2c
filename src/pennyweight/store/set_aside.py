"""Records set aside: a suite that changed no longer asks for them, so they no longer count.

They stay in the store, since they were paid for, and come back when the suite asks for them again.
They lie in a table of their own, so that nothing that reads records has to know of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select, text

from pennyweight.store.connection import guarded
from pennyweight.store.tables import ASIDE, MEASURED, RECORD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pennyweight.store.store import Store

    Key = tuple[str, str, str, int]
    """Subject, tier, task and number of an attempt."""
    Mark = tuple[Key, str]
    """An attempt, and the fingerprint of what was sent."""

_KEY = ("subject", "tier", "task_id", "attempt")
_COLUMNS = ", ".join(c.name for c in RECORD.c)
_AT = " AND ".join(f"{name} = :{name}" for name in ("run", *_KEY))
_AT_MARK = f"{_AT} AND fingerprint = :fingerprint"


def set_aside(store: Store, run: str) -> dict[Mark, str]:
    """Say which records of a run are set aside, and the status of each."""
    c = ASIDE.c
    query = select(*(c[name] for name in _KEY), c.fingerprint, c.status).where(c.run == run)
    with guarded(store.address), store.engine.connect() as connection:
        rows = connection.execute(query)
        return {((r[0], r[1], r[2], r[3]), r[4]): r[5] for r in rows}


def exchange(store: Store, run: str, away: Sequence[Key], back: Sequence[Mark]) -> None:
    """Set records aside and bring others back, all or nothing. What was measured of them goes."""
    gone = [_values(run, key) for key in away]
    come = [{**_values(run, key), "fingerprint": mark} for key, mark in back]
    with guarded(store.address), store.engine.begin() as connection:
        for table, other, at, rows in ((RECORD, ASIDE, _AT, gone), (ASIDE, RECORD, _AT_MARK, come)):
            if rows:  # only known names are in it, every value is bound
                connection.execute(
                    text(
                        f"INSERT INTO {other.name} ({_COLUMNS}) SELECT {_COLUMNS} "  # noqa: S608
                        f"FROM {table.name} WHERE {at} ON CONFLICT DO NOTHING"
                    ),
                    rows,
                )
                connection.execute(text(f"DELETE FROM {table.name} WHERE {at}"), rows)  # noqa: S608
        if gone:
            connection.execute(text(f"DELETE FROM {MEASURED.name} WHERE {_AT}"), gone)  # noqa: S608


def _values(run: str, key: Key) -> dict[str, Any]:
    return {"run": run, **dict(zip(_KEY, key, strict=True))}
