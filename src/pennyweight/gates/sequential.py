"""Group-sequential tests: their error rates hold although the results are checked many times.

Each look tests at a level of its own, which is stricter than the stated error rate. Together the
looks spend that rate and no more (Lan and DeMets 1983). In a small suite most of it is kept for the
last look, which then has nearly the power of a test that looks only once.

For passes and failures the levels are exact. For other means they follow from the joint normal
distribution of a mean at growing numbers of tasks. The tasks must be in random order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pennyweight.gates.verdict import Word
from pennyweight.stats.interval import Floats
from pennyweight.stats.quantiles import special

FIRST = 10
GROWTH = 1.13
"""The factor by which the tasks grow from one look to the next: few looks, little waste."""
RESERVE = 0.05
"""The part of the error rate that is kept for the whole suite, if a part of it should suffice."""
HORIZON, SCORES = 1.5, 1.1
"""How many times the tasks of a test that looks once are planned for; less for scores and costs,
whose intervals have wide tails at the strict levels of early looks."""
NODES = 120
"""Intervals of Simpson's rule."""
FAR = 6.0
TINY = 1e-18


def sizes(tasks: int, first: int = FIRST) -> Iterator[int]:
    """Yield the numbers of tasks after which the policy is decided.

    >>> list(sizes(20))
    [10, 12, 14, 16, 18, 20]
    """
    size = first
    while size < tasks:
        yield size
        size = max(FIRST, size + 2, int(size * GROWTH))
    yield tasks


def horizon(
    deviations: tuple[float, float],
    zone: float,
    levels: tuple[float, float],
    times: float = HORIZON,
) -> float:
    """Return after how many tasks the error rate is spent, if the suite has enough.

    It is a multiple of what a test that looks once takes to tell the ends of the zone apart.
    `deviations` are the standard deviations at the bad end and at the good end.

    >>> round(horizon((0.357, 0.3), 0.05, (0.05, 0.05)))
    701
    """
    spread = sum(-special.ndtri(x) * s for x, s in zip(levels, deviations, strict=True))
    return float(times * (spread / zone) ** 2)


def spent(done: float, needed: float, planned: float, level: float) -> float:
    """Return how much of an error rate may be spent after `done` of the planned tasks.

    If the suite has the tasks that are needed, it is spent evenly up to there, which ends most runs
    early. Otherwise most of it is kept for the end.

    >>> round(spent(50, 500, 100, 0.05), 4), round(spent(25, 50, 100, 0.05), 5)
    (0.0125, 0.02391)
    """
    late = (min(done, planned) / planned) ** 2
    if needed >= planned:
        return level * late
    soon = min(done, needed) / needed if needed > 0 else 1.0
    return level * ((1 - RESERVE) * soon + RESERVE * late)


@dataclass(frozen=True, slots=True)
class Boundary:
    """For each number of tasks, what rules a claim about a rate out."""

    least: Floats
    """The least number of passes; more than there are tasks if no number suffices."""
    levels: Floats
    """The probability of so many passes in a test that looks once, if the claim is just true."""


@lru_cache(maxsize=256)
def boundary(
    claim: float, level: float, needed: float, planned: int, tasks: int, *, whole: bool
) -> Boundary:
    """Return what rules out that a rate is `claim` or less, when looking after every task.

    Over all looks, a true claim is ruled out with a probability of at most `level`. If the suite
    is `whole`, the last look spends what is left.

    >>> found = boundary(0.8, 0.05, math.inf, 100, 30, whole=False)
    >>> [int(found.least[n - 1]) for n in (25, 26, 30)]
    [26, 26, 31]
    """
    least, levels = np.empty(tasks), np.empty(tasks)
    chances, start, used = np.ones(1), 0, 0.0  # of each number of passes without a decision so far
    for n in range(1, tasks + 1):
        grown = np.zeros(len(chances) + 1)
        grown[:-1] = chances * (1 - claim)
        grown[1:] += chances * claim
        free = spent(n, needed, planned, level) - used
        if whole and n == tasks:
            free = level - used
        tails = np.cumsum(grown[::-1])
        out = int(np.searchsorted(tails, free + 1e-15, side="right"))
        used += float(tails[out - 1]) if out else 0.0
        least[n - 1] = start + len(grown) - out if out else n + 1
        levels[n - 1] = special.bdtrc(least[n - 1] - 1, n, claim) if out else max(free, 0.0)
        chances = grown[: len(grown) - out] if out else grown
        if len(chances) and chances[0] < TINY:
            gone = int(np.argmax(chances >= TINY)) if chances.max() >= TINY else len(chances)
            chances, start = chances[gone:], start + gone
        if not len(chances):  # everything is decided
            chances, start = np.zeros(1), n
    return Boundary(least, levels)


