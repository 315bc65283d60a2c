"""Pairs of sides on the tasks that both tried: what is compared, task by task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from pennyweight.define import METRICS, Metric
from pennyweight.scoring.groups import GROUP, shape_of
from pennyweight.scoring.overlap import Overlap
from pennyweight.stats.attempt_noise import Tries
from pennyweight.stats.multiple import holm
from pennyweight.stats.paired import Difference, Kind, Paired, cliffs_delta, compare
from pennyweight.stats.power import Design
from pennyweight.stats.resample import CLUSTER

PAIRED = (
    *("pass_rate", "impl_rate_mean", "composite_score", "cost_usd_mean"),
    *("latency_mean_ms", "duration_seconds", "total_tokens_mean"),
)
"""The default comparison: metrics that are means, and measures whose mean is compared."""

MEASURED: dict[str, Kind] = {"composite_score": "score", "duration_seconds": "number"}
"""The measures among them."""

FIVE_POINTS = 0.05

MOST_TRIES = 20_000
"""Up to so many, single tries are kept; tasks tried that often have even differences."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One metric of two sides on the tasks that both tried; `difference` is b minus a."""

    a: str
    b: str
    metric: str
    kind: Kind
    tasks: int
    only_a: int
    only_b: int
    mean_a: float | None = None
    mean_b: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    method: str | None = None
    cliffs_delta: float | None = None
    detectable: float | None = None
    tasks_for_5_points: int | None = None

    @property
    def alike(self) -> bool:
        """Whether the sides differ by the same number at every task, so nothing varied."""
        return self.tasks > 1 and self.low is None

    def shown(self, level: float) -> bool:
        """Whether there is a difference, all comparisons of the report considered."""
        return self.p_adjusted is not None and self.p_adjusted <= level

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of a side."""
        return {
            "a": self.a,
            "b": self.b,
            "metric": self.metric,
            "difference": self.difference,
            "interval": None if self.low is None else [self.low, self.high],
            "p": self.p,
            "p_adjusted": self.p_adjusted,
            "method": self.method,
            "tasks": self.tasks,
            "only_a": self.only_a,
            "only_b": self.only_b,
            "mean_a": self.mean_a,
            "mean_b": self.mean_b,
            "cliffs_delta": self.cliffs_delta,
            "detectable": self.detectable,
            "tasks_for_5_points": self.tasks_for_5_points,
        }


@dataclass(frozen=True, slots=True)
class Compared:
    """A value of each record whose mean is compared."""

    name: str
    values: pl.Expr
    kind: Kind

    @classmethod
    def of(cls, name: str, schema: pl.Schema, options: Mapping[str, Any]) -> Compared | None:
        """Find the values behind a metric that is a mean of the scored records; None for others."""
        if name in MEASURED:
            return cls(name, pl.col(name), MEASURED[name])
        metric = METRICS[name]
        values = _mean_of(metric, options)
        if values is None:
            return None
        kind = schema.to_frame().select(values.alias("x")).schema["x"]
        if kind == pl.Boolean:
            return cls(name, values, "rate")
        return cls(name, values, "score" if metric.range == (0, 1) else "number")

    def by_task(
        self,
        tables: Sequence[pl.DataFrame],
        key: list[str],
        frame: pl.DataFrame,
        tried: pl.Series,
    ) -> tuple[Paired, int, int]:
        """Pair two sides; also gives how many tasks only the one tried, and only the other.

        `tried` has the tasks that both tried, with a value or without. `frame` has the
        records: where sides were tried unevenly, single tries are kept.
        """
        total, count = f"{self.name}/s", f"{self.name}/n"
        a, b = (
            table.filter(pl.col(count) > 0)
            .group_by(key)
            .agg(pl.col(total, count).sum())
            .with_columns(pl.col(total) / pl.col(count))
            for table in tables
        )
        both = a.join(b, on=key, suffix="/b", nulls_equal=True)
        means = pl.col(total, f"{total}/b").mean()
        tries = pl.col(count, f"{count}/b").sum().cast(pl.Float64)
        tasks = both.group_by(CLUSTER).agg(means, tries).sort(CLUSTER)
        alone = ~pl.col(CLUSTER).is_in(tried.implode(), nulls_equal=True)
        only = [t.filter(alone)[CLUSTER].n_unique() for t in (a, b)]
        columns = (total, f"{total}/b", count, f"{count}/b")
        a_, b_, tries_a, tries_b = (tasks[c].to_numpy() for c in columns)
        uneven = both.height and both.select((pl.col(count) != pl.col(f"{count}/b")).any()).item()
        fits = tries_a.sum() + tries_b.sum() <= MOST_TRIES
        each = None
        if uneven and fits and self.kind != "rate":
            groups = [table[GROUP][0] for table in tables]
            each = self._each(frame, groups, key, both.select(key), tasks[CLUSTER])
        return Paired(a_, b_, tries_a, tries_b, self.kind, each), only[0], only[1]

    def _each(
        self,
        frame: pl.DataFrame,
        groups: Sequence[int],
        key: list[str],
        units: pl.DataFrame,
        tasks: pl.Series,
    ) -> Tries:
        """List every single try of two sides in the units that both have."""
        values = self.values.cast(pl.Float64).drop_nulls().sort()
        units = units.join(tasks.to_frame().with_row_index("task"), on=CLUSTER, nulls_equal=True)
        for side, group in zip("ab", groups, strict=True):
            tries = frame.filter(pl.col(GROUP) == group).group_by(key).agg(values.alias(side))
            units = units.join(tries, on=key, nulls_equal=True)
        units = units.sort("task", *(n for n in key if n != CLUSTER))
        counts = [units[side].list.len().to_numpy().astype(np.int64) for side in "ab"]
        flat = units.select(pl.concat_list("a", "b")).to_series().explode().to_numpy()
        return Tries(flat, counts[0], counts[1], units["task"].to_numpy().astype(np.int64))


def _mean_of(metric: Metric, options: Mapping[str, Any]) -> pl.Expr | None:
    if metric.combined or metric.interval or metric.over == "all":
        return None
    shape = shape_of(metric.expression(options))
    return shape.values if shape.share is None else None


@dataclass(frozen=True, slots=True)
class Units:
    """Sums and counts of each side's values, task by task, in each other configuration."""

    table: pl.DataFrame
    compared: list[Compared]
    others: list[str]
    frame: pl.DataFrame
    """The records that were added up."""
    every: pl.DataFrame
    """All records, errors too."""

    @classmethod
    def of(cls, frame: pl.DataFrame, compared: list[Compared], others: list[str]) -> Units:
        """Add up measured records; those with status `error` and those without a task stay out."""
        fine = pl.col("status").ne_missing("error") & pl.col("task_id").is_not_null()
        sums = [
            expr
            for one in compared
            for expr in (
                one.values.cast(pl.Float64).sum().alias(f"{one.name}/s"),
                one.values.count().cast(pl.Float64).alias(f"{one.name}/n"),
            )
        ]
        scored = frame.filter(fine)
        table = scored.group_by(GROUP, CLUSTER, *others).agg(sums)
        return cls(table, compared, others, scored, frame)

    def overlap(self, names: Sequence[str], a: int, b: int) -> Overlap:
        """Find what two sides, given by their numbers, both tried."""
        key = self._key([self.table.filter(pl.col(GROUP) == g) for g in (a, b)])
        return Overlap.of(self.every, (names[a], names[b]), (a, b), key)

    def pairs(
        self,
        names: Sequence[str],
        which: Iterable[tuple[int, int]],
        overlaps: Mapping[tuple[int, int], Overlap],
        confidence: float,
        seed: int,
    ) -> list[Pair]:
        """Compare pairs of sides, given by their numbers, in all that both have."""
        sides = [self.table.filter(pl.col(GROUP) == g) for g in range(len(names))]
        paired = [
            (names[a], names[b], one, *self._paired(one, [sides[a], sides[b]], overlaps[a, b]))
            for a, b in which
            for one in self.compared
            if all(sides[g][f"{one.name}/n"].sum() > 0 for g in (a, b))
        ]
        test = Test(confidence, seed, sum(values.tasks > 0 for _, _, _, values, *_ in paired))
        found = [
            test.of(Pair(a, b, one.name, one.kind, values.tasks, only_a, only_b), values)
            for a, b, one, values, only_a, only_b in paired
        ]
        adjusted = iter(holm([pair.p for pair in found if pair.p is not None]))
        return [p if p.p is None else replace(p, p_adjusted=next(adjusted)) for p in found]

    def _paired(
        self, one: Compared, tables: Sequence[pl.DataFrame], overlap: Overlap
    ) -> tuple[Paired, int, int]:
        return one.by_task(tables, self._key(tables), self.frame, overlap.clusters)

    def _key(self, tables: Sequence[pl.DataFrame]) -> list[str]:
        """Name the columns that a try of both sides must have in common."""
        return [CLUSTER, *(n for n in self.others if _shared(n, *tables))]


