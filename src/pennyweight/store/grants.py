"""Money and tokens that the workers of a shared run may spend, granted out of its limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from pennyweight.store.bulk_insert import insert
from pennyweight.store.shared_runs import living, locked
from pennyweight.store.store import CALL_COLUMNS, RESERVED, Store
from pennyweight.store.tables import CALL


@dataclass(frozen=True, slots=True)
class Granted:
    """What a worker may spend in addition, and what the ledger holds for it; money and tokens."""

    amounts: tuple[float, float]
    held: tuple[float, float]
    is_enough: bool
    others: bool
    """Whether the ledger holds something for other workers that live: it may come back."""
    spent: tuple[float, float]
    reserved: tuple[float, float]
    """What the ledger has, and holds, for all of them now."""


PORTIONS = 64
"""A worker gets at most this part of what is left at once: a killed one leaves no more unspent."""


def grant(
    store: Store,
    run_id: str,
    worker: str,
    row: Callable[[str, float, int, str], tuple[Any, ...]],
    limits: Sequence[float | None],
    keep: Sequence[float],
    bare: Sequence[float],
    wants: Sequence[tuple[float, float]],
) -> Granted:
    """Grant a worker money and tokens for its next calls, if the limits of the run allow it.

    Each argument has an amount of money and one of tokens. `keep` is what the worker still needs of
    what the ledger holds for it, or `bare` if it cannot get more. `wants` is what it needs at least
    and what it would like to have. `row` makes a row of the ledger. A question that is repeated,
    because its answer got lost, is granted once.
    """
    with locked(store, run_id) as connection:
        others = [id_ for id_, _ in living(connection, store, run_id, worker) if id_ != worker]
        spent, reserved, held, open_ = _ledger(connection, run_id, worker, others)
        give, enough = [0.0, 0.0], True
        for i, (need, like) in enumerate(wants):
            limit = limits[i]
            if limit is not None:
                room = limit - (spent[i] + reserved[i] - held[i] + keep[i])
                enough = enough and room + 1e-12 >= need
                give[i] = max(need, min(like, room / PORTIONS))
        new = [keep[i] + give[i] for i in (0, 1)] if enough else [*bare]
        new[1] = float(round(new[1]))
        usd, tokens = new[0] - held[0], round(new[1] - held[1])
        if abs(usd) > 1e-12 or tokens:
            insert(connection, CALL, CALL_COLUMNS, [row(run_id, usd, tokens, worker)])
        awaited = any(amount > 1e-9 for amount in open_)
        after = (reserved[0] + usd, reserved[1] + tokens)
        return Granted((give[0], give[1]), (new[0], new[1]), enough, awaited, spent, after)


_Sums = tuple[float, float]


def _ledger(
    connection: Connection, run_id: str, worker: str, others: Sequence[str]
) -> tuple[_Sums, _Sums, _Sums, _Sums]:
    """Sum what a run has spent, what is held, and how much of that for a worker and for others."""
    c = CALL.c
    is_own = (c.kind == RESERVED) & (c.model == worker)
    is_open = (c.kind == RESERVED) & c.model.in_(others)
    sums = (
        func.sum(c.cost_usd),
        func.sum(func.coalesce(c.prompt_tokens, 0) + func.coalesce(c.completion_tokens, 0)),
        func.sum(c.held_usd),
        func.sum(c.held_tokens),
        func.sum(c.held_usd).filter(is_own),
        func.sum(c.held_tokens).filter(is_own),
        func.sum(c.held_usd).filter(is_open),
        func.sum(c.held_tokens).filter(is_open),
    )
    found = connection.execute(select(*sums).where(c.run == run_id)).one()
    values = [float(value or 0) for value in found]
    spent, reserved, own, open_ = zip(values[::2], values[1::2], strict=True)
    return spent, reserved, own, open_
