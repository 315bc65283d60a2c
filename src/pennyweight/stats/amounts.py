"""The power to tell apart two sides whose amounts (costs, tokens, times) are log-normal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pennyweight.stats.interval import Floats, t_quantile
from pennyweight.stats.quantiles import special
from pennyweight.stats.sign_flips import all_signs
from pennyweight.stats.skewed import LongTail, hall_distance, lightness

DRAWS = 450
MOST_TASKS = 300
"""With more tasks than this, power is computed from the variance alone."""
FEW = 12
"""With this many tasks or fewer, the signs of simulated results are flipped too."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """How both sides' amounts vary, on the logarithmic scale.

    The second side costs a factor more on every task. How much amounts vary, and their mean, are
    known from few tasks, so power is averaged over what they may be.
    """

    mean: float
    """The mean of the first side."""
    sizes: float
    """The variance of the sums of both sides' logarithms."""
    ratios: float
    """The variance of their differences."""
    related: float
    """The correlation of sums and differences."""
    seen: int
    """The number of tasks that these estimates are based on."""

    @classmethod
    def of(cls, a: Floats, b: Floats) -> Amounts | None:
        """Estimate from results; None unless all are above 0 and their ratios vary."""
        if len(a) < 4 or min(a.min(), b.min()) <= 0:
            return None
        sizes, ratios = np.log(a) + np.log(b), np.log(b) - np.log(a)
        of_sizes, of_ratios = float(sizes.var(ddof=1)), float(ratios.var(ddof=1))
        if of_ratios < 1e-12:
            return None
        logs = np.stack([np.log(a), np.log(b)])
        light = float(lightness(logs - logs.mean(axis=1, keepdims=True), np.array(len(a))).mean())
        both = float(np.cov(sizes, ratios)[0, 1])
        related = max(-1.0, min(1.0, both / math.sqrt(max(of_sizes * of_ratios, 1e-300))))
        return cls(float(a.mean()), light * of_sizes, light * of_ratios, related, len(a))

    def power(self, tasks: int, difference: float, level: float) -> float:
        """Return the probability that so many tasks show that the second side costs more."""
        drawn = _drawn(self, tasks)
        factor = 1 + difference / drawn.means
        if tasks > MOST_TASKS:
            return drawn.far_power(factor, tasks, level)
        shown = drawn.tail.log_ratio + np.log(factor) > _below(self, tasks, level)
        limit = float(t_quantile(np.array(tasks), 1 - level))
        shown &= drawn.distance(factor, tasks) > limit
        if tasks <= FEW:
            shown &= drawn.flipped(factor) <= level
        return float(shown.mean())


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Simulated results of two sides with the same mean."""

    a: Floats
    b: Floats
    means: Floats
    """What the mean of the first side may be; the simulated one is 1."""
    variances: tuple[Floats, Floats, Floats]
    """Of the logarithms of both sides, and their covariance."""
    tail: LongTail
    products: tuple[Floats, ...]
    """Sums of products of two and three deviations from the means: aa, ab, bb, aaa, aab, …"""

    def distance(self, factor: Floats, tasks: int) -> Floats:
        """Return how many standard errors the differences are from 0; negative ones count as 0."""
        aa, ab, bb, aaa, aab, abb, bbb = self.products
        second, first = self.tail.means[1] * factor, self.tail.means[0]
        square = np.square(factor) * bb - 2 * factor * ab + aa
        cube = factor**3 * bbb - 3 * np.square(factor) * abb + 3 * factor * aab - aaa
        mean, spread = second - first, np.sqrt(np.maximum(square / (tasks - 1), 1e-300))
        third = cube * tasks / ((tasks - 1) * max(tasks - 2, 1))
        found = hall_distance(mean / spread, third / spread**3, tasks)
        return np.where(mean > 0, found, 0.0)

    def flipped(self, factor: Floats) -> Floats:
        """Return the p of flipping signs."""
        values = (factor[:, None] * self.b - self.a).astype(np.float32)
        signs = all_signs(values.shape[1])
        sums = values @ signs.T
        extreme = np.abs(sums, out=sums) >= np.abs(values.sum(axis=1))[:, None] * (1 - 1e-5)
        p: Floats = np.count_nonzero(extreme, axis=1) / len(signs)
        return p

    def far_power(self, factor: Floats, tasks: int, level: float) -> float:
        """Return the power of many tasks, whose mean difference is nearly normal."""
        a, b, both = (np.expm1(np.minimum(x, 50.0)) for x in self.variances)
        spread = np.sqrt(np.maximum(np.square(factor) * b + a - 2 * factor * both, 1e-300))
        shift = (factor - 1) / spread * math.sqrt(tasks)
        return float(special.ndtr(shift - special.ndtri(1 - level / 2)).mean())


@lru_cache(maxsize=8)
def _below(amounts: Amounts, tasks: int, level: float) -> Floats:
    """Return how far below what is seen each simulated log ratio may be."""
    return _drawn(amounts, tasks).tail.halves(level)[0]


@lru_cache(maxsize=8)
def _drawn(amounts: Amounts, tasks: int) -> _Drawn:
    rng = np.random.default_rng([tasks, amounts.seen])
    free = amounts.seen - 1
    share = (np.arange(DRAWS) + 0.5) / DRAWS
    likely = free / (2 * special.gammaincinv(free / 2, share))
    sizes, ratios = (
        amounts.sizes * rng.permutation(likely),
        amounts.ratios * rng.permutation(likely),
    )
    bounded = min(max(amounts.related, -1 + 1e-12), 1 - 1e-12)
    around = special.ndtri(rng.permutation(share)) / math.sqrt(max(amounts.seen - 3, 1))
    related = np.tanh(math.atanh(bounded) + around)
    covered = related * np.sqrt(sizes * ratios)
    first, second = (sizes + ratios - 2 * covered) / 4, (sizes + ratios + 2 * covered) / 4
    seen = (
        amounts.sizes + amounts.ratios - 2 * bounded * math.sqrt(amounts.sizes * amounts.ratios)
    ) / 4
    error = np.sqrt(first / amounts.seen) * special.ndtri(rng.permutation(share))
    means = amounts.mean * np.exp((first - seen) / 2 + error)
    z = rng.standard_normal((2, DRAWS, min(tasks, MOST_TASKS)))
    apart = np.sqrt(ratios)[:, None] * (
        related[:, None] * z[0] + np.sqrt(1 - np.square(related))[:, None] * z[1]
    )
    whole = np.sqrt(sizes)[:, None] * z[0]
    a = np.exp((whole - apart - first[:, None]) / 2)
    b = np.exp((whole + apart - second[:, None]) / 2)
    both = (sizes - ratios) / 4
    return _Drawn(a, b, means, (first, second, both), LongTail.of(a, b), _products(a, b))


def _products(a: Floats, b: Floats) -> tuple[Floats, ...]:
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    aa, ab, bb = a * a, a * b, b * b
    return tuple(x.sum(axis=1) for x in (aa, ab, bb, aa * a, aa * b, ab * b, bb * b))
