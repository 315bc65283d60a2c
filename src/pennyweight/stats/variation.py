"""How values vary from task to task and from attempt to attempt, and what samples this gives."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pennyweight.stats.amounts import Amounts
from pennyweight.stats.interval import Floats
from pennyweight.stats.paired import Kind
from pennyweight.stats.power import Design
from pennyweight.stats.quantiles import special

ASSUMED = 1_000_000
"""The number of tasks that an assumption counts as: it has no uncertainty of its own."""
QUANTILES = (np.arange(400) + 0.5) / 400
RANGE = (0.1, 0.9)
"""The quantiles between which an uncertain quantity is stated."""


@dataclass(frozen=True, slots=True)
class Variation:
    """The mean of a value, and how it varies.

    `task_share` is the share of the variance of single attempts that lies between tasks: the
    intraclass correlation. `correlation` is that of two sides' tasks: 1 if both find the same tasks
    hard to the same degree. Numbers, such as costs, are taken for log-normal, and their shares are
    those of the variance of logarithms.
    """

    kind: Kind
    mean: float
    sd: float
    task_share: float
    correlation: float
    log_sd: float = 0.0
    """The standard deviation of logarithms, of numbers."""
    seen: int = ASSUMED
    """The number of tasks that these are estimated from."""

    @classmethod
    def of_rate(cls, rate: float, task_share: float, correlation: float) -> Variation:
        """Return the variation of passes and failures."""
        return cls("rate", rate, math.sqrt(rate * (1 - rate)), task_share, correlation)

    @classmethod
    def of_number(cls, mean: float, sd: float, task_share: float, correlation: float) -> Variation:
        """Return the variation of log-normal numbers."""
        log_sd = math.sqrt(math.log1p((sd / mean) ** 2))
        return cls("number", mean, sd, task_share, correlation, log_sd)

    def at(self, mean: float) -> Variation:
        """Return the same variation around another mean."""
        if self.kind == "number":
            return replace(self, mean=mean, sd=self.sd * mean / self.mean)
        most = self.mean * (1 - self.mean)
        ratio = mean * (1 - mean) / most if most > 0 else 1.0
        return replace(self, mean=mean, sd=self.sd * math.sqrt(ratio))

    def of_task(self, runs: int) -> float:
        """Return the variance of a task's mean over this many attempts."""
        if self.kind != "number":
            return self.sd**2 * (self.task_share + (1 - self.task_share) / runs)
        between, within = (math.expm1(part) for part in self._log_parts)
        return self.mean**2 * (between + (1 + between) * within / runs) * self._excess

    @property
    def _log_parts(self) -> tuple[float, float]:
        """The variance of logarithms between tasks, and within them."""
        whole = self.log_sd**2
        return whole * self.task_share, whole * (1 - self.task_share)

    @property
    def _excess(self) -> float:
        """How much larger the variance is than that of a log-normal value."""
        expected = math.expm1(self.log_sd**2) * self.mean**2
        return self.sd**2 / expected if expected > 0 else 1.0

    def of_difference(self, runs: int) -> float:
        """Return the variance of a task's difference between two equal sides.

        Of numbers, it is that of the logarithm of their ratio at one task.
        """
        apart = 1 - self.correlation
        if self.kind != "number":
            parts = self.task_share * apart + (1 - self.task_share) / runs
            return 2 * self.sd**2 * parts
        between, within = self._log_parts
        return 2 * (between * apart + math.log1p(math.expm1(within) / runs))

    @property
    def discordance(self) -> float:
        """How often single attempts of two equal sides end differently."""
        return 2 * self.sd**2 * (1 - self.task_share * self.correlation)

    def design(self, runs: int, difference: float = 0.0) -> Design:
        """Return the design of a comparison of two sides with this many attempts at each task.

        The sides lie half the `difference` below and above the mean.
        """
        if self.kind == "number":
            spread = math.sqrt(self.of_difference(runs))
            amounts = self._amounts(runs)
            return Design(False, None, spread=spread, seen=self.seen, amounts=amounts)
        low, high = (self.at(self.mean + half) for half in (-difference / 2, difference / 2))
        shared = self._shared(low, high)
        whole = low.sd**2 + high.sd**2
        within = (1 - self.task_share) * whole / runs
        spread = math.sqrt(self.task_share * whole - 2 * shared + within)
        if self.kind == "score":
            return Design(once=False, discordance=None, spread=spread, seen=self.seen)
        apart = whole - 2 * shared + difference**2
        vary = self.sd**2 * self.task_share * self.correlation
        alike = max(apart - difference**2 / 2 - 2 * difference * vary, 1e-9)
        return Design(
            once=runs == 1 or self.task_share == 1,
            discordance=alike,
            spread=spread * math.sqrt(alike / max(apart - difference**2, 1e-9)),
            seen=self.seen,
            tasks_vary=vary,
            middle=self.mean,
            step=1 / runs,
        )

    def _amounts(self, runs: int) -> Amounts:
        """Return how the logarithms of two sides' tasks vary."""
        between, within = self._log_parts
        ratios = self.of_difference(runs)
        each = between + math.log1p(math.expm1(within) / runs)
        return Amounts(self.mean, 4 * each - ratios, ratios, 0.0, self.seen)

    def _shared(self, low: Variation, high: Variation) -> float:
        """Return the covariance of two sides' tasks: a share of them is as hard for both."""
        if low.mean == high.mean:
            return self.correlation * self.task_share * self.sd**2
        both = [side._ease() - side.mean for side in (low, high)]
        return self.correlation * float(np.mean(both[0] * both[1]))

    def _ease(self) -> Floats:
        """Return the tasks' own values, at even quantiles."""
        between = self.task_share * self.sd**2
        if between <= 0:
            return np.full(len(QUANTILES), self.mean)
        size = max(self.mean * (1 - self.mean) / between - 1, 1e-3)
        found: Floats = special.betaincinv(self.mean * size, (1 - self.mean) * size, QUANTILES)
        return found

    def likely(self, *, paired: bool) -> tuple[float, float]:
        """Return between which multiples of its estimate the true variance is likely to lie."""
        if self.seen >= ASSUMED:
            return 1.0, 1.0
        if self.kind == "rate":
            share = self.discordance if paired else self.mean
            ends = special.betaincinv(share * self.seen + 0.5, (1 - share) * self.seen + 0.5, RANGE)
            own = share if paired else share * (1 - share)
            found = ends if paired else ends * (1 - ends)
            if not paired and ends[0] < 0.5 < ends[1]:
                found = np.append(found, 0.25)
            return float(min(found)) / own, float(max(found)) / own
        degrees = max(self.seen - 1, 1)
        low, high = degrees / (2 * special.gammaincinv(degrees / 2, RANGE[::-1]))
        return float(low), float(high)

    def typical(self, tasks: int, runs: int, shift: float = 0.5) -> Floats:
        """Return the means that this many tasks would typically have: quantiles at even steps.

        `shift` moves the steps, between 0 and 1, and so what is rounded up to a pass.
        """
        places = (np.arange(tasks) + shift) / tasks
        if self.kind == "rate":
            passes: Floats = np.searchsorted(self._passes(runs), places) / runs
            return passes
        variance = self.of_task(runs)
        if self.kind == "number":
            spread = math.sqrt(math.log1p(variance / self.mean**2))
            edges = special.ndtr(special.ndtri(np.arange(tasks + 1) / tasks) - spread)
            numbers: Floats = self.mean * tasks * np.diff(edges)  # the mean between two quantiles
            return numbers
        size = max(self.mean * (1 - self.mean) / variance - 1, 1e-3) if variance > 0 else 1e9
        found: Floats = special.betaincinv(self.mean * size, (1 - self.mean) * size, places)
        return found

    def _passes(self, runs: int) -> Floats:
        """Return the cumulative probabilities that a task passes 0, 1, … times.

        Tasks' rates have a beta distribution, so the number of passes has a beta-binomial one.
        """
        k = np.arange(runs + 1.0)
        share = min(max(self.task_share, 1e-6), 1 - 1e-6)
        a, b = (x * (1 / share - 1) for x in (self.mean, 1 - self.mean))
        ways = -special.betaln(k + 1, runs - k + 1) - math.log(runs + 1)
        log = ways + special.betaln(k + a, runs - k + b) - special.betaln(a, b)
        chances: Floats = np.exp(log)
        reached: Floats = np.cumsum(chances / chances.sum())
        return reached

    def likely_means(self, tasks: int, runs: int, shares: Floats) -> Floats:
        """Return quantiles of the mean of a sample of rates or scores."""
        variance = self.of_task(runs) / tasks
        size = max(self.mean * (1 - self.mean) / variance - 1, 1e-9)
        found: Floats = special.betaincinv(self.mean * size, (1 - self.mean) * size, shares)
        return found

    def mean_below(self, limit: float, tasks: int, runs: int) -> float:
        """Return the probability that the mean of a sample is at most `limit`."""
        variance = self.of_task(runs) / tasks
        if self.kind == "number":
            log = math.log1p(variance / self.mean**2)
            if limit <= 0:
                return 0.0
            at = (math.log(limit / self.mean) + log / 2) / math.sqrt(max(log, 1e-300))
            return float(special.ndtr(at))
        if not 0 < limit < 1:
            return float(limit >= 1)
        size = max(self.mean * (1 - self.mean) / variance - 1, 1e-9) if variance > 0 else 1e12
        return float(special.betainc(self.mean * size, (1 - self.mean) * size, limit))
