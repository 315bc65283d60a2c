"""Gates while a run is under way: decided as soon as the evidence is there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from assay.catalogue import METRICS
from assay.gates.paired import Pair
from assay.gates.sequential import Looked, bounds, look
from assay.gates.threshold import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.gates.confident import Against
    from assay.gates.policy import Gate
    from assay.gates.records import Records
    from assay.gates.verdict import Decision
    from assay.stats.interval import Floats

FIRST_ROUND = 0.8
"""The part of the error rate that the first attempts at all tasks may use, where more follow."""
DISCORDANT = 0.05
"""The variance expected of half a task's difference: a fifth of the tasks end differently."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One task that a run is going to try."""

    id: str
    category: str | None = None
    capability: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The tasks of a run in the order in which they are tried, and how often."""

    tasks: tuple[Planned, ...]
    runs: int

    def chosen(self, gate: Gate) -> list[str]:
        """Name the tasks that a gate is about."""
        wanted = [(c, v.strip().lower()) for c, v in gate.select]
        return [
            task.id
            for task in self.tasks
            if all((getattr(task, c) or "").strip().lower() == v for c, v in wanted)
        ]

    def remaining(self, gate: Gate, records: Records) -> int:
        """Count the attempts that are still to be made."""
        return max(0, len(self.chosen(gate)) * self.runs - records.frame.height)


def shuffled(ids: Sequence[str], seed: int | None) -> list[str]:
    """Put tasks in a random order that depends on the seed and on nothing else."""

    def mark(task: str) -> bytes:
        return hashlib.blake2b(f"{seed or 0}\0{task}".encode(errors="surrogatepass")).digest()

    return sorted(ids, key=mark)


@dataclass(frozen=True, slots=True)
class Sequential:
    """A gate that is tested task by task, in the order of the plan."""

    test: Against | Pair
    plan: Plan
    records: Records
    tasks: tuple[str, ...]
    """The tasks it is about, in order; of a comparison those that the baseline has."""

    @staticmethod
    def fits(gate: Gate, records: Records) -> bool:
        """Whether a gate can be tested so: a mean of values between 0 and 1, on its interval."""
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
        for number in range(1, self.plan.runs + 1):
            values, variance = self.units(number)
            part = self.part(number)
            found = look(values, *self.claims, part * pass_level, part * fail_level,
                         variance=variance)  # fmt: skip
            if found.verdict != "inconclusive" or len(values) < len(self.tasks):
                break
        return self.told(found, values[: max(found.tasks, 1)], min(pass_level, fail_level))

    def part(self, number: int) -> float:
        """Give the part of the error rate that a round may use."""
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
        good = gate.threshold.value if gate.threshold.upwards else 1 - gate.threshold.value
        return good, good - min(zone, good / 2)

    def units(self, number: int) -> tuple[Floats, float | None]:
        """Give the tasks' means over their first attempts, up to the first that is not there yet.

        An attempt that could not be made, or has no value, leaves its task out.
        """
        gate, rows = self.test.gate, self.records.frame
        tried = rows.filter(pl.col("attempt").fill_null(1) <= number)
        counts = dict(tried.group_by("task_id").len().iter_rows())
        units = replace(self.records, frame=tried).units(gate.metric)
        means = dict(units.select("task_id", "value").iter_rows())
        values: list[float] = []
        before = self.before
        for task in self.tasks:
            if counts.get(task, 0) < number:
                break
            if task in means:
                own = means[task] if METRICS[gate.metric].better != "lower" else 1 - means[task]
                values.append((own - before[task] + 1) / 2 if before else own)
        plain = number == 1 and not before and self.records.is_rate(gate.metric)
        variance = None if plain else DISCORDANT if before else 0.15
        return np.array(values), variance

    @property
    def before(self) -> dict[str, float]:
        """What each task was worth in the baseline; empty where there is none."""
        return self.test.old if isinstance(self.test, Pair) else {}

    def told(self, found: Looked, values: Floats, level: float) -> Decision:
        """Say what was found."""
        gate = self.test.gate
        good, bad = (self.scaled(x) for x in self.claims)
        after = f"after {found.tasks:,} of {len(self.tasks):,} tasks"
        if found.verdict == "pass":
            why = f"{after} the evidence against {bad} or worse is {found.for_pass:,.0f} to 1."
        elif found.verdict == "fail":
            why = f"{after} the evidence against {good} or better is {found.for_fail:,.0f} to 1."
        else:
            why = f"{after} neither {good} or better nor {bad} or worse can be ruled out."
        low, high = (self.unscaled(end) for end in bounds(values, level))
        ends = sorted((low, high))
        if found.verdict != "inconclusive":
            claim = self.unscaled(self.claims[found.verdict == "pass"])
            above = (found.verdict == "pass") == (self.unscaled(1.0) > self.unscaled(0.0))
            ends = [max(ends[0], claim), ends[1]] if above else [ends[0], min(ends[1], claim)]
        low, high = ends
        said = shown(self.test.value, gate.kind) + "; " if not gate.paired else ""
        return self.test.decision(found.verdict, said + why, low, high)

    def scaled(self, claim: float) -> str:
        """Write a claim in words."""
        value = self.unscaled(claim)
        if not self.test.gate.paired:
            return shown(value, "rate")
        sign = "+" if value > 0 else "−" if value < 0 else ""
        return f"a difference of {sign}{abs(value) * 100:.2g} points"

    def unscaled(self, value: float) -> float:
        """Turn the scale of the test back into the metric's."""
        gate = self.test.gate
        if gate.paired:
            return 2 * value - 1
        assert gate.threshold is not None
        return value if gate.threshold.upwards else 1 - value
