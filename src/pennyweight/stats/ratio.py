"""The ratio of two sides' means on the same tasks: "1.8 times as much".

It is the ratio of what all tasks together cost, not the mean of the tasks' ratios, because a bill
is a sum. A task of 0 counts like any other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pennyweight.stats.paired import ROUNDING, Paired
from pennyweight.stats.skewed import LARGEST, hall_ends, skewness


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
    (2.5, 2.28, 2.74)
    """
    ends = log_ratio_ends(paired, confidence)
    first, second = float(paired.a.mean()), float(paired.b.mean())
    if ends is None:
        return Ratio(second / first) if _has_ratio(paired) else None
    log, (low, high) = math.log(second / first), ends
    if p > 1 - confidence:
        low, high = min(low, 0.0), max(high, 0.0)
    elif log > 0:
        low = max(low, 0.0)
    else:
        high = min(high, 0.0)
    return Ratio(second / first, math.exp(low), math.exp(high))


def log_ratio_ends(
    paired: Paired, confidence: float, *, one_sided: bool = False
) -> tuple[float, float] | None:
    """Return the interval of the logarithm of the ratio; None if nothing varies.

    `one_sided` is that of `interval`.
    """
    if not _has_ratio(paired) or paired.tasks < 2 or paired.variance == 0:
        return None
    first, second = float(paired.a.mean()), float(paired.b.mean())
    relative = paired.b / second - paired.a / first
    if np.ptp(relative) < ROUNDING:
        return None
    single = float(paired.differences.var(ddof=1)) / paired.tasks
    spread = float(relative.std(ddof=1)) * math.sqrt(paired.variance / single)
    skew, log = skewness(relative, spread), math.log(second / first)
    low, high = hall_ends(log, spread, skew, paired.tasks, confidence)
    if (tail := paired.tail) is not None:
        ends = tail.ratio((1 - confidence) / (2 if one_sided else 1))
        low, high = min(low, float(ends[0])), max(high, float(ends[1]))
    return max(low, -LARGEST), min(high, LARGEST)


def _has_ratio(paired: Paired) -> bool:
    """Whether no value is negative and both means are above 0."""
    a, b = paired.a, paired.b
    if not paired.tasks or min(a.min(), b.min()) < 0 or min(a.max(), b.max()) <= 0:
        return False
    return 0 < float(b.mean()) / float(a.mean()) < math.inf
