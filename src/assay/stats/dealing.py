"""Tries dealt out to the two sides anew, task by task: what chance alone would have made of them.

The statistic is the sum of the tasks' differences by its error. The error has two parts: how far
the differences are from 0, and how far dealing throws them, which is the same for every deal. So it
grows with the differences, however alike they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from assay.stats.lazy import special

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from assay.stats.interval import Floats

FLIPS = 9_999
WORK = 200_000
"""So many tries are dealt out, or so many tasks for passes, if that is between 999 and 9,999
times."""

ENOUGH = 10
"""With so many deals as extreme as the results, p is known well enough."""


class Dealer(Protocol):
    """Results that can be dealt out anew."""

    @property
    def own(self) -> Floats:
        """The tasks' differences as they are."""

    @property
    def null(self) -> Floats:
        """The variance of each task's difference over all deals."""

    @property
    def reach(self) -> Floats:
        """From where to where each task's difference can go, at most."""

    @property
    def size(self) -> int:
        """How much work a deal is."""

    def deal(self, draws: int, rng: np.random.Generator) -> Floats:
        """Give the tasks' differences for so many deals, one a row."""


@dataclass(frozen=True, slots=True)
class Passes:
    """Passes of each task, out of the tries of both sides."""

    passed: NDArray[np.int64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    own: Floats

    @property
    def null(self) -> Floats:
        """The variance of each task's difference over all deals."""
        every = self.first + self.second
        spread = self.passed * (every - self.passed) / (every * (every - 1.0))
        variance: Floats = spread * (1 / self.first + 1 / self.second)
        return variance

    @property
    def reach(self) -> Floats:
        """From where to where each task's difference can go, at most."""
        mixed = (self.passed > 0) & (self.passed < self.first + self.second)
        reach: Floats = mixed * (1 + np.minimum(self.first, self.second) / self.most)
        return reach

    @property
    def most(self) -> NDArray[np.int64]:
        """The tries of the side that has more of them."""
        return np.maximum(self.first, self.second)

    @property
    def size(self) -> int:
        """How much work a deal is."""
        return len(self.passed)

    def deal(self, draws: int, rng: np.random.Generator) -> Floats:
        """Give the tasks' differences for so many deals, one a row."""
        dealt = np.empty((draws, len(self.passed)))
        every = np.stack([self.passed, self.first, self.second])
        kinds, which = np.unique(every, axis=1, return_inverse=True)
        for index, (passed, first, second) in enumerate(kinds.T.tolist()):
            tasks = np.flatnonzero(which == index)
            chances = hypergeometric(passed, first, second)
            drawn = rng.random((draws, len(tasks)))
            dealt[:, tasks] = np.searchsorted(chances, drawn, side="right")
        differences: Floats = dealt / self.second - (self.passed - dealt) / self.first
        return differences


@dataclass(frozen=True, slots=True)
class Tries:
    """Every try of both sides, unit after unit, in each the first side's before the second's.

    A unit is a task in one configuration; a task's difference is the mean of its units'.
    """

    values: Floats
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    tasks: NDArray[np.int64]
    """The task of each unit, counted from 0."""

    @property
    def every(self) -> NDArray[np.int64]:
        """How many tries each unit has."""
        return self.first + self.second

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each unit begins."""
        return np.cumsum(self.every) - self.every

    @property
    def size(self) -> int:
        """How much work a deal is."""
        return len(self.values)

    @property
    def own(self) -> Floats:
        """The tasks' differences as they are."""
        split = np.stack([self.starts, self.starts + self.first], axis=1).ravel()
        sums = np.add.reduceat(self.values, split).reshape(-1, 2)
        return self._by_task(sums[:, 1] / self.second - sums[:, 0] / self.first, 1)

    @property
    def null(self) -> Floats:
        """The variance of each task's difference over all deals."""
        means = np.add.reduceat(self.values, self.starts) / self.every
        apart = np.square(self.values - np.repeat(means, self.every))
        spread = np.add.reduceat(apart, self.starts) / (self.every - 1)
        return self._by_task(spread * (1 / self.first + 1 / self.second), 2)

    @property
    def noise(self) -> Floats:
        """The variance that tries alone give each task's difference, however the sides differ."""
        counts = np.stack([self.first, self.second], axis=1).ravel()
        split = np.cumsum(counts) - counts
        means = np.add.reduceat(self.values, split) / counts
        apart = np.square(self.values - np.repeat(means, counts))
        within = np.add.reduceat(apart, self.starts) / np.maximum(self.every - 2, 1)
        return self._by_task(within * (1 / self.first + 1 / self.second), 2)

    @property
    def reach(self) -> Floats:
        """From where to where each task's difference can go, at most."""
        wide = np.maximum.reduceat(self.values, self.starts)
        wide = wide - np.minimum.reduceat(self.values, self.starts)
        least, most = np.minimum(self.first, self.second), np.maximum(self.first, self.second)
        return self._by_task(wide * (1 + least / most), 1)

    def deal(self, draws: int, rng: np.random.Generator) -> Floats:
        """Give the tasks' differences for so many deals, one a row."""
        units = np.empty((draws, len(self.first)))
        kinds, which = np.unique(np.stack([self.first, self.second]), axis=1, return_inverse=True)
        for index, (first, second) in enumerate(kinds.T.tolist()):
            there = np.flatnonzero(which == index)
            block = self.values[self.starts[there][:, None] + np.arange(first + second)]
            least = min(first, second)
            picked = _picked(block, least, draws, rng)
            other = (block.sum(axis=1) - picked) / (first + second - least)
            sign = 1 if second == least else -1
            units[:, there] = sign * (picked / least - other)
        return self._by_task(units, 1)

    def _by_task(self, units: Floats, power: int) -> Floats:
        """Add the units of each task up, by their number to a power."""
        counts = np.bincount(self.tasks)
        if np.all(counts == 1):
            return units[..., np.argsort(self.tasks)]
        held = np.zeros((len(self.tasks), len(counts)))
        held[np.arange(len(self.tasks)), self.tasks] = 1 / counts[self.tasks].astype(float) ** power
        added: Floats = units @ held
        return added


def _picked(block: Floats, count: int, draws: int, rng: np.random.Generator) -> Floats:
    """Add up so many tries of each unit, chosen anew for each draw."""
    units, tries = block.shape
    if count == 1:
        chosen = rng.integers(tries, size=(draws, units))
        one: Floats = block[np.arange(units), chosen]
        return one
    order = rng.random((draws, units, tries)).argpartition(count - 1, axis=2)[..., :count]
    some: Floats = block[np.arange(units)[:, None], order].sum(axis=2)
    return some


def dealt_out(dealer: Dealer, seed: int, bar: float) -> float:
    """Give p: how often a deal is as extreme as the results, these counted among them.

    Where none is, p must still be able to fall below `bar`, at which it is judged: inequalities
    bound it, else more is dealt.
    """
    rng, fixed = np.random.default_rng(seed), float(dealer.null.sum())
    own = float(_studentised(dealer.own[None], fixed)[0])
    if own == 0:
        return 1.0
    draws = min(FLIPS, max(999, WORK // max(dealer.size, 1)))
    extreme = int((_studentised(dealer.deal(draws, rng), fixed) >= own - 1e-9).sum())
    if extreme:
        return (extreme + 1) / (draws + 1)
    bound = _bound(own * math.sqrt(fixed), fixed, dealer.reach)
    wanted, made, step = 20 / bar, draws, draws
    while bound > bar and made < wanted and extreme < ENOUGH:
        extreme += int((_studentised(dealer.deal(step, rng), fixed) >= own - 1e-9).sum())
        made += step
    return min(max(bound, 1e-300), (extreme + 1) / (made + 1))


def _bound(total: float, variance: float, reach: Floats) -> float:
    """Bound the chance that differences of this reach add up so far: Hoeffding's, Bernstein's."""
    if variance == 0:
        return 1.0
    bounded = 2 * total**2 / float(np.square(reach).sum())
    varied = total**2 / (2 * (variance + float(reach.max()) * total / 3))
    return 2 * math.exp(-max(bounded, varied))


def _studentised(differences: Floats, fixed: float) -> Floats:
    """Divide the sum of each row by its error, had the mean been 0."""
    error = np.sqrt(np.square(differences).sum(axis=1) + fixed)
    divided: Floats = np.abs(differences.sum(axis=1)) / np.where(error > 0, error, 1.0)
    return divided


@lru_cache(maxsize=1024)
def hypergeometric(passed: int, first: int, second: int) -> Floats:
    """Give the chances that at most 0, 1, … of a task's passes fall to the second side."""
    k = np.arange(second + 1)
    log = sum(
        special.gammaln(n + 1)
        - special.gammaln(np.maximum(x, 0) + 1)
        - special.gammaln(np.maximum(n - x, 0) + 1)
        for n, x in ((passed, k), (first + second - passed, second - k))
    )
    fits = (k <= passed) & (second - k <= first + second - passed)
    chance = np.where(fits, np.exp(log - np.max(log[fits])), 0.0)
    upto: Floats = np.cumsum(chance) / chance.sum()
    upto[-1] = 1.0
    return upto
