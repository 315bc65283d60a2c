"""The runs of a store: list, find, describe, score and delete them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from pennyweight.api.sources import open_store
from pennyweight.errors import UsageError, unknown
from pennyweight.runs.source import RunSource
from pennyweight.store import lease
from pennyweight.store.cells import DamagedRun, sound
from pennyweight.store.store import Spending, Store, StoredRun
from pennyweight.text.extraction import answer
from pennyweight.text.matching import matches

if TYPE_CHECKING:
    from pennyweight.scoring.scores import Scores

INTERRUPTED = "interrupted"
owner_of = lease.owner_of


def status_of(run: StoredRun, store: Store, *, starting: float = 0.0) -> str:
    """Return `running`, `interrupted`, `done`, `stopped` or `failed`.

    A run whose process is gone before it ended was interrupted. For `starting` seconds after its
    creation it is taken to be running: its process may not have taken it yet.
    """
    if run.status != "running" or time.time() - run.created < starting:
        return run.status
    return run.status if lease.is_running(store, run.id) else INTERRUPTED


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run with its status as it is now, its records by status, and what it cost."""

    run: StoredRun
    records: dict[str, int]
    spent: Spending


def list_runs(store: str | Store | None = None) -> list[RunSummary]:
    """List the runs of a store, the newest first, except damaged ones."""
    return all_runs(store)[0]


def all_runs(
    store: str | Store | None = None,
) -> tuple[list[RunSummary], tuple[DamagedRun, ...]]:
    """List the runs of a store, the newest first, and those that cannot be read."""
    at = open_store(store)
    runs, damaged = at.all_runs()
    found: list[RunSummary] = []
    _, more = sound(runs, lambda run: run.id, lambda run: found.append(summary(run, at)))
    return found, damaged + more


def find_run(name: str = "latest", store: str | Store | None = None) -> StoredRun:
    """Find a run by its id, a unique prefix, or `latest`; its status is that of now."""
    at = open_store(store)
    found = at.find(name)
    return replace(found, status=status_of(found, at))


def summary(run: StoredRun, store: Store) -> RunSummary:
    """Summarise a run."""
    current = replace(run, status=status_of(run, store))
    return RunSummary(current, store.statuses(run.id), store.spent(run.id))


@dataclass(frozen=True, slots=True)
class RunDetails:
    """A run in full."""

    summary: RunSummary
    judgments: dict[str, Any] | None
    """Counts of its judgments; None where it has no judges."""
    checked: list[pl.DataFrame]
    """What checks observed in its attempts."""


def show_run(run: str = "latest", store: str | Store | None = None) -> RunDetails:
    """Describe a run: its settings, its cost, its judgments and what its checks observed."""
    from pennyweight.render.scenarios import NEEDED  # noqa: PLC0415
    from pennyweight.runs.panel import judgment_facts  # noqa: PLC0415

    at = open_store(store)
    found = at.find(run)
    frames = RunSource(found, at).frames(NEEDED)
    checked = [frame for frame in frames if "checks" in frame.columns]
    return RunDetails(summary(found, at), judgment_facts(found, at), checked)


def delete_run(run: str, store: str | Store | None = None) -> None:
    """Delete a run with all its records. This cannot be undone."""
    at = open_store(store)
    run = at.find_id(run)
    if not lease.take_run(at, run, lease.Owner.here().text):
        raise UsageError(f"Run {run} is still running. Stop it (Ctrl-C), then delete it.")
    at.remove(run)


def attempts_at_task(name: str, task: str, store: str | Store | None = None) -> list[pl.DataFrame]:
    """Read the attempts of a run at one task, with their answers; unknown tasks are refused."""
    at = open_store(store)
    run = at.find(name)
    source = RunSource(run, at)
    rules = source.options()
    extracted = answer(pl.col("response"), rules["answer_rule"])
    right = matches(pl.col("answer"), pl.col("target"), rules["match_rule"])
    if "verified" in run.settings:
        right = pl.when(pl.col("matched_by").is_null()).then(right)
    tried = (frame.filter(pl.col("task_id") == task) for frame in source.frames())
    frames = [f.with_columns(answer=extracted).with_columns(correct=right) for f in tried if len(f)]
    if not frames:
        known = {id_ for frame in at.records(run.id, {"task_id"}) for id_ in frame["task_id"]}
        where = f"Run {run.id} has {len(known):,} tasks; 'pennyweight export {run.id}' lists them."
        raise UsageError(unknown("Task", task, sorted(known), where))
    return frames


def scores_of_run(
    run: StoredRun, by: Sequence[str] = (), *, store: str | Store | None = None
) -> tuple[Scores | None, list[str]]:
    """Score a run, its subjects and tiers side by side unless `by` names columns.

    Also returns notes about responses without an answer. There are no scores without records.
    """
    from pennyweight.api.score import score, unanswered  # noqa: PLC0415

    at = open_store(store)
    if not at.statuses(run.id):
        return None, []
    source = RunSource(run, at)
    tiers, subjects = run.sides["tier"], run.sides["subject"]
    columns = list(by) or (["tier"] if len(tiers) > 1 else [])
    if len(subjects) > 1 and not by:
        columns = ["subject", *columns]
    scores = score([source], by=columns)
    right = [group.estimates["accuracy"].value for group in scores.groups]
    apart = len(tiers) == 1 or "tier" in columns
    if apart and all(isinstance(value, float) and value >= 0.5 for value in right):
        return scores, []  # where most are right, most have an answer
    return scores, unanswered([source])
