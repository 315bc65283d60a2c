"""Sequential gates: decided during a run, as soon as the evidence suffices.

At each look a gate computes the interval that `pennyweight gate` would, at a stricter level that
`sequential.py` sets, and compares it with the ends of its indifference zone. So the interval that
is shown never contradicts the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
import polars as pl

from pennyweight.catalogue import METRICS
from pennyweight.gates.baseline_gate import BaselineTest
from pennyweight.gates.early_stopping import EarlyStopPlan
from pennyweight.gates.policy import Gate
from pennyweight.gates.records import GateRecords
from pennyweight.gates.sequential import (
    HORIZON,
    SCORES,
    Look,
    Walk,
    horizon,
    rate_look,
    sizes,
    spent,
)
from pennyweight.gates.threshold import shown, unit_of
from pennyweight.gates.threshold_gate import ThresholdTest, rate_ends
from pennyweight.gates.verdict import Decision, Word
from pennyweight.stats.interval import Floats
from pennyweight.text.format import count, difference, interval, plural

ENOUGH = 29
"""The fewest tasks that show a mean of numbers: what one task in ten does is seen with 95 %."""

SAME = 1e-9
"""A variation below this share of the values is a rounding error."""
LEAST = 1e-12
"""The strictest level of an interval."""

Ends = tuple[float, float]
"""The low and the high end of an interval, in the better direction."""


@dataclass(frozen=True, slots=True)
class Part:
    """The tasks that a look uses: their names, values (higher is better) and numbers of tries."""

    names: tuple[str, ...]
    values: Floats
    tries: Floats
    attempts: int
    """How many attempts at each task count."""
    last: bool
    """Whether the suite has no more attempts to make."""

    def first(self, tasks: int) -> Part:
        """Return the part with the first tasks only."""
        whole = self.last and tasks == len(self.names)
        cut = self.names[:tasks], self.values[:tasks], self.tries[:tasks]
        return Part(*cut, self.attempts, whole)


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
        """Whether a gate can be tested so: it is on the interval of a mean over tasks."""
        metric = METRICS.get(gate.metric)
        if gate.on != "confident" or metric is None or metric.over != "scored":
            return False
        if gate.against == "no_worse_than" and not (gate.margin and gate.margin.value > 0):
            return False
        if metric.range != (0, 1) and (gate.paired or not gate.threshold or not gate.zone):
            return False
        return records.values(gate.metric) is not None and not records.weighs(gate.metric)

    def at(self, pass_level: float, fail_level: float) -> Decision:
        """Decide at these levels, which bound the error rates over all looks together."""
        levels = pass_level, fail_level
        if self.fraction and not self.test.gate.paired and self.claims[1] <= 0:
            return self.certain(self.part(1))
        if self.plan.runs == 1 and self.passes:
            return self.exact(self.part(1), levels)
        return self.approximate(levels)

    def certain(self, part: Part) -> Decision:
        """Pass a threshold that any value meets, or (if strict) any value above 0."""
        threshold = self.test.gate.threshold
        assert threshold is not None
        strict = threshold.sign in {">", "<"}
        held = np.flatnonzero(part.values > 0) if strict else np.arange(len(part.values))
        if not len(held):
            return self.decision("inconclusive", part, None)
        ends = (float(np.nextafter(0, 1)) if strict else 0.0, 1.0)
        return self.decision("pass", part.first(int(held[0]) + 1), ends)

    def exact(self, part: Part, levels: Ends) -> Decision:
        """Decide on passes and failures, after every task."""
        if not len(part.values):
            return self.decision("inconclusive", part, None)
        planned = len(self.tasks)
        look = rate_look(part.values, self.claims, levels, planned, whole=part.last)
        part = part.first(look.tasks)
        low, high = self.rate_ends(part, look)
        bad, good = self.claims  # a count that just suffices leaves rounding errors
        low = max(low, bad) if look.verdict == "pass" else low
        high = min(high, float(np.nextafter(good, 0))) if look.verdict == "fail" else high
        return self.decision(look.verdict, part, (low, high))

    @staticmethod
    def rate_ends(part: Part, look: Look) -> Ends:
        """Return the ends of a rate at the levels of a look."""
        hits, n = round(float(part.values.sum())), len(part.values)
        low = rate_ends(hits, n, look.pass_level)[0] if look.pass_level else 0.0
        return low, rate_ends(hits, n, look.fail_level)[1] if look.fail_level else 1.0

    def approximate(self, levels: Ends) -> Decision:
        """Decide on a mean after growing numbers of tasks, then after each round of attempts."""
        part, ends = self.part(1).first(0), None
        walks = (Walk.start(), Walk.start())
        for new, time, done in self.looks():
            needed = self.needed(new, levels)
            planned = len(self.tasks) * self.plan.runs
            total = [x if new.last else spent(done, needed, planned, x) for x in levels]
            looked = [w.look(time, x) for w, x in zip(walks, total, strict=True)]
            found = self.ends(new, (looked[0][0], looked[1][0]))
            if found is None:
                continue
            part, ends, walks = new, found, (looked[0][1], looked[1][1])
            if (word := self.word(ends)) != "inconclusive":
                return self.decision(word, part, ends)
        return self.decision("inconclusive", part, ends)

    def looks(self) -> Iterator[tuple[Part, float, int]]:
        """Yield the part of each look, its information as a number of tasks, and its attempts."""
        gain, first = 1.0, 0.0
        for number in range(1, self.plan.runs + 1):
            part, whole = self.round(number)
            n = len(part.values)
            if number > 1:
                if not whole or n < 2:
                    return
                spread = float(part.values.var())
                gain = max(gain, first / spread if spread else 1.0) + 1e-6
                yield part, n * gain, number * len(self.tasks)
                continue
            for size in sizes(len(self.tasks)):
                if size < n + (not whole) and (size >= ENOUGH or self.passes):
                    yield part.first(size), float(size), size
            if not whole:
                return
            first = float(part.values.var()) if n else 0.0
            yield part, float(n), len(self.tasks)

    def needed(self, part: Part, levels: Ends) -> float:
        """Return after how many tasks the error rate may be spent, by the variance so far."""
        if len(part.values) < 2:
            return math.inf
        bad, good = self.claims
        variance = float(part.values.var(ddof=1))
        if isinstance(self.test, BaselineTest) and self.test.kind == "rate":
            variance = max(variance, 1 / len(part.values))  # the next task may differ
        times = HORIZON if self.test.gate.paired or self.passes else SCORES
        return horizon((math.sqrt(variance),) * 2, good - bad, levels, times)

    def ends(self, part: Part, levels: Ends) -> Ends | None:
        """Return the interval at the levels of a look; None if nothing shows how values vary."""
        if len(part.values) < 2:
            return None
        levels = max(levels[0], LEAST), max(levels[1], LEAST)
        if isinstance(self.test, BaselineTest):
            one, two = (self.compared(part).ends(x) for x in levels)
            return None if one is None or two is None else (one[0], two[1])
        if not self.passes and float(np.ptp(part.values)) < SAME * float(np.abs(part.values).max()):
            return None
        test = replace(self.test, records=self.used(part))
        side = 0 if self.upwards else 1
        low, high = test.ends(levels[0])[side], test.ends(levels[1])[1 - side]
        if not isinstance(low, float) or not isinstance(high, float):
            return None
        return self.turned(low), self.turned(high)

    def word(self, ends: Ends) -> Word:
        """Compare an interval with the ends of the zone.

        An interval inside the zone is on one side of the limit that the gate states: below a
        threshold, above an allowed loss.
        """
        bad, good = self.claims
        if self.test.gate.paired and ends[0] >= bad:
            return "pass"
        return "fail" if ends[1] < good else "pass" if ends[0] >= bad else "inconclusive"

    @property
    def claims(self) -> Ends:
        """The highest bad mean and the lowest good mean; higher is better."""
        gate = self.test.gate
        if gate.against == "better":
            return 0.0, gate.zone
        if gate.against == "no_worse_than":
            assert gate.margin is not None
            return -gate.margin.value, 0.0
        assert gate.threshold is not None
        good = self.turned(gate.threshold.value)
        return good - (min(gate.zone, good / 2) if self.fraction else gate.zone), good

    def part(self, number: int) -> Part:
        """Return the tasks that were tried so often, up to the first one that was not."""
        return self.round(number)[0]

    def round(self, number: int) -> tuple[Part, bool]:
        """Return the tasks' means over their first attempts, and whether the round is complete.

        They end before the first task without so many attempts. A task with an attempt that failed
        or has no value is left out.
        """
        rows = self.records.frame
        tried = rows.filter(pl.col("attempt").fill_null(1) <= number)
        counts = dict(tried.group_by("task_id").len().iter_rows())
        units = replace(self.records, frame=tried).units(self.test.gate.metric)
        known = {n: (v, t) for n, v, t in units.select("task_id", "value", "tries").iter_rows()}
        made = [task for task in self.tasks if counts.get(task, 0) >= number]
        whole = len(made) == len(self.tasks)
        if not whole:
            made = list(takewhile(lambda task: counts.get(task, 0) >= number, self.tasks))
        names = tuple(task for task in made if task in known)
        before = self.test.old if isinstance(self.test, BaselineTest) else {}
        values = np.array([self.turned(known[n][0]) - before.get(n, 0.0) for n in names])
        tries = np.array([known[n][1] for n in names])
        return Part(names, values, tries, number, whole and number == self.plan.runs), whole

    @property
    def passes(self) -> bool:
        """Whether the values are passes and failures."""
        return not self.test.gate.paired and self.records.is_rate(self.test.gate.metric)

    @property
    def fraction(self) -> bool:
        """Whether the values are from 0 to 1."""
        return METRICS[self.test.gate.metric].range == (0, 1)

    @property
    def upwards(self) -> bool:
        """Whether higher is better, according to the threshold or else the metric."""
        threshold = self.test.gate.threshold
        if self.test.gate.paired or threshold is None:
            return METRICS[self.test.gate.metric].better != "lower"
        return threshold.upwards

    def turned(self, value: float) -> float:
        """Turn a value of the metric so that higher is better, or back."""
        if self.upwards:
            return value
        return 1 - value if self.fraction else -value

    def used(self, part: Part) -> GateRecords:
        """Return the records that a look uses."""
        tried = pl.col("attempt").fill_null(1) <= part.attempts
        return replace(
            self.records,
            frame=self.records.frame.filter(pl.col("task_id").is_in(part.names) & tried),
        )

    def compared(self, part: Part) -> BaselineTest:
        """Return the comparison over the tasks of a look."""
        test = self.test
        assert isinstance(test, BaselineTest)
        place = {name: i for i, name in enumerate(test.tasks)}
        rows = [place[name] for name in part.names]
        before = test.before[rows]
        now = part.values + before
        sides = [float(self.turned(x)) for x in (before.mean(), now.mean())] if rows else [0.0, 0.0]
        return replace(
            test,
            tasks=pl.Series(part.names, dtype=pl.String),
            before=before,
            now=now,
            tries=(test.tries[0][rows], part.tries),
            sides=(sides[0], sides[1]),
        )

    def decision(self, verdict: Word, part: Part, ends: Ends | None) -> Decision:
        """Write the decision about the tasks that a look used."""
        gate, test = self.test.gate, self.test
        zone = sorted(self.back(claim) for claim in self.claims)
        if not part.names:
            part = self.part(1)
        if isinstance(test, BaselineTest):
            test = self.compared(part)
        elif part.names and not part.last:
            used = self.used(part)
            mean = self.turned(float(part.values.mean()))
            of = replace(test.estimate, value=mean, records=round(float(part.tries.sum())))
            test = replace(test, records=used, estimate=of)
        low, high = (None, None) if ends is None else sorted(self.back(end) for end in ends)
        why = f"after {count(len(part.names))} of {plural(len(self.tasks), 'task')} "
        bad, good = (self.written(x) for x in self.claims)
        if self.fraction and not gate.paired and self.claims[1] <= 0 and verdict == "pass":
            why += f"{gate.threshold} is met, regardless of the remaining tasks."
        elif low is None or high is None:
            why += f"neither {good} or better nor {bad} or worse can be ruled out"
        else:
            unit = unit_of(gate.kind)
            why += f"its interval, {interval(low, high, unit, signed=gate.paired)}, rules out "
            why += {
                "pass": f"{bad} or worse",
                "fail": f"{good} or better",
                "inconclusive": f"neither {good} or better nor {bad} or worse",
            }[verdict]
        if not why.endswith("."):
            around = interval(zone[0], zone[1], unit_of(gate.kind), signed=gate.paired)
            why += f" (indifference zone {around})."
        if isinstance(test, ThresholdTest):
            why = f"{shown(test.value, gate.kind)}; {why}"
        return replace(
            test.decision(verdict, why, low, high),
            tasks=len(part.names),
            test="sequential",
            indifference=(zone[0], zone[1]),
            planned_tasks=len(self.tasks),
        )

    def written(self, claim: float) -> str:
        """Write a claim in the unit of the metric."""
        value, kind = self.back(claim), self.test.gate.kind
        if self.test.gate.paired:
            return f"a difference of {difference(value, unit_of(kind))}"
        return shown(value, kind)

    def back(self, value: float) -> float:
        """Convert a value from the scale of the test to that of the metric."""
        return value if self.test.gate.paired else self.turned(value)
