"""Ends of intervals that are each right on their own, as a decision needs them.

Wilson's interval is right on the whole, but near 0 and 1 one of its ends is wrong oftener and the
other more seldom than stated. A gate looks at one end, so rates get the exact binomial ends
(Clopper and Pearson), and where tasks were repeated the same for means over tasks (Learned-Miller
and Thomas). Means of scores get Student's ends, moved out for skew.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pennyweight.stats.drawn_weights import drawn_ends
from pennyweight.stats.paired import Paired, interval
from pennyweight.stats.special import special

if TYPE_CHECKING:
    import polars as pl


def rate_ends(hits: float, n: float, level: float) -> tuple[float, float]:
    """Return ends for a rate of n tasks that were tried once, each wrong with a chance of `level`.

    >>> low, high = rate_ends(9, 10, level=0.05)
    >>> round(low, 4), round(high, 4)
    (0.6058, 0.9949)
    """
    low = special.betaincinv(hits, n - hits + 1, level) if hits > 0 else 0.0
    high = special.betaincinv(hits + 1, n - hits, 1 - level) if hits < n else 1.0
    return float(low), float(high)


def mean_ends(
    units: pl.DataFrame, level: float, *, rate: bool, times: float = 1.0
) -> tuple[float, float] | None:
    """Return ends for the mean of values in tasks; None where this way does not fit.

    `units` has a `value` for each task, the mean of its `tries`. With `times` the ends are those
    of so many times as many tasks with the same values.
    """
    if units.height < 2:
        return None
    values, tries = units["value"].to_numpy(), units["tries"].to_numpy()
    if rate and tries.max() == 1:
        return rate_ends(round(values.sum() * times), len(values) * times, level)
    if rate:
        return drawn_ends(values, tries, level, times)
    if np.ptp(values) < 1e-9 or np.ptp(tries) > 0:
        return None
    found = interval(Paired(np.zeros(len(values)), values, tries, tries, "number"), 1 - 2 * level)
    if found is None:
        return None
    middle = float(values.mean())
    low, high = (middle + (end - middle) / math.sqrt(times) for end in found)
    return max(0.0, low), min(1.0, high)
