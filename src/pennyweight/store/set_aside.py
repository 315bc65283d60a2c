"""Records set aside: a changed suite no longer asks for them, so they no longer count.

They stay in the store, because they were paid for, and return when the suite asks for them again.
They have a table of their own, so that code that reads records does not need to know about them.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select, text

from pennyweight.record import KEY, AttemptKey
from pennyweight.store.connection import guarded
from pennyweight.store.store import Store
from pennyweight.store.tables import ASIDE, MEASURED, RECORD

Mark = tuple[AttemptKey, str]
"""An attempt, and the fingerprint of what was sent."""

_COLUMNS = ", ".join(c.name for c in RECORD.c)
_AT = " AND ".join(f"{name} = :{name}" for name in KEY)
_AT_MARK = f"{_AT} AND fingerprint = :fingerprint"


def set_aside(store: Store, run: str) -> dict[Mark, str]:
    """Return which records of a run are set aside, with the status of each."""
    c = ASIDE.c
    query = select(*(c[name] for name in KEY), c.fingerprint, c.status).where(c.run == run)
    with guarded(store.address), store.engine.connect() as connection:
        rows = connection.execute(query)
        return {(AttemptKey(*r[:5]), r[5]): r[6] for r in rows}


def exchange(store: Store, away: Sequence[AttemptKey], back: Sequence[Mark]) -> None:
    """Set records aside and bring others back, in one transaction. Their measures are deleted."""
    gone = [key._asdict() for key in away]
    come = [{**key._asdict(), "fingerprint": mark} for key, mark in back]
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
