"""The turns of a shared run: when its workers may send their next requests and tokens."""

from __future__ import annotations

from sqlalchemy import insert, select, update

from pennyweight.store.lease import shared_clock
from pennyweight.store.shared_runs import locked
from pennyweight.store.store import Store
from pennyweight.store.tables import TURN


def take_turns(store: Store, run_id: str, kind: str, amount: float, rate: float) -> float:
    """Take the next turns of a kind, at a rate a second; return in how many seconds they begin."""
    c = TURN.c
    own = c.run == run_id, c.kind == kind
    with locked(store, run_id) as connection:
        now: float = connection.scalar(select(shared_clock(store.engine))) or 0.0
        before: float | None = connection.scalar(select(c.next).where(*own))
        start = now if before is None else max(now, before)
        after = start + amount / rate
        if before is None:
            connection.execute(insert(TURN).values(run=run_id, kind=kind, next=after))
        else:
            connection.execute(update(TURN).where(*own).values(next=after))
        return start - now
