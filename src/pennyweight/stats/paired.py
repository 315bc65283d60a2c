"""Two sides on the same tasks: the paired difference, its interval and its test.

Each task gives one value per side, the mean of its attempts, so a task counts once however often it
was attempted. Nothing is assumed about a single task: sides may differ there and be equally good
overall. If each task passed or failed, the test is McNemar's and the interval Tango's. Otherwise
the signs of the tasks' differences are flipped, and the interval is Tango's with the effective
sample size (for shares and scores), or Student's widened for skewness and long tails.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pennyweight.stats.interval import Floats, t_quantile, z_quantile
from pennyweight.stats.quantiles import special
from pennyweight.stats.sign_flips import sign_flip
from pennyweight.stats.skewed import LEAST, LongTail, hall_distance, hall_ends, skewness

Kind = Literal["rate", "score", "number"]
"""The kind of the values: booleans, numbers between 0 and 1, or any numbers."""

ROUNDING = 1e-9
"""A variation smaller than this share of the values is a rounding error."""
MCNEMAR = "exact McNemar"


@dataclass(frozen=True, slots=True)
class Tries:
    """Every attempt of both sides, unit by unit; within a unit, the first side's come first.

    A unit is a task in one configuration; a task's difference is the mean over its units.
    """

    values: Floats
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    tasks: NDArray[np.int64]
    """The task of each unit, counted from 0."""

    @property
    def noise(self) -> Floats:
        """The variance of each task's difference that attempts alone cause."""
        counts = np.stack([self.first, self.second], axis=1).ravel()
        split = np.cumsum(counts) - counts
        means = np.add.reduceat(self.values, split) / counts
        apart = np.square(self.values - np.repeat(means, counts))
        every = self.first + self.second
        within = np.add.reduceat(apart, split[::2]) / np.maximum(every - 2, 1)
        units = within * (1 / self.first + 1 / self.second)
        held = np.bincount(self.tasks).astype(np.float64)
        added: Floats = np.bincount(self.tasks, weights=units) / held**2
        return added


