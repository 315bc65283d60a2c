"""Sequential gates: decided during a run, as soon as the evidence suffices."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from pennyweight.catalogue import METRICS
from pennyweight.errors import UsageError
from pennyweight.gates.baseline_gate import BaselineTest
from pennyweight.gates.policy import Gate
from pennyweight.gates.records import GateRecords
from pennyweight.gates.sequential import SequentialState, bounds, look
from pennyweight.gates.threshold import shown, unit_of
from pennyweight.gates.threshold_gate import ThresholdTest
from pennyweight.gates.verdict import Decision
from pennyweight.stats.interval import Floats
from pennyweight.text.format import count, difference, interval, plural

FIRST_ROUND = 0.8
"""The share of the error rate for the first attempts at all tasks, if there are more attempts."""
DISCORDANT = 0.04
"""The expected variance of half a task's difference, if a sixth of the tasks end differently."""
SCORES = 0.15
"""The expected variance of scores."""


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """One task of a run."""

    id: str
    category: str | None = None
    capability: str | None = None


@dataclass(frozen=True, slots=True)
class EarlyStopPlan:
    """The tasks of a run in the order in which it tries them, and the attempts at each."""

    tasks: tuple[PlannedTask, ...]
    runs: int

    def chosen(self, gate: Gate) -> list[str]:
        """Return the ids of the tasks that a gate uses."""
        return [task.id for task in self._having(gate.select)]

    def remaining(self, gate: Gate, records: GateRecords) -> int:
        """Count the attempts that have no record yet."""
        return max(0, len(self.chosen(gate)) * self.runs - records.frame.height)

    def where(self, wanted: Mapping[str, str]) -> EarlyStopPlan:
        """Keep the tasks with these values; refuse columns that a plan does not have."""
        columns = [(c, v) for c, v in wanted.items() if c not in CONSTANT]
        for column, _ in columns:
            if column not in KNOWN:
                raise UsageError(
                    f"The run stopped early, and its plan does not have the column {column!r}; "
                    f"use --where with {', '.join(KNOWN)}."
                )
        return replace(self, tasks=tuple(self._having(columns)))

    def _having(self, select: Iterable[tuple[str, str]]) -> list[PlannedTask]:
        wanted = [(KNOWN[c], v.strip().lower()) for c, v in select]
        return [
            task
            for task in self.tasks
            if all((getattr(task, c) or "").strip().lower() == v for c, v in wanted)
        ]


CONSTANT = ("run", "subject", "tier")
"""Columns that have one value in a run with --until-decided."""
KNOWN = {"category": "category", "capability": "capability", "task_id": "id"}


def shuffled(ids: Sequence[str], seed: int) -> list[str]:
    """Return tasks in a random order that depends only on the seed."""

    def rank(task: str) -> bytes:
        return hashlib.blake2b(f"{seed}\0{task}".encode(errors="surrogatepass")).digest()

    return sorted(ids, key=rank)


