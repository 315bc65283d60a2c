"""Metrics that are a mean or a quantile of one value per record: the value is computed in parts.

The value of most metrics depends on its record alone, so that it is computed part by part. If a
metric reads the task, it depends on the records of the same task, and is computed for some of the
tasks at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from pennyweight.define import Metric
from pennyweight.scoring.groups import GROUP, Shape, shape_of
from pennyweight.stats.resample import CLUSTER, JackknifedSums, Linearised, ResampledSums

SLICES = 16
"""In how many slices the tasks are looked at."""
_RECORD = "\0record"


@dataclass(frozen=True, slots=True)
class ValueMetric:
    """A metric, and the value per record that it is a mean or a quantile of."""

    metric: Metric
    values: pl.Expr
    share: float | None
    is_median: bool

    @classmethod
    def of(cls, metric: Metric, options: Mapping[str, Any]) -> ValueMetric | None:
        """Return how a metric is computed from one value per record; None if it is not."""
        if metric.over == "tasks":
            return None
        body = metric.expression(options)
        shape = shape_of(body)
        if shape.values is None or not _same_values(metric, shape, options):
            return None
        if metric.is_users and not shape.values.meta.is_column():  # it may depend on all records
            return None
        is_median = body.meta.undo_aliases().meta.eq(shape.values.median())
        return cls(metric, shape.values.alias(metric.name), shape.share, is_median)

    @property
    def by_task(self) -> bool:
        """Whether the value of a record depends on the others of its task."""
        return "task_id" in self.metric.inputs

    def reduced(self) -> Metric:
        """Return the metric as one of its values, in a column of its name."""

        def function(values: pl.Expr) -> pl.Expr:
            if self.is_median:
                return values.median()
            if self.share is not None:
                return values.quantile(self.share, interpolation="equiprobable")
            return values.mean()

        interval = self.metric.interval
        if isinstance(interval, Linearised):
            interval = replace(interval, terms=lambda values: values)
        return replace(
            self.metric, function=function, inputs=(self.metric.name,), needs=(), options={},
            interval=interval,
        )  # fmt: skip

    def missing(self) -> pl.Expr:
        """Return whether a record lacks what the metric needs."""
        if not self.metric.needs:
            return pl.all_horizontal(pl.col(name).is_null() for name in self.metric.inputs)
        return pl.any_horizontal(pl.col(name).is_null() for name in self.metric.needs)

    def skipped(self, missing: int, records: int) -> int:
        """Return how many records are left out; a metric that needs no value uses all or none."""
        return missing if self.metric.needs or missing == records else 0

    def read(self, rows: pl.DataFrame) -> pl.Series:
        """Return the value of each record, given the columns of whole tasks and their groups."""
        numbered = rows.with_row_index(_RECORD)
        kind = rows.clear().select(self.values).to_series().dtype
        found = np.full(rows.height, np.nan)
        for number in range(SLICES):
            part = numbered.filter(pl.col(CLUSTER) % SLICES == number)
            for group in part.partition_by(GROUP):
                values = group.select(self.values).to_series().cast(pl.Float64)
                found[group[_RECORD].to_numpy()] = values.fill_null(np.nan).to_numpy()
        return pl.Series(self.metric.name, found).fill_nan(None).cast(kind)


def parts_text(metric: Metric) -> str:
    """Describe in a few words how a metric of a table larger than memory is put together."""
    if metric.combined:
        return "from its parts"
    if metric.over == "tasks":
        return "its columns are read whole"
    by_value = ValueMetric.of(metric, {})
    if by_value is not None:
        others = "from the records of its task" if by_value.by_task else "part by part"
        return f"one value a record, computed {others}"
    if isinstance(metric.interval, ResampledSums | JackknifedSums):
        return "its columns are read whole; sums by block of tasks are added up"
    return "its columns are read whole"


def _same_values(metric: Metric, shape: Shape, options: Mapping[str, Any]) -> bool:
    """Whether the metric's interval is of the same values: its own method may read others."""
    interval = metric.interval
    if interval is None:
        return True
    if not isinstance(interval, Linearised) or interval.bias or interval.least:
        return False
    terms = interval.terms(*(pl.col(n) for n in metric.inputs), **metric.own(options))
    return shape.values is not None and shape.values.meta.eq(terms)
