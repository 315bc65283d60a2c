"""Ends of intervals that are each right on their own, as a decision needs them.

Wilson's interval is right on the whole, but near 0 and 1 one of its ends is wrong oftener and the
other more seldom than stated. A gate looks at one end, so rates get the exact binomial ends
(Clopper and Pearson); where tasks were repeated, with the sample size that the clustered error is
worth (Korn and Graubard). Means of scores get Student's ends, moved out for skew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from assay.stats.cluster import clustered_error
from assay.stats.compare import Paired, interval
from assay.stats.interval import t_quantile, z_quantile
from assay.stats.lazy import special

if TYPE_CHECKING:
    from assay.stats.interval import Array, Floats


def rate_ends(
    rate: Array, error: Array, n: Array, clusters: Array, level: float
) -> tuple[Floats, Floats]:
    """Give ends for rates out of n in so many tasks, each wrong with a chance of `level`.

    >>> low, high = rate_ends(*(np.array([x]) for x in (0.9, 0.0, 10.0, 10.0)), level=0.05)
    >>> round(low.item(), 4), round(high.item(), 4)
    (0.6058, 0.9949)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = rate * (1 - rate) / (n - 1)
        worth = np.where((plain > 0) & (error > 0), n * plain / np.square(error), clusters)
    confidence = 1 - 2 * level
    shrink = np.square(z_quantile(confidence) / t_quantile(clusters, confidence))
    size = np.where(clusters < n, np.minimum(n, worth) * shrink, n)
    hits = rate * size
    misses = size - hits
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(hits > 0, special.betaincinv(hits, misses + 1, level), 0.0)
        high = np.where(misses > 0, special.betaincinv(hits + 1, misses, 1 - level), 1.0)
    return low, high


def mean_ends(units: pl.DataFrame, level: float, *, rate: bool) -> tuple[float, float] | None:
    """Give ends for the mean of values in tasks; None where this way does not fit.

    `units` has a `value` for each task, the mean of its `tries`.
    """
    if units.height < 2:
        return None
    if rate:
        table = units.with_columns((pl.col("value") * pl.col("tries")).alias("s"))
        error, tasks = clustered_error(pl.col("s"), pl.col("tries"))
        n = pl.col("tries").sum()
        row = table.select(
            (pl.col("s").sum() / n).alias("mean"),
            error.alias("error"),
            n.alias("n"),
            tasks.alias("k"),
        ).row(0)
        mean, spread, count, clusters = (np.array([float(x)]) for x in row)
        low, high = rate_ends(mean, spread, count, clusters, level)
        return float(low[0]), float(high[0])
    values, tries = units["value"].to_numpy(), units["tries"].to_numpy()
    if np.ptp(values) < 1e-9 or np.ptp(tries) > 0:
        return None
    found = interval(Paired(np.zeros(len(values)), values, tries, tries, "number"), 1 - 2 * level)
    return None if found is None else (max(0.0, found[0]), min(1.0, found[1]))