@dataclass(frozen=True, slots=True)
class Sequential:
    """The sequential test of a gate, task by task in the order of the plan."""

    test: ThresholdTest | BaselineTest
    plan: EarlyStopPlan
    records: GateRecords
    tasks: tuple[str, ...]
    """The tasks of the gate, in order; for a comparison, those that the baseline has."""

    @staticmethod
    def fits(gate: Gate, records: GateRecords) -> bool:
        """Whether a gate can be tested so: it is on the interval of a mean of values in [0, 1]."""
        metric = METRICS.get(gate.metric)
        if gate.on != "confident" or metric is None or metric.range != (0, 1):
            return False
        if gate.against == "no_worse_than" and not (gate.margin and gate.margin.value):
            return False
        return records.values(gate.metric) is not None and not records.weighs(gate.metric)

    def at(self, pass_level: float, fail_level: float) -> Decision:
        """Decide at these levels, after each round of attempts until one decides."""
        state = SequentialState("inconclusive", 0, 1.0, 1.0)
        values: Floats = np.zeros(0)
        good, bad = self.claims
        for number in range(1, self.plan.runs + 1):
            values, whole = self.units(number)
            part = self.part(number)
            if good <= 0:
                state = self.certain(values)
            else:
                levels, variance = (part * pass_level, part * fail_level), self.variance(number)
                state = look(values, good, bad, *levels, variance=variance)
            if state.verdict != "inconclusive" or not whole:
                break
        return self.decision(state, values[: max(state.tasks, 1)], min(pass_level, fail_level))

    @property
    def strict(self) -> bool:
        """Whether a value equal to the threshold misses it."""
        threshold = self.test.gate.threshold
        return threshold is not None and threshold.sign in {">", "<"}

    def certain(self, values: Floats) -> SequentialState:
        """Pass a threshold that any value meets, or (if strict) any value above 0."""
        held = np.flatnonzero(values > 0) if self.strict else np.arange(len(values))
        if not len(held):
            return SequentialState("inconclusive", len(values), 1.0, 1.0)
        return SequentialState("pass", int(held[0]) + 1, math.inf, 1.0)

    def part(self, number: int) -> float:
        """Return the share of the error rate for a round."""
        if self.plan.runs == 1:
            return 1.0
        return FIRST_ROUND if number == 1 else (1 - FIRST_ROUND) / (self.plan.runs - 1)

    @property
    def claims(self) -> tuple[float, float]:
        """The lowest good mean and the highest bad mean, on the scale of the values."""
        gate, zone = self.test.gate, self.test.gate.indifference
        if gate.against == "better":
            return (1 + zone) / 2, 0.5
        if gate.against == "no_worse_than":
            assert gate.margin is not None
            return 0.5, (1 - gate.margin.value) / 2
        assert gate.threshold is not None
        good = gate.threshold.value if self.upwards else 1 - gate.threshold.value
        return good, good - min(zone, good / 2)

    def units(self, number: int) -> tuple[Floats, bool]:
        """Return the tasks' means over their first attempts, up to the first task without them.

        Higher is better. A task with an attempt that failed or has no value is left out. The second
        result is whether the round is complete.
        """
        gate, rows = self.test.gate, self.records.frame
        tried = rows.filter(pl.col("attempt").fill_null(1) <= number)
        counts = dict(tried.group_by("task_id").len().iter_rows())
        units = replace(self.records, frame=tried).units(gate.metric)
        means = dict(units.select("task_id", "value").iter_rows())
        values: list[float] = []
        before, up = self.before, self.upwards
        for task in self.tasks:
            if counts.get(task, 0) < number:
                return np.array(values), False
            if task in means:
                value = means[task] if up else 1 - means[task]
                values.append((value - before[task] + 1) / 2 if before else value)
        return np.array(values), True

    def variance(self, number: int) -> float | None:
        """Return the expected variance; None for passes and failures, whose mean gives it."""
        if self.before:
            return DISCORDANT
        return None if number == 1 and self.records.is_rate(self.test.gate.metric) else SCORES

    @property
    def upwards(self) -> bool:
        """Whether higher is better, according to the threshold or else the metric."""
        threshold = self.test.gate.threshold
        if self.test.gate.paired or threshold is None:
            return METRICS[self.test.gate.metric].better != "lower"
        return threshold.upwards

    @property
    def before(self) -> dict[str, float]:
        """The value of each task in the baseline; empty without one."""
        return self.test.old if isinstance(self.test, BaselineTest) else {}

    def decision(self, state: SequentialState, values: Floats, level: float) -> Decision:
        """Turn the state of the test into a decision."""
        gate, verdict = self.test.gate, state.verdict
        good, bad = (self.written(x) for x in self.claims)
        zone = sorted(self.unscaled(claim) for claim in self.claims)
        why = f"after {count(state.tasks)} of {plural(len(self.tasks), 'task')} "
        if math.isinf(state.for_pass):
            why += f"{gate.threshold} is met, regardless of the remaining tasks."
        else:
            why += {
                "pass": f"the evidence against {bad} or worse is {round(state.for_pass):,} to 1",
                "fail": f"the evidence against {good} or better is {round(state.for_fail):,} to 1",
                "inconclusive": f"neither {good} or better nor {bad} or worse can be ruled out",
            }[verdict]
            ends = interval(zone[0], zone[1], unit_of(gate.kind), signed=gate.paired)
            why += f" (indifference zone {ends})."
        low, high = sorted(self.unscaled(end) for end in bounds(values, level))
        if verdict != "inconclusive":
            claim = self.unscaled(self.claims[verdict == "pass"])
            above = (verdict == "pass") == (self.unscaled(1.0) > self.unscaled(0.0))
            low, high = (max(low, claim), high) if above else (low, min(high, claim))
        if not gate.paired:
            why = f"{shown(self.test.value, gate.kind)}; {why}"
        odds = {"pass": state.for_pass, "fail": state.for_fail, "inconclusive": None}
        return replace(
            self.test.decision(verdict, why, low, high),
            tasks=state.tasks,
            test="sequential",
            indifference=(zone[0], zone[1]),
            evidence=odds[verdict],
            planned_tasks=len(self.tasks),
        )

    def written(self, claim: float) -> str:
        """Write a claim in the unit of the metric."""
        value, kind = self.unscaled(claim), self.test.gate.kind
        if self.test.gate.paired:
            return f"a difference of {difference(value, unit_of(kind))}"
        return shown(value, kind)

    def unscaled(self, value: float) -> float:
        """Convert a value from the scale of the test to that of the metric."""
        if self.test.gate.paired:
            return 2 * value - 1
        return value if self.upwards else 1 - value
