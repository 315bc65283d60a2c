"""The power of a comparison, the smallest difference it detects, and the tasks it needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pennyweight.stats.amounts import Amounts
from pennyweight.stats.interval import Floats, t_quantile
from pennyweight.stats.paired import Paired, worth
from pennyweight.stats.quantiles import special
from pennyweight.stats.sign_flips import step

POWER = 0.8
_SHARES = (np.arange(9) + 0.5) / 9
"""The quantiles over which an uncertain quantity is averaged."""
COARSE = 20
"""If fewer sign flips than this can be as extreme as the results, power is simulated."""
DRAWS, MOVED = 450, 12
"""The number of simulated results, and of the lowest differences in each that are flipped."""
EXACT = 2_000
"""The most tasks for which the power of McNemar's test is computed exactly."""
MAX_TASKS = 10_000_000
"""A difference that needs more tasks than this cannot be shown."""


@dataclass(frozen=True, slots=True)
class Design:
    """The variation from task to task, which determines what a comparison can detect.

    A difference is assumed to be centred on the current results of both sides, and to be smaller
    for tasks that nearly always or nearly never pass. The variation is itself estimated from few
    tasks, so power is averaged over its uncertainty.
    """

    once: bool
    """Whether each task is tried once and passes or fails."""
    discordance: float | None
    """How often attempts of two equal sides end differently; None for other values."""
    spread: float
    """The standard deviation of the tasks' differences between equal sides."""
    seen: int
    """The number of tasks that these estimates are based on."""
    tasks_vary: float = 0.0
    """The variance of the pass rate from task to task."""
    middle: float = 0.5
    """The pass rate."""
    step: float = 0.0
    """The step size of a task's difference; coarse steps reduce the power of sign flips."""
    amounts: Amounts | None = None
    """How values above 0 vary that a factor tells apart; None for other values."""

    @classmethod
    def of(cls, paired: Paired) -> Design:
        """Estimate the variation from results; if no task differs, as if one did."""
        tasks = paired.tasks
        spread = math.sqrt(tasks * paired.variance)
        if paired.kind == "number" or (paired.kind == "score" and spread > 0):
            amounts = Amounts.of(paired.a, paired.b) if paired.kind == "number" and spread else None
            return cls(False, None, spread, tasks, amounts=amounts)
        pairs = worth(paired)
        more, less = paired.discordance
        alike = more + less - (more - less) ** 2 / 2
        if paired.once:
            alike = _without_improvement(alike, more, less, float(paired.a.mean()))
        alike = max(alike, 1 / pairs)
        middle = float(paired.a.mean() + paired.b.mean()) / 2
        vary = max(middle * (1 - middle) - alike / 2, 0.0)
        least = alike * tasks / pairs  # what varies less than single tries must is partly luck
        spread = math.sqrt((spread**2 + max(spread**2, least)) / 2) if spread else math.sqrt(least)
        return cls(paired.once, alike, spread, tasks, vary, middle, step(paired.differences) or 0.0)

    def power(self, tasks: int, difference: float, level: float = 0.05) -> float:
        """Return the probability that this many tasks show a difference of this size.

        `level` is the significance level; with several comparisons, divided by their number, which
        is the strictest level of Holm's method.
        """
        if 2.0 ** (1 - tasks) > level:
            return 0.0
        if self.amounts is not None:
            return self.amounts.power(tasks, difference, level)
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
        if tasks - 1 < math.log2(COARSE / level):
            return _few_power(self, tasks, difference, level)
        spread = self.spread
        if self.discordance is not None:
            each = self._discordance(self.discordance, difference) - difference**2
            spread *= math.sqrt(max(each, 0.0) / self.discordance)
        shown = _t_power(tasks, difference - self.step / tasks, spread * _likely(self.seen), level)
        return float(shown.mean())

    def _discordance(self, alike: float, difference: float) -> float:
        """Return how often two attempts end differently once the sides differ."""
        more = difference**2 / 2 + 2 * difference * self.tasks_vary
        return min(max(alike + more, difference), 1.0)

    def detectable(self, tasks: int, level: float = 0.05) -> float | None:
        """Return the smallest difference that this many tasks show with 80 % power.

        None if no difference is large enough, or nothing varied.

        >>> round(Design(once=True, discordance=0.3, spread=0.55, seen=100).detectable(100), 3)
        0.162
        """
        return None if tasks < 2 or self.spread == 0 else _detectable(self, tasks, level)

    def tasks_needed(self, difference: float, level: float = 0.05) -> int | None:
        """Return how many tasks show a difference of this size with 80 % power.

        >>> Design(once=True, discordance=0.3, spread=0.55, seen=100).tasks_needed(0.05)
        982
        """
        low, high = 2, 4
        while self.power(high, difference, level) < POWER:
            low, high = high, high * 2
            if high > MAX_TASKS:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            if self.power(middle, difference, level) < POWER:
                low = middle
            else:
                high = middle
        return high


