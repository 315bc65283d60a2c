"""Sequential gates: decided while a run goes on, as soon as the evidence suffices."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pennyweight.catalogue import METRICS
from pennyweight.errors import UsageError
from pennyweight.gates.baseline_tests import BaselineTest
from pennyweight.gates.sequential import Looked, bounds, look
from pennyweight.gates.threshold import shown, unit_of
from pennyweight.gates.threshold_tests import ThresholdTest
from pennyweight.gates.verdict import Decision
from pennyweight.text.format import count, difference, interval, plural

if TYPE_CHECKING:
    from pennyweight.gates.policy import Gate
    from pennyweight.gates.records import GateRecords
    from pennyweight.stats.interval import Floats

FIRST_ROUND = 0.8
"""The part of the error rate that the first attempts at all tasks may use, where more follow."""
DISCORDANT = 0.04
"""The variance expected of half a task's difference: a sixth of the tasks end differently."""
SCORES = 0.15


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """One task that a run is going to try."""

    id: str
    category: str | None = None
    capability: str | None = None


@dataclass(frozen=True, slots=True)
class EarlyStopPlan:
    """The tasks of a run in the order in which they are tried, and how often."""

    tasks: tuple[PlannedTask, ...]
    runs: int

    def chosen(self, gate: Gate) -> list[str]:
        """Name the tasks that a gate is about."""
        return [task.id for task in self._having(gate.select)]

    def remaining(self, gate: Gate, records: GateRecords) -> int:
        """Count the attempts that are still to be made."""
        return max(0, len(self.chosen(gate)) * self.runs - records.frame.height)

    def where(self, wanted: Mapping[str, str]) -> EarlyStopPlan:
        """Keep the tasks of which records are picked so; refuse what a plan does not know."""
        columns = [(c, v) for c, v in wanted.items() if c not in ALIKE]
        for column, _ in columns:
            if column not in KNOWN:
                raise UsageError(
                    f"The run was stopped as soon as it was decided, so --where {column}=… cannot "
                    f"tell which of its tasks were to come; {', '.join(KNOWN)} can."
                )
        return replace(self, tasks=tuple(self._having(columns)))

    def _having(self, select: Iterable[tuple[str, str]]) -> list[PlannedTask]:
        wanted = [(KNOWN[c], v.strip().lower()) for c, v in select]
        return [
            task
            for task in self.tasks
            if all((getattr(task, c) or "").strip().lower() == v for c, v in wanted)
        ]


ALIKE = ("run", "subject", "tier")
"""Columns that have one value in a run that is made until it is decided."""
KNOWN = {"category": "category", "capability": "capability", "task_id": "id"}


def shuffled(ids: Sequence[str], seed: int) -> list[str]:
    """Shuffle tasks in an order that depends on the seed alone."""

    def mark(task: str) -> bytes:
        return hashlib.blake2b(f"{seed}\0{task}".encode(errors="surrogatepass")).digest()

    return sorted(ids, key=mark)


