"""The measured records of a comparison by side: in memory, and on disk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from pennyweight.errors import InputError, UsageError
from pennyweight.scoring.digest import MEASURES, headline_by
from pennyweight.scoring.exam import ExamMatch, rows_of
from pennyweight.scoring.groups import GROUP
from pennyweight.scoring.large.scores import LargeScores
from pennyweight.scoring.large.spill import Spill
from pennyweight.scoring.large.units import LargeUnits
from pennyweight.scoring.pairs import Compared, Units
from pennyweight.scoring.pipeline import Measured, Scoring
from pennyweight.scoring.scores import Group
from pennyweight.scoring.sides import SIDE, Sides

TIMES = ("latency_ms", "duration_seconds")


@dataclass(frozen=True, slots=True)
class SidedRecords:
    """What a comparison asks of the records of its sides."""

    columns: tuple[str, ...]
    """The columns that tell the sides apart."""
    groups: tuple[Group, ...]
    """The scores of each side."""
    headline: str | None
    without: int
    """How many records have no side."""
    schema: pl.Schema
    same_time: bool
    """Whether the durations are the latencies in seconds, so that one of them is enough."""
    priced: list[tuple[int, int]]
    """How many attempts each side has, and how many of them without a cost."""
    units: Callable[[list[Compared], list[str]], Units | LargeUnits]
    """Adds up values task by task."""
    exam: ExamMatch
    """Which tasks are left out, because they are not the same on all sides."""

    @classmethod
    def of(
        cls,
        work: Scoring,
        measured: Measured,
        sides: Sides,
        only: Collection[str],
        titles: Mapping[str, str] | None = None,
    ) -> SidedRecords:
        """Put measured records into sides; `only` names those to keep, if not all of them.

        Tasks that are not the same on all sides are left out.
        """
        if measured.spilled:
            return cls._on_disk(work, measured.spilled, sides, only, titles)
        columns, named = sides.named(measured.frame)
        headline = headline_by(named, SIDE)
        without = measured.frame.height - named.height if not only else 0
        frame = sides.ordered(named, columns, only)
        exam = ExamMatch.of(rows_of(frame), titles, sides.reruns, work.request.regraded)
        exam.refuse_regraded()
        if exam.changed:
            present = frame[SIDE].unique()
            frame = frame.filter(exam.stays())
            _refuse_empty(exam, frame[SIDE].unique(), present)
        groups, frame = work.score(frame, [SIDE])
        return cls(
            columns, groups, headline, without, frame.schema, _same_time([frame]),
            _priced([frame], len(groups)), lambda *asked: Units.of(frame, *asked), exam,
        )  # fmt: skip

    @classmethod
    def _on_disk(
        cls,
        work: Scoring,
        spill: Spill,
        sides: Sides,
        only: Collection[str],
        titles: Mapping[str, str] | None,
    ) -> SidedRecords:
        def distinct(column: str) -> list[str]:
            found = pl.concat(rows.to_series().unique() for rows in spill.rows([column]))
            return found.drop_nulls().unique().cast(pl.String).to_list()

        if not spill.height:
            raise InputError(["There are no records to compare."])
        columns, side = sides.side(lambda name: len(distinct(name)) > 1)
        spill.views[SIDE] = side
        present = distinct(SIDE)
        order = sides.order(present, columns, only)
        number = side.replace_strict(order, range(len(order)), default=None, return_dtype=pl.UInt32)
        there = {SIDE, *(n for n in MEASURES.values() if spill.filled.get(n))}
        spill.views[SIDE] = side.cast(pl.Enum(present))
        headline = headline_by(spill.frame(sorted(there)).drop_nulls(SIDE), SIDE)
        records = spill.height
        spill.keep(number.is_not_null())
        without = records - spill.height if not only else 0
        spill.views |= {SIDE: side.cast(pl.Enum(order), strict=False), GROUP: number}
        exam = ExamMatch.of(spill.rows, titles, sides.reruns, work.request.regraded)
        exam.refuse_regraded()
        if exam.changed:
            spill.keep(exam.stays())
            _refuse_empty(exam, pl.Series(distinct(SIDE)), pl.Series(order))
        groups = LargeScores(work, spill, [SIDE]).score()
        times = [n for n in TIMES if n in spill.schema]
        paid = [GROUP, "status", "cost_usd"]
        return cls(
            columns, groups, headline, without, spill.schema,
            _same_time(spill.rows(times)),
            _priced(spill.rows(paid), len(groups)),
            lambda *asked: LargeUnits.of(spill, *asked),
            exam,
        )  # fmt: skip


def _refuse_empty(exam: ExamMatch, left: pl.Series, sides: pl.Series) -> None:
    """Raise UsageError if a side has no task that is the same on all sides."""
    if len(left) < len(sides):
        raise UsageError(exam.nothing_left)


def _same_time(parts: Iterable[pl.DataFrame]) -> bool:
    """Whether the durations are the latencies in seconds, so that one of them is enough."""
    for part in parts:
        if not {*TIMES} <= set(part.columns):
            return False
        seconds = pl.col("latency_ms").cast(pl.Float64) / 1000
        apart = (seconds - pl.col("duration_seconds")).abs() > 1e-3 * seconds.abs() + 1e-3
        timed = part.filter(pl.col("duration_seconds").is_not_null())
        if timed.select(apart.fill_null(value=True).any()).item():
            return False
    return True


def _priced(parts: Iterable[pl.DataFrame], sides: int) -> list[tuple[int, int]]:
    """Count the attempts of each side, and those without a cost."""
    counted = [
        part.filter(pl.col("status").ne_missing("error"))
        .group_by(GROUP)
        .agg(n=pl.len(), unpriced=pl.col("cost_usd").null_count())
        for part in parts
    ]
    table = pl.concat(counted).group_by(GROUP).sum()
    counts = {group: (attempts, unpriced) for group, attempts, unpriced in table.iter_rows()}
    return [counts.get(side, (0, 0)) for side in range(sides)]