@dataclass(frozen=True, slots=True)
class Paired:
    """Both sides' values on the same tasks, and how often each task was attempted."""

    a: Floats
    b: Floats
    tries_a: Floats
    tries_b: Floats
    kind: Kind
    each: Tries | None = None
    """Every single try, where sides were tried unevenly and the values are not passes."""

    def rescaled(self) -> tuple[Paired, float]:
        """Return the values in a unit in which their powers do not overflow, and the unit."""
        largest = max(float(np.abs(side).max(initial=0.0)) for side in (self.a, self.b))
        if not 1e50 < largest < math.inf:
            return self, 1.0
        unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)
        each = None if self.each is None else replace(self.each, values=self.each.values / unit)
        return replace(self, a=self.a / unit, b=self.b / unit, each=each), unit

    @property
    def tasks(self) -> int:
        """The number of tasks that both sides have."""
        return len(self.a)

    @property
    def once(self) -> bool:
        """Whether each task always passed or always failed, so that repetition adds nothing."""
        whole = [np.all((side == 0) | (side == 1)) for side in (self.a, self.b)]
        return self.kind == "rate" and all(whole)

    @property
    def even(self) -> bool:
        """Whether both sides attempted each task equally often, so that chance is symmetric."""
        return bool(np.all(self.tries_a == self.tries_b))

    @property
    def edge(self) -> float | None:
        """How often one side passed (or failed) if the other always did; else None.

        That no task went the other way is as informative as the number of tasks, not of attempts.
        """
        if self.kind != "rate" or self.once:
            return None
        for side, other in ((self.a, self.b), (self.b, self.a)):
            if np.all(side == side[0]) and side[0] in {0.0, 1.0}:
                share = float(other.mean())
                return share if side[0] else 1 - share
        return None

    @property
    def tries(self) -> Floats:
        """The effective number of attempts of each task: the harmonic mean of both sides'."""
        worth: Floats = 2 / (1 / self.tries_a + 1 / self.tries_b)
        return worth

    @property
    def differences(self) -> Floats:
        """By how much the second side is above the first, per task."""
        return self.b - self.a

    @property
    def discordance(self) -> tuple[float, float]:
        """How often an attempt of only the second side succeeds, and of only the first."""
        return float(np.mean(self.b * (1 - self.a))), float(np.mean(self.a * (1 - self.b)))

    @property
    def variance(self) -> float:
        """The squared standard error of the mean difference; 0 if only rounding varies.

        Single attempts, if there are any, show a long tail that the tasks' differences may miss.
        """
        if self.tasks < 2:
            return 0.0
        found = float(self.differences.var(ddof=1)) / self.tasks
        if self.each is not None:
            noise = float(self.each.noise.sum()) / self.tasks**2
            found = (found + max(found, noise)) / 2
        scale = max(float(np.abs(self.a).max()), float(np.abs(self.b).max()))
        return found if found > (ROUNDING * scale) ** 2 / self.tasks else 0.0

    @property
    def tail(self) -> LongTail | None:
        """What the logarithms of numbers show; None if some are negative, or a side is 0."""
        if self.kind != "number" or self.tasks < LEAST:
            return None
        a, b = (self.a, self.b) if self.a[0] >= 0 else (-self.b, -self.a)
        fits = min(a.min(), b.min()) >= 0 and min(a.max(), b.max()) > 0
        return LongTail.of(a, b) if fits else None

    @property
    def alike(self) -> bool:
        """Whether all tasks have the same numeric difference, which says nothing about chance."""
        return self.kind == "number" and self.variance == 0


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference with its interval and its test."""

    value: float
    low: float | None
    high: float | None
    p: float
    method: str


def compare(paired: Paired, confidence: float, seed: int, comparisons: int = 1) -> Difference:
    """Estimate and test the mean difference. Test and interval never contradict each other.

    Numbers with the same difference at every task have no interval, because nothing shows how they
    vary. With several `comparisons`, p is computed precisely enough to be corrected for them.

    >>> ones, first = np.ones(20), np.zeros(20)
    >>> found = compare(Paired(first, ones, ones, ones, "rate"), 0.95, 0)
    >>> found.value, round(found.low, 2), f"{found.p:.2g}", found.method
    (1.0, 0.68, '1.9e-06', 'exact McNemar')
    """
    p, method = tested(paired, seed, (1 - confidence) / comparisons)
    value = float(paired.differences.mean())
    ends = None if paired.alike else interval(paired, confidence)
    if ends is None:
        return Difference(value, None, None, p, method)
    low, high = min(ends[0], value), max(ends[1], value)
    if p > 1 - confidence:
        low, high = min(low, 0.0), max(high, 0.0)
    elif value > 0:
        low = max(low, 0.0)
    else:
        high = min(high, 0.0)
    return Difference(value, low, high, p, method)


def tested(paired: Paired, seed: int, bar: float) -> tuple[float, str]:
    """Test whether the sides are equal on average over tasks; return p and the method.

    Flipping signs is valid for symmetric differences, as those of passes attempted equally often
    nearly are. For others it rejects too often, so the interval must agree.
    """
    differences = paired.differences
    if paired.once:
        return mcnemar(int((differences > 0).sum()), int((differences < 0).sum())), MCNEMAR
    p, method = sign_flip(differences, seed, bar)
    if (edge := paired.edge) is not None:
        p = max(p, min(1.0, 2 * edge**paired.tasks))
    if paired.kind == "rate" and paired.even:
        return p, method
    return max(p, touching(paired)), method


def touching(paired: Paired) -> float:
    """Return the level at which the interval of the difference ends at 0; 0 if nothing varies."""
    value, n = float(paired.differences.mean()), paired.tasks
    if paired.kind != "rate" and paired.variance == 0:
        return 0.0
    ratios = []
    if paired.kind != "number":
        more, less = paired.discordance
        ratios.append(abs(value) / math.sqrt(max(more + less, 1e-300) / worth(paired)))
    if paired.kind != "rate":
        spread = math.sqrt(n * paired.variance)
        skew = skewness(paired.differences, spread)
        ratios.append(float(hall_distance(np.array(value / spread), np.array(skew), n)))
    level = 2 * float(special.stdtr(max(n - 1, 1), -min(ratios)))
    return level if (tail := paired.tail) is None else tail.touching(level)


def mcnemar(more: int, less: int) -> float:
    """Return the exact two-sided p for the numbers of tasks that only one side passed.

    >>> mcnemar(1, 9)
    0.021484375
    """
    tail = float(special.bdtr(min(more, less), more + less, 0.5)) if more + less else 1.0
    return min(1.0, 2 * tail)


def interval(
    paired: Paired, confidence: float, *, one_sided: bool = False
) -> tuple[float, float] | None:
    """Return the interval of the mean difference; None with one task.

    If one tail is long, nearly all errors are at one end. For a decision on one end, `one_sided`
    also keeps that end wrong in half of 1 − confidence only.
    """
    if paired.tasks < 2:
        return None
    if paired.kind == "number":
        return _skewed_interval(paired, confidence, one_sided=one_sided)
    more, less = paired.discordance
    if paired.once:
        return tango(more, less, paired.tasks, z_quantile(confidence))
    quantile = float(t_quantile(np.array(paired.tasks), confidence))
    low, high = tango(more, less, worth(paired), quantile)
    if paired.kind == "score" and paired.variance > 0:
        ends = _skewed_interval(paired, confidence)
        low, high = max(-1.0, min(low, ends[0])), min(1.0, max(high, ends[1]))
    if (edge := paired.edge) is not None:
        least = ((1 - confidence) / 2) ** (1 / paired.tasks) - edge
        low, high = (min(low, least), high) if more > less else (low, max(high, -least))
    return low, high


def weighted_interval(paired: Paired, weights: Floats, confidence: float) -> tuple[float, float]:
    """Return the interval of a weighted mean difference of shares or scores.

    Its error is the jackknife's over tasks. The effective number of tasks is Kish's, W² / Σ w², so
    a single dominating task gives a very wide interval.

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