@dataclass(frozen=True, slots=True)
class Sequential:
    """A gate that is tested task by task, in the order of the plan."""

    test: ThresholdTest | BaselineTest
    plan: EarlyStopPlan
    records: GateRecords
    tasks: tuple[str, ...]
    """The tasks it is about, in order; of a comparison those that the baseline has."""

    @staticmethod
    def fits(gate: Gate, records: GateRecords) -> bool:
        """Whether a gate fits a sequential test: on the interval of a mean of values in [0, 1]."""
        metric = METRICS.get(gate.metric)
        if gate.on != "confident" or metric is None or metric.range != (0, 1):
            return False
        if gate.against == "no_worse_than" and not (gate.margin and gate.margin.value):
            return False
        return records.values(gate.metric) is not None and not records.weighs(gate.metric)

    def at(self, pass_level: float, fail_level: float) -> Decision:
        """Decide at these levels, whichever round of attempts does it."""
        found = Looked("inconclusive", 0, 1.0, 1.0)
        values: Floats = np.zeros(0)
        good, bad = self.claims
        for number in range(1, self.plan.runs + 1):
            values, whole = self.units(number)
            part = self.part(number)
            if good <= 0:
                found = self.sure(values)
            else:
                levels, variance = (part * pass_level, part * fail_level), self.variance(number)
                found = look(values, good, bad, *levels, variance=variance)
            if found.verdict != "inconclusive" or not whole:
                break
        return self.told(found, values[: max(found.tasks, 1)], min(pass_level, fail_level))

    @property
    def strict(self) -> bool:
        """Whether a value equal to the threshold misses it."""
        threshold = self.test.gate.threshold
        return threshold is not None and threshold.sign in {">", "<"}

    def sure(self, values: Floats) -> Looked:
        """Pass what no value, or no value above 0, can miss."""
        held = np.flatnonzero(values > 0) if self.strict else np.arange(len(values))
        if not len(held):
            return Looked("inconclusive", len(values), 1.0, 1.0)
        return Looked("pass", int(held[0]) + 1, math.inf, 1.0)

    def part(self, number: int) -> float:
        """Return the part of the error rate that a round may use."""
        if self.plan.runs == 1:
            return 1.0
        return FIRST_ROUND if number == 1 else (1 - FIRST_ROUND) / (self.plan.runs - 1)

    @property
    def claims(self) -> tuple[float, float]:
        """The mean that is good and the one that is bad, on the scale of the values."""
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
        """Return the tasks' means over their first attempts, up to the first that is not there yet.

        More is better in them. An attempt that could not be made, or has no value, leaves its task
        out. The second says whether the round is whole.
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
                own = means[task] if up else 1 - means[task]
                values.append((own - before[task] + 1) / 2 if before else own)
        return np.array(values), True

    def variance(self, number: int) -> float | None:
        """Return the variance to expect; None of passes and failures, whose mean gives it."""
        if self.before:
            return DISCORDANT
        return None if number == 1 and self.records.is_rate(self.test.gate.metric) else SCORES

    @property
    def upwards(self) -> bool:
        """Whether more of the metric is better: as the threshold says, or the metric itself."""
        threshold = self.test.gate.threshold
        if self.test.gate.paired or threshold is None:
            return METRICS[self.test.gate.metric].better != "lower"
        return threshold.upwards

    @property
    def before(self) -> dict[str, float]:
        """The value of each task in the baseline; empty without one."""
        return self.test.old if isinstance(self.test, BaselineTest) else {}

    def told(self, found: Looked, values: Floats, level: float) -> Decision:
        """Turn the state of the test into a decision."""
        gate = self.test.gate
        good, bad = (self.scaled(x) for x in self.claims)
        after = f"after {count(found.tasks)} of {plural(len(self.tasks), 'task')}"
        if math.isinf(found.for_pass):
            why = f"{after} {self.test.gate.threshold} is met, regardless of the remaining tasks."
        else:
            state = {
                "pass": f"the evidence against {bad} or worse is {round(found.for_pass):,} to 1",
                "fail": f"the evidence against {good} or better is {round(found.for_fail):,} to 1",
                "inconclusive": f"neither {good} or better nor {bad} or worse can be ruled out",
            }[found.verdict]
            why = f"{after} {state} ({self.zone_text()})."
        low, high = (self.unscaled(end) for end in bounds(values, level))
        ends = sorted((low, high))
        if found.verdict != "inconclusive":
            claim = self.unscaled(self.claims[found.verdict == "pass"])
            above = (found.verdict == "pass") == (self.unscaled(1.0) > self.unscaled(0.0))
            ends = [max(ends[0], claim), ends[1]] if above else [ends[0], min(ends[1], claim)]
        low, high = ends
        said = shown(self.test.value, gate.kind) + "; " if not gate.paired else ""
        ratios = {"pass": found.for_pass, "fail": found.for_fail, "inconclusive": None}
        return replace(
            self.test.decision(found.verdict, said + why, low, high),
            tasks=found.tasks,
            test="sequential",
            indifference=self.zone,
            evidence=ratios[found.verdict],
            planned_tasks=len(self.tasks),
        )

    @property
    def zone(self) -> tuple[float, float]:
        """The values between the claims, for which either verdict is right."""
        low, high = sorted(self.unscaled(claim) for claim in self.claims)
        return low, high

    def zone_text(self) -> str:
        """Write the indifference zone."""
        gate = self.test.gate
        return f"indifference zone {interval(*self.zone, unit_of(gate.kind), signed=gate.paired)}"

    def scaled(self, claim: float) -> str:
        """Write a claim in words."""
        value = self.unscaled(claim)
        if not self.test.gate.paired:
            return shown(value, self.test.gate.kind)
        return f"a difference of {difference(value, unit_of(self.test.gate.kind))}"

    def unscaled(self, value: float) -> float:
        """Turn the scale of the test back into the metric's."""
        gate = self.test.gate
        if gate.paired:
            return 2 * value - 1
        return value if self.upwards else 1 - value
