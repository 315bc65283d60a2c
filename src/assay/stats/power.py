"""What a comparison could have seen: its power, the smallest difference, the tasks needed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from assay.stats.compare import Paired, deals, worth
from assay.stats.interval import t_quantile
from assay.stats.lazy import special

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.stats.interval import Floats

POWER = 0.8
_SHARES = (np.arange(9) + 0.5) / 9
"""The quantiles at which what is not known for sure is taken."""

EXACT = 2_000
MOST = 10_000_000
"""Beyond so many tasks a difference is out of reach."""


@dataclass(frozen=True, slots=True)
class Design:
    """How results vary from task to task, as far as that decides what a comparison can see.

    A difference to be seen is thought to lie evenly around what both sides do now, and to be the
    smaller the nearer a task is to being passed always or never. How results vary is itself known
    from few tasks only, so power is averaged over what it may be.
    """

    once: bool
    """Whether each task is tried once and passes or not."""
    discordance: float | None
    """How often two tries of the sides end differently, were they alike; None for other values."""
    spread: float
    """The standard deviation of the tasks' differences, were the sides alike."""
    seen: int
    """On how many tasks this rests."""
    tasks_vary: float = 0.0
    """The variance of the pass rate from task to task."""
    flips: bool = False
    """Whether signs are flipped, which on few tasks has few outcomes."""

    @classmethod
    def of(cls, paired: Paired) -> Design:
        """Take it from results; where none differed, as if one had."""
        tasks = paired.tasks
        spread = math.sqrt(tasks * paired.variance)
        if paired.kind == "number" or (paired.kind == "score" and spread > 0):
            return cls(False, None, spread, tasks, flips=not deals(paired))
        pairs = worth(paired)
        more, less = paired.discordance
        alike = max(more + less - (more - less) ** 2 / 2, 1 / pairs)
        middle = float(paired.a.mean() + paired.b.mean()) / 2
        vary = max(middle * (1 - middle) - alike / 2, 0.0)
        least = alike * tasks / pairs  # what varies less than single tries must is partly luck
        spread = math.sqrt((spread**2 + max(spread**2, least)) / 2) if spread else math.sqrt(least)
        flips = not paired.once and not deals(paired)
        return cls(paired.once, alike, spread, tasks, vary, flips)

    def power(self, tasks: int, difference: float, level: float = 0.05) -> float:
        """Give how probable it is that so many tasks show a difference of this size.

        `level` is where p is judged: with several comparisons, the level by their number. Holm's
        method judges at least one there and the others no more strictly.
        """
        if self.flips and 2.0 ** (1 - tasks) > level:
            return 0.0
        if self.once:
            assert self.discordance is not None
            likely = special.betaincinv(
                self.discordance * self.seen + 0.5,
                (1 - self.discordance) * self.seen + 0.5,
                _SHARES,
            )
            powers = [
                _mcnemar_power(tasks, difference, self._discordance(x, difference), level)
                for x in likely.tolist()
            ]
            return sum(powers) / len(_SHARES)
        spread = self.spread
        if self.discordance is not None:
            each = self._discordance(self.discordance, difference) - difference**2
            spread *= math.sqrt(max(each, 0.0) / self.discordance)
        degrees = max(self.seen - 1, 1)
        spreads = spread * np.sqrt(degrees / (2 * special.gammaincinv(degrees / 2, _SHARES)))
        if self.discordance is not None and not self.flips:  # dealt out: chance is that of tries
            limit = float(special.ndtri(1 - level / 2))
            shifts = difference * math.sqrt(tasks) / np.maximum(spreads, 1e-12)
            return float(special.ndtr(shifts - limit).mean())
        return sum(_t_power(tasks, difference, x, level) for x in spreads.tolist()) / len(_SHARES)

    def _discordance(self, alike: float, difference: float) -> float:
        """Give how often two tries end differently once the sides differ."""
        more = difference**2 / 2 + 2 * difference * self.tasks_vary
        return min(max(alike + more, difference), 1.0)

    def detectable(self, tasks: int, level: float = 0.05) -> float | None:
        """Give the smallest difference that so many tasks show with 80 % power.

        None where no difference is large enough, or nothing varied.

        >>> round(Design(once=True, discordance=0.3, spread=0.55, seen=100).detectable(100), 3)
        0.162
        """
        if tasks < 2 or self.spread == 0:
            return None
        if self.discordance is not None:
            return _crossing(lambda x: self.power(tasks, x, level), 1.0)
        top = self.spread
        while self.power(tasks, top, level) < POWER:
            top *= 2
            if top > self.spread * 1e6:
                return None
        return _crossing(lambda x: self.power(tasks, x, level), top)

    def tasks_needed(self, difference: float, level: float = 0.05) -> int | None:
        """Give how many tasks show a difference of this size with 80 % power.

        >>> Design(once=True, discordance=0.3, spread=0.55, seen=100).tasks_needed(0.05)
        982
        """
        low, high = 2, 4
        while self.power(high, difference, level) < POWER:
            low, high = high, high * 2
            if high > MOST:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            if self.power(middle, difference, level) < POWER:
                low = middle
            else:
                high = middle
        return high


