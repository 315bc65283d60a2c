"""Sums of the ledger: the cost of judging, the largest calls; and the latest judgments."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from sqlalchemy import bindparam, case, func, select, update

from pennyweight.record import KEY, KEY_IN_RUN, AttemptKey
from pennyweight.store.connection import guarded
from pennyweight.store.store import READ_BATCH, RESERVED, Store, now
from pennyweight.store.tables import CALL, JUDGMENT

_NUMBERS = {"attempt": pl.Int64, "judge_cost_usd": pl.Float64}
_SCHEMA = {**dict.fromkeys(KEY_IN_RUN, pl.String), **_NUMBERS}


def judging_costs(store: Store, run: str) -> pl.DataFrame:
    """Sum the judging cost of each attempt; null if the cost of a reply is not known."""
    c = CALL.c
    unknown = func.count().filter(c.status == "ok", c.cost_usd.is_(None))
    query = (
        select(*(c[name] for name in KEY_IN_RUN), func.sum(c.cost_usd), unknown)
        .where(c.run == run, c.kind == "judge")
        .group_by(*(c[name] for name in KEY_IN_RUN))
    )
    parts = [pl.DataFrame(schema=_SCHEMA)]
    with guarded(store.address), store.engine.connect() as connection:
        for part in connection.execution_options(yield_per=READ_BATCH).execute(query).partitions():
            rows = [(*row[:4], None if row[5] else row[4]) for row in part]
            parts.append(pl.DataFrame(rows, schema=_SCHEMA, orient="row"))
    return pl.concat(parts)


Payer = tuple[str, str]
"""The kind of a call (attempt or judge), and the subject or the judge's model that causes it."""


def largest_calls(store: Store, run: str) -> dict[Payer, tuple[float | None, int | None]]:
    """Return the cost and the tokens of the largest call of each payer in a run."""
    c = CALL.c
    name = case((c.kind == "attempt", c.subject), else_=c.model)
    tokens = func.max(c.prompt_tokens + c.completion_tokens)
    query = (
        select(c.kind, name, func.max(c.cost_usd), tokens)
        .where(c.run == run, c.kind != RESERVED, c.prompt_tokens.is_not(None))
        .group_by(c.kind, name)
    )
    with guarded(store.address), store.engine.connect() as connection:
        return {(kind, who): (usd, used) for kind, who, usd, used in connection.execute(query)}


def make_latest(store: Store, judgments: Sequence[tuple[AttemptKey, str, str]]) -> None:
    """Make each of these judgments the latest of its judge."""
    c = JUDGMENT.c
    names = (*KEY, "judge", "fingerprint")
    same = [c[name] == bindparam(f"of_{name}") for name in names]
    query = update(JUDGMENT).where(*same).values(at=now())
    values = [
        {f"of_{n}": v for n, v in zip(names, (*key, *rest), strict=True)}
        for key, *rest in judgments
    ]
    if values:
        with guarded(store.address), store.engine.begin() as connection:
            connection.execute(query, values)
