"""Replies to prompts that nobody wrote a suite for and that have no target: they are only shown."""

from __future__ import annotations

from dataclasses import dataclass, fields

import polars as pl

from pennyweight.store.store import Store, StoredRun
from pennyweight.suite.implied import is_implied


@dataclass(frozen=True, slots=True)
class UnscoredReply:
    """What a model replied to a task that has no right answer."""

    task: str
    subject: str
    tier: str
    attempt: int
    input: str
    response: str | None
    error: str | None
    latency_ms: float | None
    cost_usd: float | None


def replies(run: StoredRun, store: Store) -> list[UnscoredReply]:
    """Return the replies of a run of which nothing can be scored: prompts without a target."""
    if not is_implied(run.text):
        return []
    names = {"task_id": "task", **{f.name: f.name for f in fields(UnscoredReply)[1:]}}
    rows: list[UnscoredReply] = []
    for frame in store.records(run.id, {*names, "target"}):
        if frame["target"].count():
            return []
        found = frame.select(pl.col(n).alias(as_) for n, as_ in names.items())
        rows += [UnscoredReply(**row) for row in found.iter_rows(named=True)]
    return rows
