"""Bounds for a mean over tasks, from means with random weights.

Each task's weight is drawn from a Dirichlet distribution, as in the Bayesian bootstrap, and one
unseen task is added, which has the worst possible value for a lower end. For passes and failures
this gives exactly the ends of Clopper and Pearson. For means of several attempts it is the bound of
Learned-Miller and Thomas: n tasks never give a higher lower end than n tasks without a failure.
"""

from __future__ import annotations

import math

import numpy as np

from pennyweight.stats.interval import Floats
from pennyweight.stats.quantiles import special

STEP = 0.12
NODES = STEP * np.arange(-170, 121)
LEVELS = 1000
"""With more distinct values than this, they are rounded to a thousandth."""
TURNS = 60
FAR = 8.0
"""The search for an end covers this many standard deviations."""


def drawn_ends(
    values: Floats, tries: Floats, level: float, times: float = 1.0
) -> tuple[float, float]:
    """Return ends for the mean of values in [0, 1], each wrong with probability at most `level`.

    Tasks are weighted by their attempts; their effective number is Kish's, N² / Σ n². With `times`,
    there are that many times as many tasks with the same values.

    >>> low, high = drawn_ends(np.array([1.0] * 9 + [0.0]), np.ones(10), 0.05)
    >>> round(low, 4), round(high, 4)
    (0.6058, 0.9949)
    """
    tasks = times * np.square(tries.sum()) / np.square(tries).sum()
    weights = tasks * tries / tries.sum()
    low = _lowest(values, weights, level)
    return low, 1 - _lowest(1 - values, weights, level)


def _lowest(values: Floats, weights: Floats, level: float) -> float:
    """Return the quantile of the weighted mean with one task of value 0 added."""
    if not values.max() > 0:
        return 0.0
    if len(np.unique(values)) > LEVELS:
        values = np.round(values * LEVELS) / LEVELS
    points, place = np.unique(np.append(values, 0.0), return_inverse=True)
    counts: Floats = np.bincount(place, weights=np.append(weights, 1.0)).astype(np.float64)
    total = counts.sum()
    mean = float(points @ counts / total)
    spread = math.sqrt((np.square(points - mean) @ counts) / (total * (total + 1)))
    low, high, goal = max(0.0, mean - FAR * spread), mean, float(special.ndtri(level))
    below, above = -FAR - goal, _normal(points, counts, high) - goal
    for _ in range(TURNS):
        middle = (low * above - high * below) / (above - below)
        found = _normal(points, counts, middle) - goal
        if abs(found) < 1e-8 or high - low < 1e-12:
            break
        if found > 0:
            high, above, below = middle, found, below / 2
        else:
            low, below, above = middle, found, above / 2
    return middle


def _normal(points: Floats, counts: Floats, at: float) -> float:
    """Return the probability as a normal quantile, which is nearly linear in `at`."""
    return float(special.ndtri(min(max(_chance(points, counts, at), 1e-15), 1 - 1e-15)))


def _chance(points: Floats, counts: Floats, at: float) -> float:
    """Return the probability that the weighted mean is at most this.

    The weights are gamma variates divided by their sum, so it is the probability that Σ gamma ·
    (point - at) is not above 0: Imhof's integral, over the logarithm of its variable.
    """
    gaps = points - at
    scale = 1 / np.sqrt(counts @ np.square(gaps))
    product = np.outer(scale * np.exp(NODES), gaps)
    angle = np.arctan(product) @ counts
    size = np.log1p(np.square(product)) @ counts / 2
    return float(0.5 - STEP / np.pi * (np.sin(angle) * np.exp(-size)).sum())
