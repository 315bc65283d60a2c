"""The ratio of two sides' means on the same tasks: "1.8 times as much".

It is the ratio of what all tasks together cost, not the mean of the tasks' ratios, because a bill
is a sum. A task of 0 counts like any other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pennyweight.stats.paired import Paired
from pennyweight.stats.skewed import hall_ends, skewness


@dataclass(frozen=True, slots=True)
class Ratio:
    """The mean of the second side divided by the first's; no ends if nothing varies."""

    value: float
    low: float | None = None
    high: float | None = None


def ratio_of(paired: Paired, confidence: float, p: float) -> Ratio | None:
    """Return the ratio of the means with its interval; None without two positive means.

    The interval is symmetric on the logarithmic scale, and widened as that of the difference is.
    `p` is the test of the difference: the ratio is 1 if the difference is 0, so that one test holds
    for both, and the interval never contradicts it.

    >>> ones = np.ones(8)
    >>> found = ratio_of(Paired(ones, 2 * ones + ones.cumsum() / 9, ones, ones, "number"), 0.95, 0)
    >>> round(found.value, 2), round(found.low, 2), round(found.high, 2)
    (2.5, 2.27, 2.76)
    """
    a, b = paired.a, paired.b
    first, second = float(a.mean()), float(b.mean())
    if not paired.tasks or min(a.min(), b.min()) < 0 or not min(first, second) > 0:
        return None
    value = second / first
    if not 0 < value < math.inf:
        return None
    relative = b / second - a / first
    if paired.tasks < 2 or paired.variance == 0 or np.ptp(relative) < 1e-9:
        return Ratio(value)
    single = float(paired.differences.var(ddof=1)) / paired.tasks
    spread = float(relative.std(ddof=1)) * math.sqrt(paired.variance / single)
    log = math.log(value)
    low, high = hall_ends(log, spread, skewness(relative, spread), paired.tasks, confidence)
    if (tail := paired.tail) is not None:
        ends = tail.ratio(1 - confidence)
        low, high = min(low, float(ends[0])), max(high, float(ends[1]))
    if p > 1 - confidence:
        low, high = min(low, 0.0), max(high, 0.0)
    elif log > 0:
        low = max(low, 0.0)
    else:
        high = min(high, 0.0)
    return Ratio(value, math.exp(max(low, -600)), math.exp(min(high, 600)))
