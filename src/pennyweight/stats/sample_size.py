"""How many tasks a question needs: the fewest with which it is answered as often as wanted."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pennyweight.stats.interval import t_quantile, z_quantile
from pennyweight.stats.paired import tango
from pennyweight.stats.quantiles import special
from pennyweight.stats.variation import Variation

MAX_TASKS = 10_000_000
"""A question that needs more tasks than this cannot be answered."""


def fewest(enough: Callable[[int], bool], most: int = MAX_TASKS) -> int | None:
    """Return the fewest tasks that are enough; None if `most` are not.

    >>> fewest(lambda tasks: tasks >= 77)
    77
    """
    low, high = 1, 2
    while not enough(high):
        low, high = high, high * 2
        if high > most:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def tasks_for_difference(
    variation: Variation, difference: float, runs: int, level: float, power: float
) -> int | None:
    """Return how many tasks show a difference between two sides; of numbers, relative to the less.

    >>> tasks_for_difference(Variation.of_rate(0.8, 0.7, 0.7), 0.05, 1, 0.05, 0.8)
    559
    """
    design, apart = variation.design(runs, difference), _amount(variation, difference)
    return fewest(lambda tasks: design.power(tasks, apart, level) >= power)


def _amount(variation: Variation, difference: float) -> float:
    return difference * variation.mean if variation.kind == "number" else difference


def tasks_for_margin(
    variation: Variation, margin: float, runs: int, level: float, power: float
) -> int | None:
    """Return how many tasks show that one of two equal sides is not worse by more than a margin.

    `level` is the probability of showing it wrongly, of a side that is worse by the margin.
    """
    if variation.kind != "rate":
        design, apart = variation.design(runs), _amount(variation, margin)
        strict = level if variation.kind == "number" else 2 * level  # as `log_ratio_ends` is
        return fewest(lambda tasks: design.power(tasks, apart, strict) >= power)
    once = runs == 1 or variation.task_share == 1
    spread, apart = variation.of_difference(runs), variation.discordance

    def enough(tasks: int) -> bool:
        confidence = 1 - 2 * level
        at = z_quantile(confidence) if once else float(t_quantile(np.array(tasks), confidence))
        worth = tasks * apart / spread
        low, high = -margin, min(apart, 1.0)
        for _ in range(30):
            middle = (low + high) / 2
            more, less = (apart + middle) / 2, (apart - middle) / 2
            reached = tango(more, max(less, 0.0), worth, at)[0] >= -margin
            low, high = (low, middle) if reached else (middle, high)
        return float(special.ndtr(-high / math.sqrt(spread / tasks))) >= power

    return fewest(enough)