@dataclass(frozen=True, slots=True)
class Test:
    """How pairs are tested: at which confidence, and among how many comparisons."""

    confidence: float
    seed: int
    comparisons: int

    def of(self, pair: Pair, paired: Paired) -> Pair:
        """Test a pair; the detectable difference takes the correction into account."""
        if not paired.tasks:
            return pair
        found: Difference = compare(paired, self.confidence, self.seed, self.comparisons)
        design, level = Design.of(paired), (1 - self.confidence) / self.comparisons
        bounded = pair.kind != "number" and paired.tasks > 1
        return replace(
            pair,
            mean_a=float(paired.a.mean()),
            mean_b=float(paired.b.mean()),
            difference=found.value,
            low=found.low,
            high=found.high,
            p=found.p,
            method=found.method,
            cliffs_delta=cliffs_delta(paired.a, paired.b),
            detectable=design.detectable(paired.tasks, level),
            tasks_for_5_points=design.tasks_needed(FIVE_POINTS, level) if bounded else None,
        )


def _shared(name: str, a: pl.DataFrame, b: pl.DataFrame) -> bool:
    """Whether both sides share a value of a column; otherwise the column is what differs."""
    there = b[name].unique().cast(pl.String).implode()
    return bool(a[name].unique().cast(pl.String).is_in(there, nulls_equal=True).any())
