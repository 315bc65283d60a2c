"""Measured records in groups, and the intervals of metrics over them.

The intervals of means and quantiles are computed for all groups at once, others group by group.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from pennyweight.define import Metric
from pennyweight.stats.interval import (
    Floats,
    bounded_interval,
    quantile_ranks,
    rate_interval,
    t_interval,
)
from pennyweight.stats.resample import CLUSTER, Ends, ResampledRows, Sample, clustered_error


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
        return "Wilson for a share of records, t for a mean of scores; clustered by task"
    return "t, clustered by task"


GROUP = "\0group"
"""The column that numbers the groups of a measured frame, from 0."""

_AT = "\0at"


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

    def aggregate(self, exprs: Sequence[pl.Expr], rows: pl.DataFrame | None = None) -> pl.DataFrame:
        """Aggregate by group: one row for each, in order, nulls where a group is empty."""
        rows = self.rows if rows is None else rows
        if self.groups == 1:
            return rows.lazy().select(exprs).collect()
        index = pl.DataFrame({GROUP: range(self.groups)}, schema={GROUP: pl.UInt32})
        table = rows.group_by(GROUP, maintain_order=True).agg(exprs)
        return index.join(table, on=GROUP, how="left", maintain_order="left").drop(GROUP)

    def mean_intervals(
        self, values: Mapping[str, pl.Expr], table: pl.DataFrame, scores: Collection[str]
    ) -> dict[str, list[Ends]]:
        """Return the intervals of means: Wilson's for true and false, Student's for numbers.

        `table` holds the value of each mean and, as `name/n`, how many values it has. `scores` are
        means of values between 0 and 1, whose interval is not empty if all values are equal.
        """
        error, clusters = self.errors(values)
        types = self.rows.clear().select(v.alias(n) for n, v in values.items()).schema
        result: dict[str, list[Ends]] = {}
        for name in values:
            mean, k, e = _floats(table[name]), clusters[name], error[name]
            if types[name] == pl.Boolean:
                ends = rate_interval(mean, e, _floats(table[f"{name}/n"]), k, self.confidence)
            else:
                ends = t_interval(mean, e, k, self.confidence)
                if name in scores:
                    wider = bounded_interval(mean, e, k, self.confidence)
                    low, high = (np.where(e == 0, w, t) for w, t in zip(wider, ends, strict=True))
                    ends = low, high
            result[name] = _pairs(*ends)
        return result

    def errors(self, values: Mapping[str, pl.Expr]) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Return the standard errors of means, clustered by task, and the numbers of tasks."""
        if self.clustered:
            by_task = self.rows.group_by(GROUP, CLUSTER, maintain_order=True).agg(sums(values))
            table = self.aggregate([e for name in values for e in _clustered(name)], by_task)
        else:
            table = self.aggregate([e for name, v in values.items() for e in _independent(name, v)])
        return (
            {n: _floats(table[f"{n}/e"]) for n in values},
            {n: _floats(table[f"{n}/k"].fill_null(0)) for n in values},
        )

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
        error, clusters = below.errors({"x": under})
        rate = _floats(below.aggregate([under.mean().alias("x")])["x"])
        with np.errstate(divide="ignore", invalid="ignore"):
            worth = n * rate * (1 - rate) / (n - 1) / np.square(error["x"])
        good = np.isfinite(worth) & (worth > 0)
        return np.where(good, np.minimum(n, worth), clusters["x"]), clusters["x"]

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
                )
                result[g] = make(sample)
        return result


def sums(values: Mapping[str, pl.Expr]) -> list[pl.Expr]:
    """Return the sum of each value, as `name/s`, and how many there are, as `name/n`."""
    totals = [v.cast(pl.Float64).sum().alias(f"{name}/s") for name, v in values.items()]
    return totals + [v.count().cast(pl.Float64).alias(f"{name}/n") for name, v in values.items()]


def _independent(name: str, values: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    numbers = values.cast(pl.Float64)
    error = numbers.std() / numbers.count().cast(pl.Float64).sqrt()
    return error.alias(f"{name}/e"), numbers.count().alias(f"{name}/k")


def _clustered(name: str) -> tuple[pl.Expr, pl.Expr]:
    """Turn sums and counts by task into a standard error and the effective number of tasks."""
    total, count = pl.col(f"{name}/s"), pl.col(f"{name}/n")
    error, tasks = clustered_error(total, count)
    return error.alias(f"{name}/e"), tasks.alias(f"{name}/k")


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
