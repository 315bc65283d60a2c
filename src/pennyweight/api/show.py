"""Show a run: its tasks with their results, and the attempts at some of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from pennyweight.api.runs import RunSummary, summary
from pennyweight.api.sources import open_store
from pennyweight.store.store import Store
from pennyweight.stored_runs import task_results
from pennyweight.stored_runs.panel import judgment_facts
from pennyweight.stored_runs.source import RunSource
from pennyweight.stored_runs.task_results import TaskFilter, TaskResult

__all__ = ["TaskFilter", "TaskResult", "attempts_at_tasks", "checked_frames", "show_run"]


@dataclass(frozen=True, slots=True)
class RunDetails:
    """A run with the results of its tasks."""

    summary: RunSummary
    judgments: dict[str, Any] | None
    """Counts of its judgments; None where it has no judges."""
    tasks: tuple[TaskResult, ...]


def show_run(
    run: str = "latest", only: TaskFilter | None = None, *, store: str | Store | None = None
) -> RunDetails:
    """Describe a run: its settings, its cost, its judgments, and how its tasks ended."""
    at = open_store(store)
    found = at.find(run)
    results = task_results.task_results(found, at, only or TaskFilter())
    return RunDetails(summary(found, at), judgment_facts(found, at), tuple(results))


def checked_frames(
    run: str, columns: frozenset[str], store: str | Store | None = None
) -> Iterator[pl.DataFrame]:
    """Yield what checks observed in the attempts of a run, in parts."""
    at = open_store(store)
    frames = RunSource(at.find(run), at).frames(columns)
    return (frame for frame in frames if "checks" in frame.columns)


def attempts_at_tasks(
    run: str, only: TaskFilter, store: str | Store | None = None
) -> Iterator[pl.DataFrame]:
    """Yield the attempts of a run at some tasks, with their answers; refuse unknown tasks."""
    at = open_store(store)
    return task_results.attempts_at_tasks(at.find(run), at, only)
