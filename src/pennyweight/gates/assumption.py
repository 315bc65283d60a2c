"""What a plan assumes where no pilot shows it, as people write it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from pennyweight.catalogue import metric_named
from pennyweight.errors import UsageError
from pennyweight.gates.threshold import Quantity, kind_of
from pennyweight.scoring.pilot import Pilot
from pennyweight.scoring.sample_plan import Assumptions
from pennyweight.stats.variation import Variation

Amount = float | str
TASK_SHARE, CORRELATION = 0.7, 0.7
"""Assumed where no pilot shows them: single answers of two sides then correlate by 0.5."""
_ASSUME = "--rate for a rate, or --mean and --sd for a cost, a time or a score"


@dataclass(frozen=True, slots=True)
class Assumption:
    """What the caller assumes."""

    metric: str | None
    rate: float | None
    mean: float | None
    sd: float | None
    task_share: float | None
    correlation: float | None

    @classmethod
    def of(
        cls,
        metric: str | None,
        rate: Amount | None,
        mean: Amount | None,
        sd: Amount | None,
        task_share: Amount | None,
        correlation: float | None,
    ) -> Assumption:
        """Read and check the assumptions."""
        declared = metric_named(metric or ("cost_usd_mean" if mean is not None else "pass_rate"))
        kind = kind_of(declared)
        if rate is not None and mean is not None:
            raise UsageError("--rate and --mean are both given; a metric has one of them.")
        if rate is not None and declared.range != (0, 1):
            raise UsageError(f"{declared.name} is not a rate: give --mean and --sd.")
        if sd is not None and mean is None:
            raise UsageError("--sd needs --mean.")
        share = None if task_share is None else read_share("--task-share", task_share)
        if correlation is not None and not 0 <= correlation <= 1:
            raise UsageError(f"--correlation {correlation:g}: it must be between 0 and 1.")
        middle = None if rate is None else read_share("--rate", rate)
        if middle is not None and not 0 < middle < 1:
            raise UsageError(
                f"--rate {rate}: what always passes or always fails does not vary. "
                "Give a rate between 0 and 100 %."
            )
        values = [
            None if x is None else read_value(name, x, declared.name, kind)
            for name, x in (("--mean", mean), ("--sd", sd))
        ]
        return cls(metric, middle, values[0], values[1], share, correlation)

    @property
    def defaults(self) -> tuple[float, float]:
        """The share of the variance between tasks, and the correlation of two sides' tasks."""
        share, correlation = self.task_share, self.correlation
        return (
            TASK_SHARE if share is None else share,
            CORRELATION if correlation is None else correlation,
        )

    def joined(self, pilot: Pilot | None) -> tuple[Variation, Assumptions]:
        """Return what the pilot shows with what is assumed instead."""
        if pilot is None:
            variation, name = self._alone()
            assumed = ["mean", "sd", "task_share", "correlation"]
        else:
            variation, name, assumed = pilot.variation, pilot.metric, []
            if pilot.extreme:
                assumed.append("mean")
            if pilot.extreme or not pilot.repeated:
                assumed.append("task_share")
            if pilot.extreme or len(pilot.sides) < 2:
                assumed.append("correlation")
            if (mean := self.rate if self.rate is not None else self.mean) is not None:
                variation, assumed = variation.at(mean), ["mean", *assumed]
                if self.sd is not None:
                    raise UsageError("--sd is what the pilot shows; leave it out.")
            if self.task_share is not None:
                variation = replace(variation, task_share=self.task_share)
                assumed.append("task_share")
            if self.correlation is not None:
                variation = replace(variation, correlation=self.correlation)
                assumed.append("correlation")
        if not variation.sd or not variation.of_difference(1):
            raise UsageError(
                f"Nothing varies: every value of {name} is the same, so there is no chance to "
                f"plan for. Assume some variation: {_ASSUME}."
            )
        v = variation
        found = tuple(dict.fromkeys(assumed))
        return v, Assumptions(name, v.mean, v.sd, v.task_share, v.correlation, found)

    def covers(self, metric: str) -> bool:
        """Whether enough is assumed about a metric to do without a pilot."""
        if self.rate is not None:
            rate = metric_named(metric).range == (0, 1)
            return rate and self.metric in {None, metric}
        return self.mean is not None and metric == (self.metric or "cost_usd_mean")

    def about(self, metric: str) -> Assumption:
        """Return what is assumed about another metric than the named one: the shares only."""
        if self.covers(metric):
            return replace(self, metric=metric)
        return replace(self, metric=metric, rate=None, mean=None, sd=None)

    def _alone(self) -> tuple[Variation, str]:
        if self.rate is not None:
            return Variation.of_rate(self.rate, *self.defaults), self.metric or "pass_rate"
        if self.mean is None:
            raise UsageError(f"There is no pilot. Name a run or a file, or assume {_ASSUME}.")
        if self.sd is None:
            raise UsageError(
                "--mean needs --sd, the standard deviation of single attempts. Costs often vary "
                "about as much as their mean."
            )
        if self.mean <= 0 or self.sd <= 0:
            raise UsageError(f"--mean {self.mean:g} --sd {self.sd:g}: both must be above 0.")
        name = self.metric or "cost_usd_mean"
        if metric_named(name).range != (0, 1):
            return Variation.of_number(self.mean, self.sd, *self.defaults), name
        if self.sd**2 >= self.mean * (1 - self.mean):
            most = math.sqrt(self.mean * (1 - self.mean))
            raise UsageError(f"--sd {self.sd:g}: values from 0 to 1 vary by less than {most:.3g}.")
        return Variation("score", self.mean, self.sd, *self.defaults), name


def read_quantity(option: str, amount: Amount) -> Quantity:
    """Read an amount that has no sign."""
    try:
        read = Quantity.parse(amount)
    except UsageError:
        raise UsageError(f"{option} {amount}: it must be an amount such as 5% or 0.05.") from None
    if read.sign is not None:
        raise UsageError(f"{option} {amount}: it must be an amount without a sign, such as 5%.")
    return read


def read_value(option: str, amount: Amount, metric: str, kind: str) -> float:
    """Read an amount in the unit of a metric."""
    try:
        return read_quantity(option, amount).value(metric, kind)
    except UsageError as error:
        raise UsageError(f"{option} {amount}: {error}") from None


def read_share(option: str, amount: Amount) -> float:
    """Read a share, as `80%`, `80` or `0.8`."""
    read = read_quantity(option, amount)
    number = read.number / 100 if read.unit == "%" or read.number >= 2 else read.number
    if read.unit not in {"", "%"} or not 0 <= number <= 1:
        raise UsageError(f"{option} {amount}: it must be between 0 and 100 %.")
    return number


def read_cost(amount: Amount) -> float:
    """Read the cost of an attempt."""
    cost = read_value("--cost-per-attempt", amount, "the cost", "US$")
    if cost < 0:
        raise UsageError(f"--cost-per-attempt {amount}: it must not be negative.")
    return cost