def _crossing(power: Callable[[float], float], top: float) -> float | None:
    """Find where the power reaches what is wanted."""
    if power(top) < POWER:
        return None
    low, high = 0.0, top
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle) < POWER else (low, middle)
    return high


def _t_power(tasks: int, difference: float, spread: float, level: float) -> float:
    """Give the power of a paired test on the tasks' mean differences."""
    if spread == 0:
        return 1.0
    limit = float(t_quantile(np.array(tasks), 1 - level))
    shift = min(difference / spread * math.sqrt(tasks), 1e3)
    if shift > limit + 30:
        return 1.0
    return float(1 - special.nctdtr(max(tasks - 1, 1), shift, limit))


def _mcnemar_power(tasks: int, difference: float, discordance: float, level: float) -> float:
    """Give the power of the exact McNemar test, itself exact up to `EXACT` tasks."""
    if tasks > EXACT:
        shift = difference * math.sqrt(tasks) - special.ndtri(1 - level / 2) * discordance**0.5
        return float(special.ndtr(shift / math.sqrt(max(discordance - difference**2, 1e-12))))
    middle, reach = tasks * discordance, 8 * math.sqrt(tasks * discordance) + 8
    first, last = max(0, int(middle - reach)), min(tasks, int(middle + reach))
    counts = np.arange(first, last + 1, dtype=np.float64)
    chance = _binomial(counts, tasks, discordance)
    share = (1 + difference / discordance) / 2
    limit = _critical(level / 2)[first : last + 1]
    whole = counts.astype(int)
    below = np.where(limit >= 0, special.bdtr(np.maximum(limit, 0), whole, share), 0.0)
    above = np.where(limit >= 0, special.bdtr(np.maximum(limit, 0), whole, 1 - share), 0.0)
    return float((chance * (below + above)).sum())


def _binomial(k: Floats, n: int, share: float) -> Floats:
    """Give the binomial probabilities."""
    log = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    log = log + special.xlogy(k, share) + special.xlog1py(n - k, -share)
    chance: Floats = np.exp(log)
    return chance


@lru_cache
def _critical(tail: float) -> Floats:
    """Give the largest number of successes whose tail is in `tail`, for each number of fair tries.

    −1 where there is none.
    """
    tries = np.arange(EXACT + 1)
    guess = np.floor(np.nan_to_num(special.bdtrik(tail, np.maximum(tries, 1), 0.5), nan=-1.0))
    for step in (1, 0):
        more = guess + step
        fits = (special.bdtr(np.maximum(more, 0), tries, 0.5) <= tail) & (more >= 0)
        guess = np.where(fits, more, guess if step else guess - 1)
    limit: Floats = np.maximum(guess, -1)
    return limit