@lru_cache(maxsize=512)
def _detectable(design: Design, tasks: int, level: float) -> float | None:
    """Search for it: a page and its report ask about the same pairs."""

    def power(difference: float) -> float:
        return design.power(tasks, difference, level)

    if design.discordance is not None:
        return _crossing(power, 1.0)
    top = design.spread
    while power(top) < POWER:
        top *= 2
        if top > design.spread * 1e6:
            return None
    return _crossing(power, top)


def _without_improvement(alike: float, more: float, less: float, rate: float) -> float:
    """Return how often single attempts of equal sides end differently, where one side is better.

    A side may have kept all that the other passes, and passed more. Then nothing but the difference
    itself was different. How far that holds shows in how seldom the better side failed alone,
    compared with sides that know nothing of each other.
    """
    rate = rate if more > less else 1 - rate
    alone = rate * (1 - min(rate + abs(more - less), 1.0))
    unrelated = min(1.0, math.sqrt(min(more, less) / alone)) if alone > 0 else 1.0
    return unrelated * alike + (1 - unrelated) * 2 * min(more, less)


def _likely(seen: int) -> Floats:
    """Return likely ratios of the true to the estimated standard deviation."""
    degrees = max(seen - 1, 1)
    factors: Floats = np.sqrt(degrees / (2 * special.gammaincinv(degrees / 2, _SHARES)))
    return factors


def _crossing(power: Callable[[float], float], top: float) -> float | None:
    """Find where the power reaches the target."""
    if power(top) < POWER:
        return None
    low, high = 0.0, top
    for _ in range(16):
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle) < POWER else (low, middle)
    return high


def _t_power(tasks: int, difference: float, spreads: Floats, level: float) -> Floats:
    """Return the power of a paired test on the tasks' mean differences, for each spread."""
    limit = float(t_quantile(np.array(tasks), 1 - level))
    shifts = max(difference, 0.0) * math.sqrt(tasks) / np.maximum(spreads, 1e-300)
    sure = shifts > limit + 30
    missed = special.nctdtr(max(tasks - 1, 1), np.where(sure, 0.0, shifts), limit)
    power: Floats = np.where(sure, 1.0, 1 - missed)
    return power


def _few_power(design: Design, tasks: int, difference: float, level: float) -> float:
    """Return the power of flipping the signs of few tasks, in simulated results.

    A flip is as extreme as the results if the differences it flips sum to 0 or less. Only flips of
    the lowest differences can do so: those of tasks that nearly always or never pass.
    """
    room, step = _room(tasks, design.middle, design.tasks_vary), design.step
    noise = np.resize(design.spread * _likely(design.seen), DRAWS)[:, None] ** 2
    if design.discordance is not None:
        apart = difference**2 * float(np.square(room).mean()) / 2
        noise = noise * max(1 - apart / design.discordance, 0.0)
    noise = np.maximum(noise - step**2 / 12, 0.0)
    drawn = difference * room + np.sqrt(noise * room) * _normal(tasks)
    if step:
        drawn = np.clip(np.rint(drawn / step) * step, -1.0, 1.0)
    lowest = np.sort(drawn, axis=1)[:, :MOVED].astype(np.float32)
    turned = np.zeros((DRAWS, 1), dtype=np.float32)
    for one in lowest.T[:, :, None]:
        turned = np.concatenate([turned, turned + one], axis=1)
    extreme = np.count_nonzero(turned <= 1e-5, axis=1)
    return float(np.mean(extreme <= level * 2.0 ** (tasks - 1)))


@lru_cache(maxsize=64)
def _room(tasks: int, middle: float, vary: float) -> Floats:
    """Draw how much a difference can affect each task, 1 on average."""
    most = middle * (1 - middle)
    if vary < 1e-3 * most or most == 0:
        return np.ones((DRAWS, tasks))
    size = max(most / vary - 1, 0.1)
    drawn = np.random.default_rng([tasks, 1]).random((DRAWS, tasks))
    ease = special.betaincinv(middle * size, (1 - middle) * size, drawn)
    room: Floats = ease * (1 - ease) / float((ease * (1 - ease)).mean())
    return room


@lru_cache(maxsize=64)
def _normal(tasks: int) -> Floats:
    return np.random.default_rng(tasks).standard_normal((DRAWS, tasks))


def _mcnemar_power(tasks: int, difference: float, discordance: float, level: float) -> float:
    """Return the power of the exact McNemar test, exactly for up to `EXACT` tasks."""
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
    """Return the binomial probabilities."""
    log = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    log = log + special.xlogy(k, share) + special.xlog1py(n - k, -share)
    chance: Floats = np.exp(log)
    return chance


@lru_cache
def _critical(tail: float) -> Floats:
    """Return the largest number of successes whose tail is within `tail`, per number of trials.

    −1 if there is none.
    """
    tries = np.arange(EXACT + 1)
    guess = np.floor(np.nan_to_num(special.bdtrik(tail, np.maximum(tries, 1), 0.5), nan=-1.0))
    for further in (1, 0):
        more = guess + further
        fits = (special.bdtr(np.maximum(more, 0), tries, 0.5) <= tail) & (more >= 0)
        guess = np.where(fits, more, guess if further else guess - 1)
    limit: Floats = np.maximum(guess, -1)
    return limit
