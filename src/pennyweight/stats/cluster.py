"""Standard errors of means over clustered values."""

from __future__ import annotations

import polars as pl


def clustered_error(total: pl.Expr, count: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Return the standard error of a mean, from each cluster's sum and count, and its clusters.

    The error is the jackknife's over clusters. For clusters of equal size it is the usual clustered
    error, and it stays correct if one cluster outweighs the others. The effective number of
    clusters is Kish's, N² / Σ n²: fewer if their sizes differ, and at least two.
    """
    size = count.sum()
    there = (count > 0).sum().cast(pl.Float64)
    rest = pl.when(count < size).then(size - count)
    excess = ((total - count * (total.sum() / size)) / rest) ** 2
    error = ((there - 1) / there * excess.sum()).sqrt()
    kish = size.cast(pl.Float64) ** 2 / (count.cast(pl.Float64) ** 2).sum()
    tasks = pl.when(there > 1).then(pl.max_horizontal(kish, pl.lit(2.0))).otherwise(there)
    return error, tasks
