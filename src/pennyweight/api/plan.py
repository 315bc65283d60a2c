"""Plan: how many tasks and repeats a question needs, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pennyweight.api.gate import read_policy
from pennyweight.api.sources import Given, resolve
from pennyweight.catalogue import canonical, metric_named
from pennyweight.errors import UsageError
from pennyweight.gates.assumption import (
    Amount,
    Assumption,
    read_cost,
    read_quantity,
    read_share,
    read_value,
)
from pennyweight.gates.decision import needed_metrics
from pennyweight.gates.planned_gate import planned_gates
from pennyweight.gates.policy import Policy
from pennyweight.gates.threshold import kind_of
from pennyweight.scoring.pilot import PilotRecords
from pennyweight.scoring.sample_plan import Assumptions, PlannedGate, PlanRow, Question, SamplePlan
from pennyweight.scoring.typical_records import tasks_for_width
from pennyweight.stats.sample_size import tasks_for_difference, tasks_for_margin
from pennyweight.stats.variation import Variation

if TYPE_CHECKING:
    from pennyweight.store.store import Store

RUNS = (1, 3, 5, 10)
UNLIMITED = 100
"""More attempts at each task than this change nothing that matters."""
MAX_RUNS = 1_000
_ASK = (
    "Say what the plan is for: a difference to show (--difference 5%), a width of the interval "
    "(--width 4%), a margin (--no-worse 2%) or a policy to decide (--policy FILE)."
)


def plan(
    pilot: Given | None = None,
    *,
    difference: Amount | None = None,
    width: Amount | None = None,
    no_worse: Amount | None = None,
    policy: str | Path | Policy | Sequence[str | Path] | None = None,
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
    have, a margin by which one side is shown to be `no_worse`, or a `policy` to decide. Amounts are
    shares (`0.05` or `"5%"`) of a rate, and relative (`"10%"`) of a cost or a time. `pilot` is what
    `score` takes. Its records show how the metric varies; what they do not show is assumed, and so
    is everything without a pilot: `rate`, or `mean` and `sd`; `task_share`, the share of the
    variance that lies between tasks; `correlation`, that of two sides' tasks. `tasks` is how many
    tasks there are.

    >>> found = plan(difference="5%", rate=0.8, runs=[1, 5])
    >>> [(row.runs, row.tasks, row.attempts) for row in found.rows]
    [(1, 559, 1118), (5, 293, 2930)]
    """
    policy = policy or None
    metric = metric and canonical(metric)
    questions = {"difference": difference, "width": width, "no_worse": no_worse, "policy": policy}
    question = _question([name for name, given in questions.items() if given is not None])
    by = [by] if isinstance(by, str) else list(by)
    assumption = Assumption.of(metric, rate, mean, sd, task_share, correlation)
    goal = _Goal(
        question, _checked_runs(runs), _power(power), confidence, comparisons, tasks,
        None if cost_per_attempt is None else read_cost(cost_per_attempt),
    )  # fmt: skip
    goal.check()
    rules = None
    if policy is not None:
        rules = policy if isinstance(policy, Policy) else read_policy(policy)
    wanted = needed_metrics(rules) if rules else [metric] if metric else []
    records = None
    if pilot is not None:
        records = PilotRecords.read(
            resolve(pilot, store), wanted, by, where or {}, options=rules.options if rules else {},
            paired=goal.paired, map=map, skip_bad=skip_bad,
        )  # fmt: skip
    if rules is not None:
        return goal.for_policy(rules, assumption, records)
    amount = next(x for x in (difference, width, no_worse) if x is not None)
    return goal.for_amount(amount, assumption, records)


