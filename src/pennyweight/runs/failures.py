"""Why attempts of a run failed: how many of each kind, with one example."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from pennyweight.store.store import Store

COLUMNS = frozenset({"task_id", "status", "error", "error_kind"})


@dataclass(frozen=True, slots=True)
class Failure:
    """Attempts that failed in the same way; `task` and `message` are of the first one."""

    kind: str
    count: int
    task: str
    message: str


def failures(run: str, store: Store) -> list[Failure]:
    """List the kinds of errors of a run, the most frequent first."""
    found: dict[str, Failure] = {}
    for frame in store.records(run, COLUMNS):
        failed = frame.filter(pl.col("status") == "error").select("error_kind", "task_id", "error")
        for kind, task, message in failed.iter_rows():
            kind = kind or "error"  # noqa: PLW2901 - a record of an older store has none
            one = found.get(kind) or Failure(kind, 0, task, message or "")
            found[kind] = replace(one, count=one.count + 1)
    return sorted(found.values(), key=lambda one: (-one.count, one.kind))