@dataclass(frozen=True, slots=True)
class Look:
    """The result of a look: the verdict, the tasks, and the levels of both ends."""

    verdict: Word
    tasks: int
    pass_level: float
    fail_level: float


def rate_look(
    passes: Floats,
    claims: tuple[float, float],
    levels: tuple[float, float],
    planned: int,
    *,
    whole: bool,
) -> Look:
    """Decide if a rate is above the lower claim (pass) or below the higher one (fail).

    If both are shown by the same task, the rate misses the higher claim, which is the threshold.

    >>> rate_look(np.ones(40), (0.8, 0.9), (0.05, 0.05), 100, whole=False).tasks
    26
    """
    bad, good = claims
    sides = (math.sqrt(bad * (1 - bad)), math.sqrt(good * (1 - good)))
    needed, n = horizon(sides, good - bad, levels), len(passes)
    hits, place = np.cumsum(passes), np.arange(1, n + 1)
    up = boundary(bad, levels[0], needed, planned, n, whole=whole)
    down = boundary(1 - good, levels[1], needed, planned, n, whole=whole)
    passed, failed = hits >= up.least, place - hits >= down.least
    decided = np.flatnonzero(passed | failed)
    last = int(decided[0]) if len(decided) else n - 1
    word: Word = "fail" if failed[last] else "pass" if passed[last] else "inconclusive"
    return Look(word, last + 1, float(up.levels[last]), float(down.levels[last]))


@dataclass(frozen=True, slots=True)
class Walk:
    """The undecided paths of a normal mean after some looks: a density at points, with weights."""

    points: Floats
    weights: Floats
    time: float
    spent: float

    @classmethod
    def start(cls) -> Walk:
        """Return the walk before the first look."""
        return cls(np.zeros(1), np.ones(1), 0.0, 0.0)

    def look(self, time: float, total: float) -> tuple[float, Walk]:
        """Return the level of a look, and the walk after it.

        `time` is proportional to the inverse of the mean's variance; `total` is the error rate that
        may be spent so far.

        >>> first, walk = Walk.start().look(1.0, 0.025)
        >>> second, _ = walk.look(2.0, 0.05)
        >>> round(first, 4), round(second, 4)
        (0.025, 0.0354)
        """
        step, root = math.sqrt(time - self.time), math.sqrt(time)
        free = max(total - self.spent, 0.0)

        def beyond(end: float) -> float:
            return float(self.weights @ special.ndtr((self.points - end) / step))

        low, high = -FAR * root, 9 * root
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if beyond(middle) > free else (low, middle)
        end = min(high, FAR * root)
        points = np.linspace(-FAR * root, end, NODES + 1)
        simpson = np.where(np.arange(NODES + 1) % 2, 4.0, 2.0)
        simpson[[0, -1]] = 1.0
        apart = (points[:, None] - self.points) / step
        density = np.exp(-np.square(apart) / 2) @ self.weights / (step * math.sqrt(2 * math.pi))
        weights = density * simpson * (points[1] - points[0]) / 3
        level = float(special.ndtr(-high / root))
        return level, Walk(points, weights, time, self.spent + beyond(high))
