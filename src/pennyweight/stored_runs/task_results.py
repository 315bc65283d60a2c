"""How the tasks of a run ended, and the attempts at some of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

import polars as pl

from pennyweight.errors import UsageError, unknown
from pennyweight.record import KEY_IN_RUN
from pennyweight.scoring.pipeline import ScoreRequest, Scoring
from pennyweight.store.store import Store, StoredRun
from pennyweight.stored_runs.imported import is_imported
from pennyweight.stored_runs.panel import NEEDED, Panel
from pennyweight.stored_runs.source import RunSource
from pennyweight.text.extraction import answer
from pennyweight.text.format import plural
from pennyweight.text.matching import matches

_SIDE = ("task_id", "subject", "tier")
_MOST = 500
"""The most tasks that the store selects; of more, the records are read and filtered."""


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks of a run are shown; an empty field selects all."""

    tasks: tuple[str, ...] = ()
    """Ids, which may contain `*` and `?`."""
    subject: str | None = None
    tier: str | None = None
    failed: bool = False
    """Only those with an attempt that did not pass or could not be made."""

    def side(self) -> pl.Expr:
        """Return the condition on the subject and the tier."""
        given = {"subject": self.subject, "tier": self.tier}
        keys = (pl.col(n).cast(pl.String) == v for n, v in given.items() if v is not None)
        return pl.all_horizontal(pl.lit(value=True), *keys)

    def names(self, known: Collection[str]) -> list[str]:
        """Return the tasks that are meant; refuse a name that fits none."""
        found: dict[str, None] = {}
        for given in self.tasks:
            fitting = [n for n in known if n == given or fnmatchcase(n, given)]
            if not fitting:
                lists = f"{plural(len(known), 'task')}; 'pennyweight show RUN --all' lists them."
                hint = f"The run has {lists if known else 'no such records yet.'}"
                raise UsageError(unknown("Task", given, sorted(known), hint))
            found |= dict.fromkeys(fitting)
        return list(found) if self.tasks else list(known)


@dataclass(frozen=True, slots=True)
class TaskResult:
    """How the attempts of a subject in a tier at a task ended."""

    task_id: str
    subject: str
    tier: str
    category: str | None
    attempts: int
    passed: int
    failed: int
    errors: int
    undecided: int
    """The attempts without a verdict."""

    @property
    def bad(self) -> bool:
        """Whether an attempt did not pass or could not be made."""
        return bool(self.failed or self.errors)

    @property
    def good(self) -> bool:
        """Whether every attempt passed."""
        return self.passed == self.attempts

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


def task_results(run: StoredRun, store: Store, only: TaskFilter) -> Iterator[TaskResult]:
    """Yield the results of the tasks; texts are read in parts and never held."""
    sources = [RunSource(run, store)]
    work = Scoring.of(sources, ScoreRequest("pass_rate"), also=(*_SIDE, "category"))
    frame = work.measure(sources).frame.filter(only.side())
    names = only.names(frame["task_id"].unique(maintain_order=True).to_list())
    failed = pl.col("status").cast(pl.String) == "error"
    rows = frame.filter(pl.col("task_id").is_in(names)).group_by(*_SIDE, maintain_order=True)
    counted = rows.agg(
        pl.col("category").first(),
        attempts=pl.len(),
        passed=(pl.col("passed") & ~failed).sum(),
        failed=(~pl.col("passed") & ~failed).sum(),
        errors=failed.sum(),
        undecided=(pl.col("passed").is_null() & ~failed).sum(),
    )
    for row in counted.iter_rows(named=True):
        result = TaskResult(**row)
        if result.bad or not only.failed:
            yield result


def attempts_at_tasks(run: StoredRun, store: Store, only: TaskFilter) -> Iterator[pl.DataFrame]:
    """Yield the attempts of a run at some tasks, with their answers; refuse unknown tasks."""
    names = only.tasks
    if any(sign in name for name in names for sign in "*?["):
        names = tuple(only.names(_tasks(run, store)))
    source = RunSource(run, store, tasks=frozenset(names if len(names) <= _MOST else ()))
    extracted, right = pl.col("answer"), pl.col("correct")
    if not is_imported(run.settings):  # else they are what the log says
        rules = source.options()
        extracted = answer(pl.col("response"), rules["answer_rule"])
        right = matches(pl.col("answer"), pl.col("target"), rules["match_rule"])
    if "verified" in run.settings:
        right = pl.when(pl.col("matched_by").is_null()).then(right)
    panel = Panel.of(run, store, items=True)
    good = pl.coalesce("passed", "correct")
    if is_imported(run.settings):
        good = pl.coalesce("passed", "judge_passed", "correct")
    elif panel is not None:
        judged = pl.when(pl.col("judge_scores").is_null()).then("correct").otherwise("judge_passed")
        good = pl.coalesce("passed", judged)
    good = good.fill_null(value=True) & (pl.col("status") == "ok")
    some = False
    for frame in source.frames():
        rows = frame.filter(pl.col("task_id").is_in(names), only.side())
        rows = rows if panel is None else panel.with_judgments(rows)
        rows = rows.with_columns(answer=extracted).with_columns(correct=right)
        rows = rows.filter(~good) if only.failed else rows
        if rows.height:
            some = True
            yield rows
    if not some:
        only.names(_tasks(run, store))
        raise UsageError(f"Run {run.id} has no such attempts at {', '.join(only.tasks)}.")


def with_judgments(
    rows: Sequence[Mapping[str, Any]], run: StoredRun, store: Store
) -> list[dict[str, Any]]:
    """Add the current judgments to records of a run, as lists; others stay as they are."""
    panel = Panel.of(run, store, items=True)
    if panel is None or not rows:
        return [dict(row) for row in rows]
    keys = [tuple(row[n] for n in KEY_IN_RUN) for row in rows]
    source = RunSource(run, store, tasks=frozenset(str(row["task_id"]) for row in rows))
    said: dict[tuple[Any, ...], Any] = {}
    for frame in source.frames(frozenset(NEEDED)):
        judged = panel.with_judgments(frame).select(*KEY_IN_RUN, "judgments").iter_rows()
        said |= {tuple(key): given for *key, given in judged if given}
    return [
        {**row, "judgments": said[key]} if key in said else dict(row)
        for row, key in zip(rows, keys, strict=True)
    ]


def _tasks(run: StoredRun, store: Store) -> set[str]:
    return {id_ for frame in store.records(run.id, {"task_id"}) for id_ in frame["task_id"]}
