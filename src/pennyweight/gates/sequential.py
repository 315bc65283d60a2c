"""Sequential tests: their error rates hold even if the results are checked after every task.

Each test is a bet against a claim about a mean. If the claim is true, the capital of the bet is not
expected to grow, so by Ville's inequality it reaches 1/α with probability at most α, whenever the
test stops. The values must be between 0 and 1 and in random order. Each is the mean of one task's
attempts, so repeated attempts do not count as tasks.

On passes and failures the bet is Wald's sequential probability ratio test; on other values its size
depends on the variance of the earlier tasks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pennyweight.gates.verdict import Word
from pennyweight.stats.interval import Floats

PRIOR = 60
"""How many tasks the expected variance counts as."""
CAUTIOUS = 0.9
GRID = 401
CHUNK = 500


@dataclass(frozen=True, slots=True)
class SequentialState:
    """The state of a sequential test after some tasks."""

    verdict: Word
    tasks: int
    """The number of tasks that decided it; all tasks so far while it is inconclusive."""
    for_pass: float
    """The odds against a mean of `bad` or worse, as N in "N to 1"."""
    for_fail: float
    """The odds against a mean of `good` or better."""


def bets(values: Floats, claim: float, instead: float, *, variance: float | None = None) -> Floats:
    """Return the log of the capital after each value, betting that the mean is above the claim.

    The bet grows fastest if the mean is `instead`. Without a `variance` the values are passes and
    failures, and the capital is the likelihood ratio. The last axis holds the tasks.
    """
    edge = instead - claim
    if variance is None:
        size: Floats | float = edge / (claim * (1 - claim))
    else:
        size = edge / (_variances(values, claim, variance) + edge * edge)
    most = CAUTIOUS / claim if claim > 0 else np.inf
    capital: Floats = np.cumsum(np.log1p(np.minimum(size, most) * (values - claim)), axis=-1)
    return capital


def _variances(values: Floats, mean: float, variance: float) -> Floats:
    """Estimate the variance before each value, from earlier values only."""
    before = np.arange(values.shape[-1]) + PRIOR
    ones, squares = (np.cumsum(x, axis=-1) - x for x in (values, np.square(values)))
    middle = (ones + PRIOR * mean) / before
    spread: Floats = (squares + PRIOR * (mean**2 + variance)) / before - np.square(middle)
    return np.maximum(spread, 1e-9)


def look(
    values: Floats,
    good: float,
    bad: float,
    pass_level: float,
    fail_level: float,
    *,
    variance: float | None = None,
) -> SequentialState:
    """Decide if the mean is `good` or better, or `bad` or worse; in between, both are right.

    >>> found = look(np.ones(40), good=0.9, bad=0.8, pass_level=0.05, fail_level=0.05)
    >>> found.verdict, found.tasks, round(found.for_pass, 1)
    ('pass', 26, 21.4)
    """
    if not len(values):
        return SequentialState("inconclusive", 0, 1.0, 1.0)
    rises = bets(values, bad, good, variance=variance)
    falls = bets(1 - values, 1 - good, 1 - bad, variance=variance)
    first_pass, first_fail = _first(rises, pass_level), _first(falls, fail_level)
    seen = min(first_pass, first_fail, len(values) - 1) + 1
    evidence = [math.exp(min(700.0, max(0.0, float(x[:seen].max())))) for x in (rises, falls)]
    if first_pass == first_fail:
        return SequentialState("inconclusive", seen, *evidence)
    return SequentialState("pass" if first_pass < first_fail else "fail", seen, *evidence)


def _first(capital: Floats, level: float) -> int:
    """Return the index at which the capital first reaches 1/level; the length if it never does."""
    reached = capital >= math.log(1 / level)
    return int(reached.argmax()) if reached.any() else len(capital)


def bounds(values: Floats, level: float) -> tuple[float, float]:
    """Return ends for the mean, each wrong at any time with probability at most `level`.

    >>> low, high = bounds(np.tile([1.0, 1.0, 1.0, 0.0], 50), 0.05)
    >>> round(low, 2), round(high, 2)
    (0.64, 0.86)
    """
    if not len(values):
        return 0.0, 1.0
    return _lowest(values, level), 1 - _lowest(1 - values, level)


def _lowest(values: Floats, level: float) -> float:
    grid = np.linspace(0, 1, GRID)[1:-1]
    place = np.arange(1, len(values) + 1)
    spread = _variances(values, float(np.clip(values.mean(), 0.01, 0.99)), 0.25)
    size = np.sqrt(2 * math.log(1 / level) / (spread * place * np.log1p(place)))
    capital, most = np.zeros(len(grid)), np.full(len(grid), -np.inf)
    for start in range(0, len(values), CHUNK):
        part = slice(start, start + CHUNK)
        bet = np.minimum(size[part, None], CAUTIOUS / grid)
        path = capital + np.cumsum(np.log1p(bet * (values[part, None] - grid)), axis=0)
        capital, most = path[-1], np.maximum(most, path.max(axis=0))
    refuted = most >= math.log(1 / level)
    return float(grid[refuted].max()) if refuted.any() else 0.0
