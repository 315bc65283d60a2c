"""Means of skewed values, such as costs and times, of one or many results at once.

Student's interval misses the mean of values with a long tail: if the tail is not among the tasks,
both the mean and its error look small. Two corrections are used together. Hall's transformation
uses the skewness that was seen. `LongTail` estimates, from the logarithms of both sides, what may
have been missed: for log-normal values it holds even if a steady side meets one with a long tail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pennyweight.stats.interval import Floats, t_quantile
from pennyweight.stats.quantiles import special

LEAST = 3
"""The fewest tasks whose logarithms say something about a tail."""
LARGEST = 600.0
"""The largest logarithm of a bound, so that bounds stay finite."""
LIGHTEST = 1 / 3
"""The smallest share of a log-normal tail that values can have."""


def hall_ends(
    value: float, spread: float, skew: float, n: int, confidence: float
) -> tuple[float, float]:
    """Return Student's interval of a mean, or Hall's for skewed values where that is wider.

    >>> [round(end, 2) for end in hall_ends(1.0, 2.0, 3.0, 20, 0.95)]
    [0.06, 4.56]
    """
    quantile = float(t_quantile(np.array(n), confidence)) / math.sqrt(n)
    steps = [quantile, -quantile]
    if abs(skew) > 1e-6:
        bent = [1 + skew * (step - skew / (6 * n)) for step in steps]
        steps += [3 / skew * float(np.cbrt(x) - 1) for x in bent]
    return value - spread * max(steps), value - spread * min(steps)


def hall_distance(ratio: Floats, skew: Floats, n: int) -> Floats:
    """Return how many standard errors a mean is from 0, as Hall's interval counts them.

    `ratio` is the mean divided by the standard deviation.
    """
    skew, ratio = np.where(ratio > 0, skew, -skew), np.abs(ratio)
    bent = ratio + skew * ratio**2 / 3 + skew**2 * ratio**3 / 27 + skew / (6 * n)
    distance: Floats = math.sqrt(n) * np.minimum(ratio, np.maximum(bent, 0.0))
    return distance


def skewness(values: Floats, spread: float) -> float:
    """Return the skewness, adjusted for few values; 0 for two."""
    n = len(values)
    third = float(np.sum((values - values.mean()) ** 3)) * n / ((n - 1) * max(n - 2, 1))
    return third / spread**3


@dataclass(frozen=True, slots=True)
class LongTail:
    """The ratio of two sides' means, with what log-normal values of these logarithms may hide.

    On the logarithmic scale the ratio of two log-normal means is the mean of the tasks' log ratios
    plus half the difference of the sides' variances. Its error has three parts: that of the mean,
    that of the relation between log ratios and sizes (a slope, so tasks that are dear on both sides
    cancel out), and that of the variance itself, whose distribution is chi-squared.
    """

    log_ratio: Floats
    tasks: Floats
    """The number of tasks with a value above 0 on both sides."""
    apart: Floats
    """The variance of the mean log ratio."""
    slope: Floats
    """The standard error of half the difference of variances, for a known scale."""
    excess: Floats
    """By how much half the variance of the second side is above that of the first."""
    means: tuple[Floats, Floats]
    second: Floats
    """The share of the second side in the variances."""

    @classmethod
    def of(cls, a: Floats, b: Floats) -> LongTail:
        """Estimate from values that are not negative; the last axis is that of the tasks."""
        both = (a > 0) & (b > 0)
        n = np.maximum(both.sum(axis=-1), 1).astype(np.float64)
        logs = [np.log(np.where(both, side, 1.0)) for side in (a, b)]
        logs = [np.where(both, x - (x.sum(axis=-1) / n)[..., None], 0.0) for x in logs]
        free = np.maximum(n - 1, 1)
        sizes, ratios = logs[0] + logs[1], logs[1] - logs[0]
        of_a, of_b, of_sizes, of_ratios = (
            np.square(x).sum(axis=-1) / free for x in (*logs, sizes, ratios)
        )
        means = a.mean(axis=-1), b.mean(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            related = (sizes * ratios).sum(axis=-1) / free / np.sqrt(of_sizes * of_ratios)
            left = 1 - np.square(np.nan_to_num(related))
            second = np.nan_to_num(of_b / (of_a + of_b), nan=0.5)
            relative = b / means[1][..., None] - a / means[0][..., None]
            seen = np.nan_to_num(relative.var(axis=-1, ddof=1) / of_ratios, nan=1.0, posinf=1.0)
            log_ratio = np.log(means[1] / means[0])
        light = (1 - second) * lightness(logs[0], n) + second * lightness(logs[1], n)
        light = light * np.sqrt(np.clip(seen, LIGHTEST, 1.0))
        slope = np.sqrt(np.maximum(left, 0.0) * of_sizes * of_ratios / np.maximum(n - 2, 1)) / 2
        apart, excess = np.minimum(light, 1.0) * of_ratios / n, light * (of_b - of_a) / 2
        return cls(log_ratio, n, apart, light * slope, excess, means, second)

    def halves(self, level: float) -> tuple[Floats, Floats]:
        """Return how far the log ratio may be below and above what was seen.

        `level` is the probability that either is wrong.
        """
        free = np.maximum(self.tasks - 1, 1.0)
        rest = np.maximum(self.tasks - 2, 1.0)
        tail = level / 2
        mean = np.square(special.stdtrit(free, tail)) * self.apart
        mean = mean + np.square(special.stdtrit(rest, tail) * self.slope)
        with np.errstate(divide="ignore"):
            longer = free / (2 * special.gammaincinv(free / 2, tail)) - 1
        shorter = 1 - free / (2 * special.gammainccinv(free / 2, tail))
        longer = np.minimum(longer, 1e150)
        up, down = np.where(self.excess > 0, (longer, shorter), (shorter, longer))
        known = self.tasks >= LEAST
        below, above = (
            np.where(known, np.sqrt(mean + np.square(self.excess * by)), 0.0) for by in (down, up)
        )
        return below, above

    def doubtful(self, level: float) -> bool:
        """Whether the tail of one result is so little known that it may double the ratio."""
        free = max(float(self.tasks) - 1, 1.0)
        longer = free / (2 * float(special.gammaincinv(free / 2, level / 2))) - 1
        return bool(abs(float(self.excess)) * longer > math.log(2))

    def ratio(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the logarithm of the ratio of means."""
        below, above = self.halves(level)
        low, high = self.log_ratio - below, self.log_ratio + above
        return np.maximum(low, -LARGEST), np.minimum(high, LARGEST)

    def difference(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the difference of means; they have the signs of those of the ratio.

        What the ratio may be off is put on both sides, as far as each one's values vary.
        """
        first, second = self.means
        low, high = (
            self.second * first * np.expm1(end) - (1 - self.second) * second * np.expm1(-end)
            for end in self.ratio(level)
        )
        return low, high

    def touching(self, least: float) -> float:
        """Return the level at which the interval of one result ends at 0, at least `least`."""
        low, high = math.log(max(least, 1e-300)), 0.0
        if not self._open(math.exp(low)):
            return least
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self._open(math.exp(middle)) else (low, middle)
        return math.exp(high)

    def _open(self, level: float) -> bool:
        below, above = self.halves(level)
        return bool(-above < self.log_ratio < below)


def lightness(logs: Floats, n: Floats) -> Floats:
    """Return how large a side's tail is, compared with a log-normal one.

    Logarithms that are skewed to the left, as those of exponential times are, have a lighter tail.
    """
    spread = np.sqrt(np.square(logs).sum(axis=-1) / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        skew = np.nan_to_num((logs * logs * logs).sum(axis=-1) / n / spread**3)
    by_chance = np.sqrt(6 / n) / 2
    skew = np.sign(skew) * np.maximum(np.abs(skew) - by_chance, 0.0)
    light: Floats = np.maximum(LIGHTEST, 1 + skew * spread / 3)
    return light
