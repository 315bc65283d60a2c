"""Plan: how many tasks and repeats a question needs, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pennyweight.api.sources import Given, resolve
from pennyweight.catalogue import metric_named
from pennyweight.errors import UsageError
from pennyweight.gates.threshold import Quantity, kind_of
from pennyweight.scoring.pilot import Pilot, PilotRecords
from pennyweight.scoring.sample_plan import Assumptions, PlanRow, Question, SamplePlan
from pennyweight.scoring.typical_records import tasks_for_width
from pennyweight.stats.sample_size import tasks_for_difference, tasks_for_margin
from pennyweight.stats.variation import Variation

if TYPE_CHECKING:
    from pennyweight.store.store import Store

Amount = float | str
RUNS = (1, 3, 5, 10)
UNLIMITED = 100
"""More attempts at each task than this change nothing that matters."""
MAX_RUNS = 1_000
TASK_SHARE, CORRELATION = 0.7, 0.7
"""Assumed where no pilot shows them: single answers of two good models then correlate by 0.5."""
_ASK = (
    "Say what the plan is for: a difference to show (--difference 5%), a width of the interval "
    "(--width 4%), a margin (--no-worse 2%) or a policy to decide (--policy FILE)."
)
_ASSUME = "--rate for a rate, or --mean and --sd for a cost, a time or a score"


def plan(
    pilot: Given | None = None,
    *,
    difference: Amount | None = None,
    width: Amount | None = None,
    no_worse: Amount | None = None,
    metric: str | None = None,
    rate: Amount | None = None,
    mean: Amount | None = None,
    sd: Amount | None = None,
    task_share: Amount | None = None,
    correlation: float | None = None,
    runs: Sequence[int] = RUNS,
    power: Amount = 0.8,
    confidence: float = 0.95,
    comparisons: int = 1,
    tasks: int | None = None,
    cost_per_attempt: Amount | None = None,
    by: str | Sequence[str] = (),
    where: Mapping[str, str] | None = None,
    map: Mapping[str, str] | None = None,  # noqa: A002
    skip_bad: bool = False,
    store: str | Store | None = None,
) -> SamplePlan:
    """Return how many tasks a question needs, for each number of attempts at a task.

    The question is a `difference` between two sides to show, a `width` that the interval should
    have, or a margin by which one side is shown to be `no_worse`. Amounts are shares (`0.05` or
    `"5%"`) of a rate, and relative (`"10%"`) of a cost or a time. `pilot` is what `score` takes.
    Its records show how the metric varies; what they do not show is assumed, and so is everything
    without a pilot: `rate`, or `mean` and `sd`; `task_share`, the share of the variance that lies
    between tasks; `correlation`, that of two sides' tasks. `tasks` is how many tasks there are.

    >>> found = plan(difference="5%", rate=0.8, runs=[1, 5])
    >>> [(row.runs, row.tasks, row.attempts) for row in found.rows]
    [(1, 569, 1138), (5, 293, 2930)]
    """
    question, amount = _question(difference=difference, width=width, no_worse=no_worse)
    by = [by] if isinstance(by, str) else list(by)
    given = _Given.of(metric, rate, mean, sd, task_share, correlation)
    checked = _checked_runs(runs)
    strength = _share("--power", power)
    if not 0.5 <= strength < 1:
        raise UsageError(f"--power {power}: it must be at least 50 % and below 100 %.")
    if not 0 < confidence < 1:
        raise UsageError(f"The confidence is {confidence:g}; it must be between 0 and 1.")
    if comparisons < 1:
        raise UsageError(f"--comparisons {comparisons}: there is at least one.")
    if tasks is not None and tasks < 2:
        raise UsageError(f"--tasks {tasks}: at least two tasks are needed to see how they vary.")
    paired = question != "width"
    seen = None
    if pilot is not None:
        records = PilotRecords.read(
            resolve(pilot, store), [metric] if metric else [], by, where or {},
            paired=paired, map=map, skip_bad=skip_bad,
        )  # fmt: skip
        seen = records.pilot(metric or records.headline(), *given.defaults)
    variation, about = given.joined(seen)
    relative, size = _size(question, amount, about.metric, variation)
    cost = seen.cost if seen else None
    if cost_per_attempt is not None:
        cost = _cost(cost_per_attempt)
    level = (1 - confidence) / comparisons
    needed = _needed(question, variation, size, level, strength)
    sides = 2 if paired else 1
    low, high = variation.likely(paired=paired)

    def row(each: int) -> PlanRow:
        found = needed(each)
        if found is None:
            return PlanRow(each, None)
        attempts = found * each * sides
        likely = (math.floor(found * low), math.ceil(found * high)) if low < 1 < high else None
        return PlanRow(each, found, likely, attempts, None if cost is None else attempts * cost)

    made = SamplePlan(
        question=question,
        amount=size,
        relative=relative,
        unit=metric_named(about.metric).unit or "",
        power=strength,
        confidence=confidence,
        comparisons=comparisons,
        sides=sides,
        rows=tuple(row(each) for each in checked),
        about=(about,),
        pilot_tasks=seen.tasks if seen else None,
        pilot_attempts=seen.attempts if seen else None,
        cost_per_attempt=cost,
        available=tasks,
    )
    return made if made.best else replace(made, limit=needed(UNLIMITED))


def _question(**amounts: Amount | None) -> tuple[Question, Amount]:
    given = [(name, amount) for name, amount in amounts.items() if amount is not None]
    if not given:
        raise UsageError(_ASK)
    if len(given) > 1:
        names = " and ".join(f"--{name.replace('_', '-')}" for name, _ in given)
        raise UsageError(f"{names} are two questions; plan for one at a time.")
    (name, amount), *_ = given
    return name, amount  # type: ignore[return-value]


def _needed(
    question: Question, variation: Variation, size: float, level: float, power: float
) -> Callable[[int], int | None]:
    """Return the function that gives the tasks needed for each number of attempts."""
    number = variation.kind == "number"
    if question == "width":
        wanted = size * variation.mean if number else size
        return lambda runs: tasks_for_width(variation, wanted, runs, 1 - level)
    if question == "no_worse":
        margin = math.log1p(size) if number else size
        return lambda runs: tasks_for_margin(variation, margin, runs, level, power)
    apart = abs(math.log(ratio_of(size))) if number else size
    return lambda runs: tasks_for_difference(variation, apart, runs, level, power)


def ratio_of(difference: float) -> float:
    """Return the ratio of two sides that a relative difference means: less, if that is possible.

    >>> ratio_of(0.1), ratio_of(1.5)
    (0.9, 2.5)
    """
    return 1 - difference if difference < 1 else 1 + difference


@dataclass(frozen=True, slots=True)
class _Given:
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
    ) -> _Given:
        """Read and check the assumptions."""
        declared = metric_named(metric or ("cost_usd_mean" if mean is not None else "pass_rate"))
        kind = kind_of(declared)
        if rate is not None and mean is not None:
            raise UsageError("--rate and --mean are both given; a metric has one of them.")
        if rate is not None and declared.range != (0, 1):
            raise UsageError(f"{declared.name} is not a rate: give --mean and --sd.")
        if sd is not None and mean is None:
            raise UsageError("--sd needs --mean.")
        share = None if task_share is None else _share("--task-share", task_share)
        if correlation is not None and not 0 <= correlation <= 1:
            raise UsageError(f"--correlation {correlation:g}: it must be between 0 and 1.")
        middle = None if rate is None else _share("--rate", rate)
        if middle is not None and not 0 < middle < 1:
            raise UsageError(
                f"--rate {rate}: what always passes or always fails does not vary. "
                "Give a rate between 0 and 100 %."
            )
        values = [
            None if x is None else _value(name, x, declared.name, kind)
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
            if not pilot.repeated:
                assumed.append("task_share")
            if len(pilot.sides) < 2:
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


def _size(
    question: Question, amount: Amount, metric: str, variation: Variation
) -> tuple[bool, float]:
    """Read the amount of a question: relative to the mean for numbers, else a share."""
    option = f"--{question.replace('_', '-')}"
    read = _quantity(option, amount)
    if read.number <= 0:
        example = "10%" if variation.kind == "number" else "5%"
        what = {
            "difference": "a difference this small; give the smallest one that matters to you",
            "no_worse": "that nothing is worse; give the largest loss that you accept",
        }.get(question, "a width this small; give one that is narrow enough for you")
        raise UsageError(f"{option} {amount}: no number of tasks shows {what}, such as {example}.")
    if variation.kind == "number":
        kind = kind_of(metric_named(metric))
        size = read.number / 100 if read.unit == "%" else read.value(metric, kind) / variation.mean
        return True, size
    size = _value(option, amount, metric, kind_of(metric_named(metric)))
    mean = variation.mean
    most = 1.0 if question == "width" else 2 * min(mean, 1 - mean)
    if question == "difference" and size > most:
        raise UsageError(
            f"{option} {amount}: two sides around {mean:.1%} differ by at most {most:.1%}. "
            "Give a smaller difference, or another --rate."
        )
    if size >= 1:
        raise UsageError(f"{option} {amount}: it must be below 100 %.")
    return False, size


def _quantity(option: str, amount: Amount) -> Quantity:
    try:
        read = Quantity.parse(amount)
    except UsageError:
        raise UsageError(f"{option} {amount}: it must be an amount such as 5% or 0.05.") from None
    if read.sign is not None:
        raise UsageError(f"{option} {amount}: it must be an amount without a sign, such as 5%.")
    return read


def _value(option: str, amount: Amount, metric: str, kind: str) -> float:
    try:
        return _quantity(option, amount).value(metric, kind)
    except UsageError as error:
        raise UsageError(f"{option} {amount}: {error}") from None


def _share(option: str, amount: Amount) -> float:
    read = _quantity(option, amount)
    number = read.number / 100 if read.unit == "%" or read.number >= 2 else read.number
    if read.unit not in {"", "%"} or not 0 <= number <= 1:
        raise UsageError(f"{option} {amount}: it must be between 0 and 100 %.")
    return number


def _cost(amount: Amount) -> float:
    cost = _value("--cost-per-attempt", amount, "the cost", "US$")
    if cost < 0:
        raise UsageError(f"--cost-per-attempt {amount}: it must not be negative.")
    return cost


def _checked_runs(runs: Sequence[int]) -> list[int]:
    if not runs:
        raise UsageError("--runs lists how often each task may be tried, such as 1,3,5.")
    for each in runs:
        if not 1 <= each <= MAX_RUNS:
            raise UsageError(f"--runs {each}: it must be from 1 to {MAX_RUNS:,}.")
    return sorted(set(runs))
