"""The titles that people give runs, and the runs that lists leave out."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from pennyweight.store.bulk_insert import insert
from pennyweight.store.connection import guarded
from pennyweight.store.read_connection import fetch
from pennyweight.store.store import Store
from pennyweight.store.tables import LABEL


@dataclass(frozen=True, slots=True)
class RunLabel:
    """The title of a run, if it has one, and whether it is archived."""

    title: str | None = None
    archived: bool = False


NO_LABEL = RunLabel()
_ALL = select(LABEL.c.run, LABEL.c.title, LABEL.c.archived).order_by(LABEL.c.run)


def labels(store: Store) -> dict[str, RunLabel]:
    """Read the labels of all runs that have one."""
    if not store.exists:
        return {}
    return {str(r[0]): RunLabel(_text(r[1]), bool(r[2])) for r in fetch(store, _ALL)}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def save_label(store: Store, run: str, label: RunLabel) -> None:
    """Store the label of a run, in place of the one before."""
    row = (run, label.title, label.archived)
    with guarded(store.address), store.engine.begin() as connection:
        insert(connection, LABEL, ("run", "title", "archived"), [row])
