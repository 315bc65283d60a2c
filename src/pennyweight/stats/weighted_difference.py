"""The paired difference of two sides whose tasks have different weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pennyweight.stats.interval import t_quantile
from pennyweight.stats.paired import Paired, tango

if TYPE_CHECKING:
    from pennyweight.stats.interval import Floats


def weighted_interval(paired: Paired, weights: Floats, confidence: float) -> tuple[float, float]:
    """Return the interval of a weighted mean difference of shares or scores.

    Its error is the jackknife's over tasks. The effective number of tasks is Kish's, W² / Σ w², so
    a single task that dominates leaves everything open.

    >>> from pennyweight.stats.paired import Paired
    >>> ones, flat = np.ones(40), np.ones(40)
    >>> ends = weighted_interval(Paired(ones, ones, flat, flat, "rate"), flat, 0.9)
    >>> [round(end, 3) for end in ends]
    [-0.066, 0.066]
    """
    there = weights > 0
    share = weights[there] / weights[there].sum()
    a, b = paired.a[there], paired.b[there]
    worth = 1 / float(np.square(share).sum())
    quantile = float(t_quantile(np.array(max(worth, 2.0)), confidence))
    difference = b - a
    mean = float((share * difference).sum())
    more, less = float((share * b * (1 - a)).sum()), float((share * a * (1 - b)).sum())
    error = _error(share, difference, mean)
    each = more + less - (more - less) ** 2
    most = worth * float(paired.tries[there].mean()) if paired.kind == "rate" else math.inf
    size = min(most, each / error**2) if error > 0 and each > 0 else worth
    low, high = tango(more, less, size, quantile)
    low, high = min(low, mean - quantile * error), max(high, mean + quantile * error)
    return max(-1.0, low), min(1.0, high)


def _error(share: Floats, difference: Floats, mean: float) -> float:
    """Return the jackknife error of a weighted mean; 0 for one task."""
    n = len(share)
    if n < 2:
        return 0.0
    excess = share * (difference - mean) / (1 - share)
    return math.sqrt((n - 1) / n * float(np.square(excess).sum()))