def _question(given: Sequence[str]) -> Question:
    if not given:
        raise UsageError(_ASK)
    if len(given) > 1:
        names = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"{names} are different questions; plan for one at a time.")
    return given[0]  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class _Goal:
    """A question with how surely it should be answered, and with how many attempts."""

    question: Question
    runs: list[int]
    power: float
    confidence: float
    comparisons: int
    available: int | None
    cost: float | None

    def check(self) -> None:
        """Refuse impossible values."""
        if not 0 < self.confidence < 1:
            raise UsageError(f"The confidence is {self.confidence:g}; it must be between 0 and 1.")
        if self.comparisons < 1:
            raise UsageError(f"--comparisons {self.comparisons}: there is at least one.")
        if self.available is not None and self.available < 2:
            raise UsageError(f"--tasks {self.available}: how tasks vary shows in at least two.")

    @property
    def paired(self) -> bool:
        """Whether two sides are compared."""
        return self.question in {"difference", "no_worse"}

    @property
    def level(self) -> float:
        """The significance level of one comparison."""
        return (1 - self.confidence) / self.comparisons

    def for_amount(
        self, amount: Amount, assumption: Assumption, records: PilotRecords | None
    ) -> SamplePlan:
        """Plan for a difference, a width or a margin of one metric."""
        seen = None
        if records is not None:
            metric = assumption.metric or records.headline()
            seen = records.pilot(metric, *assumption.defaults)
        variation, about = assumption.joined(seen)
        size = _size(self.question, amount, about.metric, variation)
        needed = self._needed(variation, size)
        made = self._plan(
            [needed(each) for each in self.runs],
            (about,),
            records,
            likely=variation.likely(paired=self.paired),
        )
        made = replace(
            made,
            amount=size,
            relative=variation.kind == "number",
            unit=metric_named(about.metric).unit or "",
        )
        return made if made.best else replace(made, limit=needed(UNLIMITED))

    def _needed(self, variation: Variation, size: float) -> Callable[[int], int | None]:
        """Return the function that gives the tasks needed for each number of attempts."""
        number, level, power = variation.kind == "number", self.level, self.power
        if self.question == "width":
            wanted = size * variation.mean if number else size
            return lambda runs: tasks_for_width(variation, wanted, runs, 1 - level)
        if self.question == "no_worse":
            return lambda runs: tasks_for_margin(variation, size, runs, level, power)
        apart = max(ratio_of(size), 1 / ratio_of(size)) - 1 if number else size
        return lambda runs: tasks_for_difference(variation, apart, runs, level, power)

    def for_policy(
        self, policy: Policy, assumption: Assumption, records: PilotRecords | None
    ) -> SamplePlan:
        """Plan for all gates of a policy that are decided on intervals."""
        runs = [*self.runs, UNLIMITED]
        gates, about = planned_gates(policy, assumption, records, runs, self.power)
        if not about:
            raise UsageError(_unplanned(policy, gates))
        tasks = [
            None if None in column else max(n for n in column if n is not None)
            for column in zip(*(gate.tasks for gate in gates if not gate.why), strict=True)
        ]
        made = self._plan(tasks[:-1], about, records)
        return replace(
            made,
            policy=policy.name,
            confidence=1 - policy.error_rate,
            gates=tuple(replace(gate, tasks=gate.tasks[:-1]) for gate in gates),
            limit=None if made.best else tasks[-1],
        )

    def _plan(
        self,
        needed: Sequence[int | None],
        about: tuple[Assumptions, ...],
        records: PilotRecords | None,
        likely: tuple[float, float] = (1.0, 1.0),
    ) -> SamplePlan:
        sides = 2 if self.paired else 1
        cost = records.cost if records and self.cost is None else self.cost
        low, high = likely

        def row(runs: int, tasks: int | None) -> PlanRow:
            if tasks is None:
                return PlanRow(runs, None)
            attempts = tasks * runs * sides
            ends = (math.floor(tasks * low), math.ceil(tasks * high)) if low < 1 < high else None
            return PlanRow(runs, tasks, ends, attempts, None if cost is None else attempts * cost)

        return SamplePlan(
            question=self.question,
            power=self.power,
            confidence=self.confidence,
            comparisons=self.comparisons,
            sides=sides,
            rows=tuple(map(row, self.runs, needed)),
            about=about,
            pilot_tasks=records.tasks if records else None,
            pilot_attempts=records.frame.height if records else None,
            cost_per_attempt=cost,
            available=self.available,
        )


def _unplanned(policy: Policy, gates: Sequence[PlannedGate]) -> str:
    if all(gate.on == "value" for gate in policy.gates):
        return (
            f"{policy.name} decides every gate on its value alone, with any number of tasks. With "
            "'on: confident' a gate is decided on its interval, which can be planned for."
        )
    reasons = "; ".join(f"{gate.name}: {gate.why}" for gate in gates)
    return f"No gate of {policy.name} can be planned. {reasons}."


def ratio_of(difference: float) -> float:
    """Return the ratio of two sides that a relative difference means: less, if that is possible.

    >>> ratio_of(0.1), ratio_of(1.5)
    (0.9, 2.5)
    """
    return 1 - difference if difference < 1 else 1 + difference


def _size(question: Question, amount: Amount, metric: str, variation: Variation) -> float:
    """Read the amount of a question: relative to the mean for numbers, else a share."""
    option = f"--{question.replace('_', '-')}"
    read = read_quantity(option, amount)
    kind = kind_of(metric_named(metric))
    if read.number <= 0:
        example = "10%" if variation.kind == "number" else "5%"
        what = {
            "difference": "a difference this small; give the smallest one that matters to you",
            "no_worse": "that nothing is worse; give the largest loss that you accept",
        }.get(question, "a width this small; give one that is narrow enough for you")
        raise UsageError(f"{option} {amount}: no number of tasks shows {what}, such as {example}.")
    if variation.kind == "number":
        relative = read.unit == "%"
        return read.number / 100 if relative else read.value(metric, kind) / variation.mean
    size = read_value(option, amount, metric, kind)
    mean = variation.mean
    most = 2 * min(mean, 1 - mean)
    if question == "difference" and size > most:
        raise UsageError(
            f"{option} {amount}: two sides around {mean:.1%} differ by at most {most:.1%}. "
            "Give a smaller difference, or another --rate."
        )
    if size >= 1:
        raise UsageError(f"{option} {amount}: it must be below 100 %.")
    return size


def _power(amount: Amount) -> float:
    power = read_share("--power", amount)
    if not 0.5 <= power < 1:
        raise UsageError(f"--power {amount}: it must be at least 50 % and below 100 %.")
    return power


def _checked_runs(runs: Sequence[int]) -> list[int]:
    if not runs:
        raise UsageError("--runs lists how often each task may be tried, such as 1,3,5.")
    for each in runs:
        if not 1 <= each <= MAX_RUNS:
            raise UsageError(f"--runs {each}: it must be from 1 to {MAX_RUNS:,}.")
    return sorted(set(runs))