def worth(paired: Paired) -> float:
    """Return the effective number of independent pairs of attempts.

    If the tasks' differences do not vary, that is not informative, and each task counts as one.
    """
    more, less = paired.discordance
    each = more + less - (more - less) ** 2
    if paired.variance == 0 or each <= 0:
        return float(paired.tasks)
    most = float(paired.tries.sum()) if paired.kind == "rate" else np.inf
    return min(each / paired.variance, most)


def tango(more: float, less: float, n: float, quantile: float) -> tuple[float, float]:
    """Return Tango's score interval of a paired difference of shares.

    `more` and `less` are the shares of n pairs (n may be fractional) in which only the second side
    succeeds, and only the first.

    >>> [round(end, 4) for end in tango(0, 0, 10, z_quantile(0.95))]
    [-0.2775, 0.2775]
    """
    low, high = (_root(more, less, n, quantile, end) for end in (-1.0, 1.0))
    return low, high


def _root(more: float, less: float, n: float, quantile: float, end: float) -> float:
    """Find where the score statistic reaches the quantile, between the value and an end."""
    inside, outside = more - less, end
    for _ in range(60):
        middle = (inside + outside) / 2
        if abs(_score(more, less, n, middle)) > quantile:
            outside = middle
        else:
            inside = middle
    return (inside + outside) / 2


def _score(more: float, less: float, n: float, at: float) -> float:
    """Return the score statistic of a paired difference under the hypothesis `at`."""
    b = (2 - more + less) * at - more - less
    root = math.sqrt(max(b * b + 8 * less * at * (1 - at), 0.0))
    least = (root - b) / 4
    variance = max(2 * least + at * (1 - at), 1e-300)
    return (more - less - at) / math.sqrt(variance / n)


def _skewed_interval(
    paired: Paired, confidence: float, *, one_sided: bool = False
) -> tuple[float, float]:
    """Return the interval for skewed values; of a single value if nothing varies."""
    mean, spread = float(paired.differences.mean()), math.sqrt(paired.tasks * paired.variance)
    if spread == 0:
        return mean, mean
    skew = skewness(paired.differences, spread)
    low, high = hall_ends(mean, spread, skew, paired.tasks, confidence)
    if (tail := paired.tail) is not None:
        ends = tail.difference((1 - confidence) / (2 if one_sided else 1))
        low, high = min(low, float(ends[0])), max(high, float(ends[1]))
    return low, high


def cliffs_delta(a: Floats, b: Floats) -> float:
    """Return how much more often a value of b is above one of a than below it, over all pairs.

    >>> cliffs_delta(np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0]))
    0.5555555555555556
    """
    ordered = np.sort(a)
    above = np.searchsorted(ordered, b, side="left").sum()
    below = (len(a) - np.searchsorted(ordered, b, side="right")).sum()
    return float(above - below) / (len(a) * len(b))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's method.

    The probability that any true null hypothesis is rejected stays below the level.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    count = len(p_values)
    adjusted = [0.0] * count
    highest = 0.0
    for rank, index in enumerate(sorted(range(count), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted
