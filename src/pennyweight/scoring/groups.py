"""Measured records in groups, and the intervals of metrics over them.

The intervals of means and quantiles are computed for all groups at once, others group by group.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from pennyweight.define import Metric
from pennyweight.stats.interval import (
    Floats,
    quantile_ranks,
    rate_interval,
)
from pennyweight.stats.resample import (
    CLUSTER,
    Ends,
    ResampledRows,
    Sample,
    clustered_error,
    clustered_skew,
)
from pennyweight.stats.skewness import TOO_SKEWED, Range, mean_interval


@dataclass(frozen=True, slots=True)
class Shape:
    """A mean or a quantile of one value per record; neither if there are no `values`."""

    values: pl.Expr | None = None
    share: float | None = None
    """Which quantile; None for a mean."""


def shape_of(expression: pl.Expr) -> Shape:
    """Return whether an expression is a mean or a quantile, and of which values.

    >>> shape_of(pl.col("x").median()).share, shape_of(pl.col("x").max()).values
    (0.5, None)
    """
    body = expression.meta.undo_aliases()
    inner = body.meta.pop()
    for values in inner:
        if body.meta.eq(values.mean()):
            return Shape(values)
        if body.meta.eq(values.median()):
            return Shape(values, 0.5)
    if len(inner) == 2 and inner[0].meta.is_literal():
        share = pl.select(inner[0]).item()
        if isinstance(share, float) and 0 <= share <= 1:
            nearest = inner[1].quantile(share, interpolation="equiprobable")
            return Shape(inner[1], share) if body.meta.eq(nearest) else Shape()
    return Shape()


def cluster() -> pl.Expr:
    """Return the column that numbers clusters: the records of one task are one cluster."""
    task, alone = pl.col("task_id"), pl.int_range(pl.len(), dtype=pl.UInt64).hash()
    return pl.when(task.is_null()).then(alone).otherwise(task.hash()).alias(CLUSTER)


def mean_values(metric: Metric, options: Mapping[str, Any]) -> pl.Expr | None:
    """Return the values whose mean over scored records is a metric; None if it is not a mean."""
    if metric.combined or metric.interval or metric.over != "scored":
        return None
    shape = shape_of(metric.expression(options))
    return shape.values if shape.share is None else None


def interval_text(metric: Metric) -> str:
    """Describe in a few words how a metric's interval is computed."""
    if metric.combined:
        return "from the ends of its parts' intervals"
    if metric.interval:
        return metric.interval.text
    shape = shape_of(metric.expression({}))
    if shape.values is None:
        return ResampledRows().text
    if shape.share is not None:
        return "order statistics, clustered by task"
    if metric.range == (0, 1):
        return "binomial for a share of records, t for a mean of scores; clustered by task"
    return "t, corrected for skewness, clustered by task"


GROUP = "\0group"
"""The column that numbers the groups of a measured frame, from 0."""

_AT = "\0at"


class Moments(NamedTuple):
    """The standard error, the effective number of tasks and the skewness of means, by group."""

    error: Floats
    clusters: Floats
    skew: Floats | None


@dataclass(frozen=True)
class Grouped:
    """The rows that some metrics are computed over, with the number of their group."""

    rows: pl.DataFrame
    groups: int
    options: Mapping[str, Any]
    confidence: float
    seed: int

    @cached_property
    def clustered(self) -> bool:
        """Whether some task has several records in one group."""
        if self.groups == 1:
            return self.rows[CLUSTER].n_unique() < self.rows.height
        return self.rows.select(GROUP, CLUSTER).n_unique() < self.rows.height

    @cached_property
    def parts(self) -> list[pl.DataFrame]:
        """The rows of each group."""
        if self.groups == 1:
            return [self.rows]
        parts = self.rows.partition_by(GROUP, as_dict=True)
        return [parts.get((g,), self.rows.clear()) for g in range(self.groups)]

    @cached_property
    def tasks(self) -> list[int]:
        """How many tasks each group has."""
        return self.aggregate([pl.col(CLUSTER).n_unique().alias("k")])["k"].fill_null(0).to_list()

    def known(self, tasks: list[int], *, clustered: bool) -> Grouped:
        """Fill in how many tasks each group has, and whether a task has several records."""
        self.__dict__.update(tasks=tasks, clustered=clustered)
        return self

    def each(self) -> Iterator[Grouped]:
        """Yield every group by itself, one after the other, so that one copy is held at a time."""
        for g in range(self.groups):
            rows = self.rows.filter(pl.col(GROUP) == g)
            alone = Grouped(
                rows.with_columns(pl.lit(0, dtype=pl.UInt32).alias(GROUP)),
                1, self.options, self.confidence, self.seed,
            )  # fmt: skip
            yield alone.known([self.tasks[g]], clustered=self.clustered)

    def with_values(self, name: str, values: pl.Expr) -> Grouped | None:
        """Add a column that is computed over whole groups; None if it is not one value a row."""
        row = "\0row"
        parts = (
            self.rows.with_row_index(row).partition_by(GROUP) if self.groups > 1 else [self.rows]
        )
        try:
            rows = pl.concat(part.with_columns(values.alias(name)) for part in parts)
        except pl.exceptions.ShapeError:  # it leaves out some of them by itself
            return None
        if self.groups > 1:
            rows = rows.sort(row).drop(row)
        found = replace(self, rows=rows)
        return found.known(self.tasks, clustered=self.clustered)

    def aggregate(self, exprs: Sequence[pl.Expr], rows: pl.DataFrame | None = None) -> pl.DataFrame:
        """Aggregate by group: one row for each, in order, nulls where a group is empty."""
        rows = self.rows if rows is None else rows
        if self.groups == 1:
            return rows.select(exprs)  # eagerly: windows are shared, and planning costs more
        index = pl.DataFrame({GROUP: range(self.groups)}, schema={GROUP: pl.UInt32})
        table = rows.group_by(GROUP, maintain_order=True).agg(exprs)
        return index.join(table, on=GROUP, how="left", maintain_order="left").drop(GROUP)

    def mean_intervals(
        self, values: Mapping[str, pl.Expr], table: pl.DataFrame, ranges: Mapping[str, Range]
    ) -> tuple[dict[str, list[Ends]], dict[str, list[bool]]]:
        """Return the intervals of means, and whether a few tasks decide a mean.

        `table` holds the value of each mean and, as `name/n`, how many values it has; `ranges` has
        the range of its values.
        """
        types = self.rows.clear().select(v.alias(n) for n, v in values.items()).schema
        found = self.moments(values, [n for n in values if types[n] != pl.Boolean])
        ends, skewed = {}, {}
        for name, m in found.items():
            mean = _floats(table[name])
            if m.skew is None:
                n = _floats(table[f"{name}/n"])
                both = rate_interval(mean, m.error, n, m.clusters, self.confidence)
            else:
                both = mean_interval(
                    mean, m.error, m.skew, m.clusters, self.confidence, ranges[name]
                )
                skewed[name] = (np.abs(m.skew) > TOO_SKEWED).tolist()
            ends[name] = _pairs(*both)
        return ends, skewed

    def moments(
        self, values: Mapping[str, pl.Expr], skewed: Collection[str] = ()
    ) -> dict[str, Moments]:
        """Return the standard errors of means, clustered by task; the skewness of some of them."""
        if self.clustered:
            by_task = self.rows.group_by(GROUP, CLUSTER, maintain_order=True).agg(sums(values))
            exprs = [e for name in values for e in _clustered(name, skewed=name in skewed)]
            table = self.aggregate(exprs, by_task)
        else:
            alone = (_independent(n, v, skewed=n in skewed) for n, v in values.items())
            table = self.aggregate([e for exprs in alone for e in exprs])
        return {
            n: Moments(
                _floats(table[f"{n}/e"]),
                _floats(table[f"{n}/k"].fill_null(0)),
                _floats(table[f"{n}/g"]) if n in skewed else None,
            )
            for n in values
        }

    def quantile_intervals(
        self, shapes: Mapping[str, Shape], table: pl.DataFrame
    ) -> dict[str, list[Ends]]:
        """Return the intervals of quantiles: the order statistics that enclose them."""
        result: dict[str, list[Ends]] = {}
        for name, shape in shapes.items():
            assert shape.values is not None
            assert shape.share is not None
            n = _floats(table[f"{name}/n"].fill_null(0))
            worth, clusters = n, n
            if self.clustered:
                worth, clusters = self._worth(shape.values, table[name], n)
            low, high = quantile_ranks(shape.share, n, worth, self.confidence)
            ordered = shape.values.drop_nulls().sort()
            exact = self.aggregate([ordered.implode().alias("x")])["x"]
            result[name] = [
                _ranked(x, int(a), int(b)) if k > 1 else None
                for x, a, b, k in zip(exact, low, high, clusters, strict=True)
            ]
        return result

    def _worth(self, values: pl.Expr, at: pl.Series, n: Floats) -> tuple[Floats, Floats]:
        """Return the effective number of independent records, and the number of tasks."""
        index = pl.DataFrame({GROUP: range(self.groups), _AT: at}).cast({GROUP: pl.UInt32})
        rows = self.rows.join(index, on=GROUP, how="left")
        below = Grouped(rows, self.groups, self.options, self.confidence, self.seed)
        under = values <= pl.col(_AT)
        error, clusters, _ = below.moments({"x": under})["x"]
        rate = _floats(below.aggregate([under.mean().alias("x")])["x"])
        with np.errstate(divide="ignore", invalid="ignore"):
            worth = n * rate * (1 - rate) / (n - 1) / np.square(error)
        good = np.isfinite(worth) & (worth > 0)
        return np.where(good, np.minimum(n, worth), clusters), clusters

    def other_interval(self, metric: Metric, body: pl.Expr, values: Sequence[Any]) -> list[Ends]:
        """Return the intervals that are computed group by group."""
        make = metric.interval or ResampledRows()
        result: list[Ends] = [None] * self.groups
        for g, value in enumerate(values):
            if isinstance(value, float) and self.tasks[g] > 1:
                sample = Sample(
                    frame=self.parts[g],
                    value=value,
                    expression=body,
                    inputs=metric.inputs,
                    options=metric.own(self.options),
                    confidence=self.confidence,
                    seed=self.seed,
                    clustered=self.clustered,
                    clusters=self.tasks[g],
                )
                result[g] = make(sample)
        return result


