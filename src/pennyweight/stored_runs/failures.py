"""The errors of a run by kind, each with a count and an example."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from pennyweight.store.store import Store

COLUMNS = frozenset({"task_id", "status", "error", "error_kind"})


@dataclass(frozen=True, slots=True)
class Failure:
    """Attempts with the same kind of error; `task` and `message` are those of the first."""

    kind: str
    count: int
    task: str
    message: str


def failures(run: str, store: Store) -> list[Failure]:
    """List the kinds of errors of a run, the most frequent first."""
    kinds: dict[str, Failure] = {}
    for frame in store.records(run, COLUMNS):
        failed = frame.filter(pl.col("status") == "error").select("error_kind", "task_id", "error")
        for kind, task, message in failed.iter_rows():
            kind = kind or "error"  # noqa: PLW2901 - a record of an older store has none
            failure = kinds.get(kind) or Failure(kind, 0, task, message or "")
            kinds[kind] = replace(failure, count=failure.count + 1)
    return sorted(kinds.values(), key=lambda failure: (-failure.count, failure.kind))
