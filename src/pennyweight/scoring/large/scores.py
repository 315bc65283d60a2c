"""Scores of records on disk: the functions used in memory, on the columns of one metric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from pennyweight.define import Metric, needed_columns
from pennyweight.record import FAILED
from pennyweight.scoring.estimates import Estimate, combined, estimated, with_parts
from pennyweight.scoring.groups import GROUP, Grouped
from pennyweight.scoring.large.spill import Spill
from pennyweight.scoring.large.values import ValueMetric
from pennyweight.scoring.pipeline import (
    DESCRIBED,
    MOST_LABELS,
    Scoring,
    described,
    has_labels,
    statistics_of,
)
from pennyweight.scoring.pooling import COLUMNS, several
from pennyweight.scoring.repeats import SIDE, repeats_in
from pennyweight.scoring.scores import Group
from pennyweight.stats.resample import CLUSTER
from pennyweight.text.natural_order import in_natural_order

FEW_GROUPS = 16
"""Up to this many groups are estimated one after the other."""
_JUDGES = ("judges", "judge_mean", "judge_variance")


@dataclass(frozen=True)
class LargeScores:
    """Records on disk in groups, and what is computed from them."""

    work: Scoring
    spill: Spill
    by: Sequence[str]

    def score(self) -> tuple[Group, ...]:
        """Score the records, as `Scoring.score` does."""
        size = len(self.groups)
        found = combined(dict(self._estimates()), self.work.metrics, size, self.work.options)
        described_ = self._described()
        labelled = bool(self.work.options.get("positive")) or self._has_labels()
        names = [n for n in ("passed", "impl_rate", *SIDE, *_JUDGES) if n in self.spill.schema]
        repeated = repeats_in(self._scored(names))
        pooled = {n: self._values_of(n) for n in COLUMNS if self.spill.filled[n]}
        return tuple(
            Group(
                group,
                records=self._records[g],
                errors=self._errors[g],
                estimates=found[g],
                statistics={name: one[g] for name, one in described_.items()},
                tasks=self._tasks[g],
                repeats=repeated[g],
                labelled=labelled,
                pooled=several({name: counts[g] for name, counts in pooled.items()}),
            )
            for g, group in enumerate(self.groups)
        )

    @cached_property
    def _by(self) -> pl.DataFrame | None:
        """The values of each group, with its number."""
        if not self.by:
            return None
        parts = range(len(self.spill.parts))
        values = pl.concat([self.spill.read(self.by, n, named=True).unique() for n in parts])
        return in_natural_order(values.unique()).with_row_index(GROUP)

    @cached_property
    def groups(self) -> list[dict[str, Any]]:
        """The values of each group."""
        return [{}] if self._by is None else self._by.drop(GROUP).to_dicts()

    @cached_property
    def _numbers(self) -> pl.Series:
        """The group of each record."""
        if self._by is None:
            return pl.Series(GROUP, [0], pl.UInt32).new_from_index(0, sum(map(len, self._masks)))
        found = []
        for number in range(len(self.spill.parts)):
            values = self.spill.read(self.by, number, named=True)
            joined = values.join(self._by, on=list(self.by), how="left", nulls_equal=True,
                                 maintain_order="left")  # fmt: skip
            found.append(joined[GROUP])
        return pl.concat(found).rechunk()

    @cached_property
    def _masks(self) -> list[pl.Series]:
        """Which records of each part count: those without an error."""
        read = (self.spill.read(["status"], n)["status"] for n in range(len(self.spill.parts)))
        return [status.ne_missing("error") for status in read]

    @cached_property
    def _everything(self) -> pl.DataFrame:
        return pl.DataFrame([self._numbers, self.spill.column(CLUSTER)])

    @cached_property
    def _records(self) -> list[int]:
        return _counts(self._numbers, len(self.groups))

    @cached_property
    def _base(self) -> pl.DataFrame:
        """The group and the cluster of the records that count."""
        mask = pl.concat(self._masks, rechunk=True)
        return self._everything if mask.all() else self._everything.filter(mask)

    @cached_property
    def _counted(self) -> list[int]:
        return _counts(self._base[GROUP], len(self.groups))

    @cached_property
    def _errors(self) -> list[int]:
        status = self.spill.column("status").cast(pl.String)
        return _counts(self._numbers.filter(status.is_in(["error", FAILED])), len(self.groups))

    @cached_property
    def _tasks(self) -> list[int]:
        return self._distinct(self._base)

    @cached_property
    def _all_tasks(self) -> list[int]:
        """How many tasks each group has, errors included."""
        none = self._base.height == self._everything.height
        return self._tasks if none else self._distinct(self._everything)

    def _distinct(self, rows: pl.DataFrame) -> list[int]:
        """Count the tasks of each group; of few groups one by one, which takes less memory."""
        size = len(self.groups)
        if size > FEW_GROUPS:
            return Grouped(rows, size, {}, 0.0, 0).tasks
        return [rows[CLUSTER].filter(rows[GROUP] == g).n_unique() for g in range(size)]

    def _grouped(self, rows: pl.DataFrame, *, over_all: bool = False) -> Grouped:
        request = self.work.request
        sizes = len(self.groups), self.work.options, request.confidence, request.seed
        tasks = self._all_tasks if over_all else self._tasks
        return Grouped(rows, *sizes).known(tasks, clustered=sum(tasks) < rows.height)

    def _scored(self, columns: Sequence[str], *, named: bool = False) -> Grouped:
        """Return columns of the records that count, in groups."""
        masks = () if self._base.height == sum(map(len, self._masks)) else self._masks
        rows = self._base.hstack(self.spill.frame(columns, masks, named=named))
        return self._grouped(rows)

    def _estimates(self) -> Iterator[tuple[str, list[Estimate]]]:
        """Estimate metrics one by one; those that read the same columns in a row."""
        options = self.work.options
        wanted = [m for m in with_parts(self.work.metrics, options) if not m.combined]
        grouped, held = None, None
        for metric in sorted(wanted, key=lambda m: (m.over != "all", sorted(m.inputs))):
            by_value = ValueMetric.of(metric, options)
            columns, over_all = self._columns(metric), metric.over == "all"
            asked = columns, over_all, metric.is_users
            if any(not self.spill.filled[name] for name in metric.needs):
                sizes = self._records if over_all else self._counted
                yield metric.name, [Estimate(None, skipped=n) for n in sizes]
            elif by_value:
                grouped = held = None
                yield metric.name, self._of_values(by_value, columns, over_all=over_all)
            else:
                if grouped is None or held != asked:
                    grouped = None  # so that the columns before are freed
                    named = metric.is_users  # it may read the names of tasks
                    grouped, held = self._read(columns, over_all=over_all, named=named), asked
                yield metric.name, self._estimate(grouped, metric)

    def _estimate(self, grouped: Grouped, metric: Metric) -> list[Estimate]:
        """Estimate a metric; few groups one after the other, which takes less memory."""
        estimand = self.work.request.estimand
        parts = grouped.each() if 1 < grouped.groups <= FEW_GROUPS else (grouped,)
        return [e for one in parts for e in estimated(one, one, [metric], estimand)[metric.name]]

    def _of_values(
        self, by_value: ValueMetric, columns: Sequence[str], *, over_all: bool
    ) -> list[Estimate]:
        """Estimate a metric of one value per record, with only these values in memory."""
        values, missing = self._values(by_value, columns, over_all=over_all)
        base = self._everything if over_all else self._base
        grouped = self._grouped(base.hstack([values]), over_all=over_all)
        metric = by_value.metric
        reduced = self._estimate(grouped, by_value.reduced())
        sizes = self._records if over_all else self._counted
        skipped = map(by_value.skipped, missing, sizes)
        return [
            replace(e, skipped=gone, records=size - gone if metric.interval else e.records)
            for e, gone, size in zip(reduced, skipped, sizes, strict=True)
        ]

    def _values(
        self, by_value: ValueMetric, columns: Sequence[str], *, over_all: bool
    ) -> tuple[pl.Series, list[int]]:
        """Return the value of each record, and how many records of each group lack one."""
        if by_value.by_task:
            rows = self._read(columns, over_all=over_all).rows
            gone = rows.select(by_value.missing().alias(GROUP)).to_series()
            return by_value.read(rows), self._missing(gone, over_all=over_all)
        values, lacking = [], []
        for number, mask in enumerate(self._masks):
            rows = self.spill.read(columns, number)
            rows = rows if over_all else rows.filter(mask)
            found = rows.select(by_value.values, by_value.missing().alias("\0missing"))
            values.append(found[by_value.metric.name])
            lacking.append(found["\0missing"])
        gone = pl.concat(lacking, rechunk=True)
        return pl.concat(values).rechunk(), self._missing(gone, over_all=over_all)

    def _missing(self, gone: pl.Series, *, over_all: bool) -> list[int]:
        numbers = (self._everything if over_all else self._base)[GROUP]
        return _counts(numbers.filter(gone), len(self.groups))

    def _read(self, columns: Sequence[str], *, over_all: bool, named: bool = False) -> Grouped:
        if not over_all:
            return self._scored(columns, named=named)
        rows = self._everything.hstack(self.spill.frame(columns, named=named))
        return self._grouped(rows, over_all=True)

    def _columns(self, metric: Metric) -> list[str]:
        """Return the columns that a metric reads."""
        columns = needed_columns([metric], self.work.options)
        if metric.over == "tasks":
            columns |= {"passed", *SIDE}
        return sorted(columns)

    def _described(self) -> dict[str, list[Any]]:
        result: dict[str, list[Any]] = {}
        for name in DESCRIBED:
            parts = self._scored([name]).each()
            rows = [one.aggregate([described(name)])[name][0] for one in parts]
            result[name] = [statistics_of(row) for row in rows]
        return result

    def _values_of(self, column: str) -> list[int]:
        """Count the values of a column in each group."""
        rows = pl.DataFrame([self._numbers, self.spill.column(column, named=True)])
        found = rows.drop_nulls().unique().group_by(GROUP).len()
        counts = dict(found.iter_rows())
        return [counts.get(group, 0) for group in range(len(self.groups))]

    def _has_labels(self) -> bool:
        name = "target_label"
        if name not in self.spill.schema:
            return False
        rows = self._everything.hstack([self.spill.column(name)])
        distinct = rows[name].drop_nulls().n_unique()
        return 0 < distinct <= MOST_LABELS and has_labels(rows)


def _counts(numbers: pl.Series, groups: int) -> list[int]:
    found = dict(numbers.value_counts().iter_rows())
    return [found.get(group, 0) for group in range(groups)]
