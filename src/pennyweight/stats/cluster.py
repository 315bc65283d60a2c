"""Standard errors of means whose values hang together in clusters."""

from __future__ import annotations

import polars as pl


def clustered_error(total: pl.Expr, count: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Give the standard error of a mean from each cluster's sum and count, and its clusters.

    The error is that of leaving one cluster out at a time, which with clusters of one size is the
    usual clustered error, and stays honest where one cluster outweighs the others. The clusters
    are counted as Kish does, N² / Σ n²: fewer where their sizes differ, two at the least.
    """
    size = count.sum()
    there = (count > 0).sum().cast(pl.Float64)
    rest = pl.when(count < size).then(size - count)
    excess = ((total - count * (total.sum() / size)) / rest) ** 2
    error = ((there - 1) / there * excess.sum()).sqrt()
    kish = size.cast(pl.Float64) ** 2 / (count.cast(pl.Float64) ** 2).sum()
    tasks = pl.when(there > 1).then(pl.max_horizontal(kish, pl.lit(2.0))).otherwise(there)
    return error, tasks
