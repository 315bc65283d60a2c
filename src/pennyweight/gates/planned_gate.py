"""How many tasks decide a gate: typical records, put to the test of the gate itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from pennyweight.catalogue import METRICS
from pennyweight.errors import UsageError
from pennyweight.gates.assumption import Assumption
from pennyweight.gates.policy import Gate, Policy
from pennyweight.gates.records import GateRecords
from pennyweight.gates.threshold import Threshold
from pennyweight.gates.threshold_gate import ThresholdTest, mean_ends
from pennyweight.scoring.estimates import Estimate
from pennyweight.scoring.groups import mean_values
from pennyweight.scoring.pilot import PilotRecords
from pennyweight.scoring.sample_plan import Assumptions, PlannedGate
from pennyweight.scoring.typical_records import STAND_INS, typical_records
from pennyweight.stats.quantiles import normal_quantile, special
from pennyweight.stats.sample_size import MAX_TASKS, fewest, tasks_for_margin
from pennyweight.stats.variation import Variation

FEW = 60
"""Up to this many tasks each number is tried; beyond, the search ends within a hundredth."""
NEAR, LEAST = 1e-9, 1e-3
"""Values closer than this are equal; means of scores are at least this far from 0 and 1."""
MANY, LOWEST = 1_000, 0.8
"""Up to this many tasks tried once, every number from this share of them on is tried too."""


def planned_gates(
    policy: Policy,
    assumption: Assumption,
    records: PilotRecords | None,
    runs: Sequence[int],
    power: float,
) -> tuple[tuple[PlannedGate, ...], tuple[Assumptions, ...]]:
    """Plan every gate so that all of them are decided together as often as wanted.

    The second value has what is assumed about the metrics of the planned gates.
    """
    reasons = {gate.name: unplanned(gate, policy) for gate in policy.gates}
    several = max(1, sum(not why for why in reasons.values()))
    each = 1 - (1 - power) / several
    found: list[PlannedGate] = []
    about: dict[str, Assumptions] = {}
    for gate in policy.gates:
        entry = PlannedGate(gate.name, gate.metric, _rule(gate))
        why = reasons[gate.name]
        if not why:
            try:
                variation, assumed, share = _assumed(gate, assumption, records)
            except UsageError as error:
                why = str(error).rstrip(".")
        if why:
            found.append(replace(entry, why=why))
            continue
        about.setdefault(f"{gate.metric} {gate.select}", assumed)
        sharing = sum(g.level == gate.level and g.on == "confident" for g in policy.gates)
        question = GateQuestion(gate, variation, each, policy.error_rate, sharing)
        needed = (question.tasks(one) for one in runs)
        tasks = tuple(None if n is None else math.ceil(n / share) for n in needed)
        expected: Literal["pass", "fail"] | None = None
        if question.passes is not None:
            expected = "pass" if question.passes else "fail"
        found.append(replace(entry, value=variation.mean, expected=expected, tasks=tasks))
    return tuple(found), tuple(about.values())


def _rule(gate: Gate) -> str:
    if gate.paired:
        margin = gate.margin
        if margin and margin.value < 0:
            return f"at least {replace(margin, value=-margin.value)} better"
        return f"at most {margin} worse" if margin else gate.against
    return str(gate.threshold or "")


def _assumed(
    gate: Gate, assumption: Assumption, records: PilotRecords | None
) -> tuple[Variation, Assumptions, float]:
    """Return how the metric of a gate varies, and the share of the tasks that the gate is about."""
    own = assumption.about(gate.metric)
    if records is not None:
        chosen = records.where(gate.select)
        return *own.joined(chosen.pilot(gate.metric, *own.defaults)), chosen.tasks / records.tasks
    if gate.select:
        raise UsageError("it is about some of the tasks: a pilot shows how many they are")
    if not assumption.covers(gate.metric):
        rate = METRICS[gate.metric].range == (0, 1)
        given = "--rate" if rate else f"--metric {gate.metric} with --mean and --sd"
        raise UsageError(f"nothing is assumed about {gate.metric}: give {given}, or a pilot")
    return *own.joined(None), 1.0


def unplanned(gate: Gate, policy: Policy) -> str:
    """Return why no number of tasks can be given for a gate; an empty text if one can."""
    if gate.on == "value":
        return "it is decided on its value alone, with any number of tasks"
    if gate.metric in policy.composites:
        return "it combines several metrics"
    if mean_values(METRICS[gate.metric], policy.options) is None:
        return f"{gate.metric} is not a mean over records"
    if any(policy.weights.values()):
        return "its scenarios have weights"
    return _unpaired(gate) if gate.paired else _undecidable(gate.threshold)


def _unpaired(gate: Gate) -> str:
    """Return why a gate against a baseline is not planned."""
    if gate.against == "better":
        return "it asks for an improvement: plan for one with --difference"
    if METRICS[gate.metric].range != (0, 1):
        return "it compares a cost or a time with a baseline: plan for it with --no-worse"
    if gate.margin and gate.margin.value < 0:
        return "it asks for an improvement: plan for one with --difference"
    if not gate.margin or not gate.margin.value:
        return "it allows no margin, which no number of tasks can show"
    return ""


def _undecidable(threshold: Threshold | None) -> str:
    """Return why no interval can meet a threshold."""
    if threshold is None:
        return "it has no threshold"
    if threshold.extreme or threshold.sign == "=":
        return f"no number of tasks shows {threshold}"
    return ""


@dataclass(frozen=True, slots=True)
class GateQuestion:
    """A gate, how its metric is assumed to vary, and how often it should be decided."""

    gate: Gate
    variation: Variation
    power: float
    error_rate: float
    gates: int = 1
    """How many gates share the error rate of wrong fails."""

    @property
    def passes(self) -> bool | None:
        """Whether the assumed value passes; None if it is at the threshold itself."""
        if self.gate.paired:
            return True
        effect = self.threshold.effect(self.variation.mean)
        return None if abs(effect) < NEAR else effect > 0

    @property
    def threshold(self) -> Threshold:
        """The threshold of a gate that has one."""
        assert self.gate.threshold is not None
        return self.gate.threshold

    @property
    def level(self) -> float:
        """The probability of a wrong decision that the gate allows."""
        return self.error_rate if self.passes else self.error_rate / self.gates

    def tasks(self, runs: int) -> int | None:
        """Return how many tasks decide the gate as often as wanted."""
        if self.passes is None:
            return None
        if self.gate.paired:
            assert self.gate.margin is not None
            margin = self.gate.margin.value
            return tasks_for_margin(self.variation, margin, runs, self.level, self.power)
        both = normal_quantile(1 - self.level) + normal_quantile(self.power)
        gap = abs(self.threshold.effect(self.variation.mean))
        guess = self.variation.of_task(runs) * (both / gap) ** 2
        if guess > MAX_TASKS:
            return None
        found = _nearest(lambda tasks: self.decided(tasks, runs) >= self.power, guess)
        if found is None or self.variation.kind != "rate" or runs > 1 or found > MANY:
            return found
        fewer = range(math.floor(found * LOWEST), found)  # passes are whole, so power has teeth
        return next((n for n in fewer if self.decided(n, runs) >= self.power), found)

    def decided(self, tasks: int, runs: int) -> float:
        """Return the probability that so many tasks decide the gate."""
        above = self.threshold.upwards == self.passes
        most = tasks * runs if self.variation.kind == "rate" else 1_000
        limit = self._limit(tasks, runs, most, above=above)
        if limit is None:
            return 0.0
        if self.variation.kind == "rate" and runs == 1:
            hits = round(limit * tasks)
            if above:
                return float(special.bdtrc(hits - 1, tasks, self.variation.mean)) if hits else 1.0
            return float(special.bdtr(hits, tasks, self.variation.mean))
        half = 0.5 / most if self.variation.kind == "rate" else 0.0
        below = self.variation.mean_below(limit - half if above else limit + half, tasks, runs)
        return 1 - below if above else below

    def _limit(self, tasks: int, runs: int, most: int, *, above: bool) -> float | None:
        """Return the mean of a sample from which on the gate is decided; None if there is none."""
        if self.variation.kind == "number":  # an interval grows with the unit of its values
            end = self._end(self.variation, tasks, runs)
            return None if end is None else self.threshold.value * self.variation.mean / end
        inside, outside = (most, -1) if above else (0, most + 1)
        if not self._settles(inside / most, tasks, runs):
            return None
        while abs(inside - outside) > 1:
            middle = (inside + outside) // 2
            if self._settles(middle / most, tasks, runs):
                inside = middle
            else:
                outside = middle
        return inside / most

    def _settles(self, mean: float, tasks: int, runs: int) -> bool:
        """Whether a typical sample with this mean is decided as the assumed value should be."""
        least = NEAR if self.variation.kind == "rate" else LEAST
        end = self._end(self.variation.at(min(max(mean, least), 1 - least)), tasks, runs)
        return end is not None and self.threshold.holds(end) == self.passes

    def _end(self, variation: Variation, tasks: int, runs: int) -> float | None:
        """Return the end of the interval that decides."""
        side = 0 if self.threshold.upwards == self.passes else 1
        if variation.kind != "number":
            tried = {"value": variation.typical(tasks, runs), "tries": np.full(tasks, float(runs))}
            rate = variation.kind == "rate"
            ends = mean_ends(pl.DataFrame(tried), self.level, rate=rate)
            return None if ends is None else ends[side]
        name, _ = STAND_INS[variation.kind]
        gate = replace(self.gate, metric=name, select=())
        records = GateRecords(typical_records(variation, tasks, runs))
        end = ThresholdTest(gate, records, Estimate(variation.mean)).ends(self.level)[side]
        return end if isinstance(end, float) and math.isfinite(end) else None


def _nearest(enough: Callable[[int], bool], guess: float) -> int | None:
    """Return the fewest tasks that are enough, near a guess; within 1 % if they are many."""
    low, high = max(1, math.floor(guess / 1.3)), max(2, math.ceil(guess * 1.2))
    if high <= FEW:
        return fewest(enough)
    while not enough(high):
        low, high = high, math.ceil(high * 1.4)
        if high > MAX_TASKS:
            return None
    while low > 1 and enough(low):
        low, high = math.floor(low / 1.4), low
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