def sums(values: Mapping[str, pl.Expr]) -> list[pl.Expr]:
    """Return the sum of each value, as `name/s`, and how many there are, as `name/n`."""
    totals = [v.cast(pl.Float64).sum().alias(f"{name}/s") for name, v in values.items()]
    return totals + [v.count().cast(pl.Float64).alias(f"{name}/n") for name, v in values.items()]


def _independent(name: str, values: pl.Expr, *, skewed: bool) -> list[pl.Expr]:
    numbers = values.cast(pl.Float64)
    size = numbers.count().cast(pl.Float64)
    error = numbers.std() / size.sqrt()
    skew = [(numbers.skew() / size.sqrt()).alias(f"{name}/g")] if skewed else []
    return [error.alias(f"{name}/e"), size.alias(f"{name}/k"), *skew]


def _clustered(name: str, *, skewed: bool) -> list[pl.Expr]:
    """Turn sums and counts by task into an error, the effective number of tasks, the skewness."""
    total, count = pl.col(f"{name}/s"), pl.col(f"{name}/n")
    error, tasks = clustered_error(total, count)
    skew = [clustered_skew(total, count).alias(f"{name}/g")] if skewed else []
    return [error.alias(f"{name}/e"), tasks.alias(f"{name}/k"), *skew]


def _ranked(ordered: pl.Series, low: int, high: int) -> Ends:
    """Return two order statistics; infinite beyond the sample."""
    first = ordered[low - 1] if low >= 1 else -math.inf
    return float(first), float(ordered[high - 1]) if high <= len(ordered) else math.inf


def _floats(series: pl.Series) -> Floats:
    return series.cast(pl.Float64).to_numpy()


def _pairs(low: Floats, high: Floats) -> list[Ends]:
    return [
        None if math.isnan(a) or math.isnan(b) else (a, b)
        for a, b in zip(low.tolist(), high.tolist(), strict=True)
    ]
