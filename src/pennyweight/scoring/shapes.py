"""The shape of a metric's body, from which the kind of its interval follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from pennyweight.stats.resample import ResampledRows

if TYPE_CHECKING:
    from pennyweight.define import Metric


@dataclass(frozen=True, slots=True)
class Shape:
    """A mean or a quantile of one value a record, or (without `values`) something else."""

    values: pl.Expr | None = None
    share: float | None = None
    """Which quantile; None for a mean."""


def shape_of(expression: pl.Expr) -> Shape:
    """Find out whether an expression is the mean or a quantile of something.

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
