"""Gates on a value or on its interval, against a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pennyweight.catalogue import METRICS
from pennyweight.gates.threshold import FRACTIONS, Threshold, kind_of, shown, unit_of
from pennyweight.gates.verdict import Decider, Decision, Word
from pennyweight.stats.drawn_weights import drawn_ends
from pennyweight.stats.paired import Paired, interval
from pennyweight.stats.resample import CLUSTER
from pennyweight.stats.special import special
from pennyweight.text.format import declared, plural, points

if TYPE_CHECKING:
    from pennyweight.gates.policy import Gate
    from pennyweight.gates.records import GateRecords
    from pennyweight.scoring.estimates import Estimate, Value


def rate_ends(hits: float, n: float, level: float) -> tuple[float, float]:
    """Return ends for a rate of n tasks that were tried once, each wrong with a chance of `level`.

    >>> low, high = rate_ends(9, 10, level=0.05)
    >>> round(low, 4), round(high, 4)
    (0.6058, 0.9949)
    """
    low = special.betaincinv(hits, n - hits + 1, level) if hits > 0 else 0.0
    high = special.betaincinv(hits + 1, n - hits, 1 - level) if hits < n else 1.0
    return float(low), float(high)


def mean_ends(
    units: pl.DataFrame, level: float, *, rate: bool, times: float = 1.0
) -> tuple[float, float] | None:
    """Return ends for the mean of values in tasks; None where this way does not fit.

    Wilson's interval is right on the whole, but near 0 and 1 one end is wrong more often than
    stated and the other less. A gate looks at one end, so rates get the exact binomial ends
    (Clopper and Pearson), and where tasks were repeated the same for means over tasks
    (Learned-Miller and Thomas). Means of scores get Student's ends, moved out for skew.

    `units` has a `value` for each task, the mean of its `tries`. With `times` the ends are those
    of so many times as many tasks with the same values.
    """
    if units.height < 2:
        return None
    values, tries = units["value"].to_numpy(), units["tries"].to_numpy()
    if rate and tries.max() == 1:
        return rate_ends(round(values.sum() * times), len(values) * times, level)
    if rate:
        return drawn_ends(values, tries, level, times)
    if np.ptp(values) < 1e-9 or np.ptp(tries) > 0:
        return None
    found = interval(Paired(np.zeros(len(values)), values, tries, tries, "number"), 1 - 2 * level)
    if found is None:
        return None
    middle = float(values.mean())
    low, high = (middle + (end - middle) / math.sqrt(times) for end in found)
    return max(0.0, low), min(1.0, high)


def deciders(gate: Gate, records: GateRecords) -> tuple[Decider, ...]:
    """Name the tasks with the worst values, the worst first; none for what is no mean."""
    metric = "latency_mean_ms" if gate.metric == "latency_p95_ms" else gate.metric
    if gate.metric in records.composites:
        metric = "pass_rate"
    if records.values(metric) is None:
        return ()
    up = METRICS[metric].better != "lower"
    units = records.units(metric).drop_nulls("task_id").sort("value", descending=not up)
    kind = gate.kind if metric == gate.metric else kind_of(METRICS[metric])
    if METRICS[metric].range == (0, 1):
        units = units.filter(pl.col("value") < 1 if up else pl.col("value") > 0)
    elif gate.threshold:
        limit = gate.threshold.value
        units = units.filter(pl.col("value") < limit if up else pl.col("value") > limit)
    rows = units.iter_rows(named=True)
    return tuple(_said(row["task_id"], row["value"], row["tries"], metric, kind) for row in rows)


def _said(task: str, value: float, tries: float, metric: str, kind: str) -> Decider:
    times = f" in {plural(round(tries), 'attempt')}" if tries > 1 else ""
    if metric == "pass_rate" and value == 0:
        return Decider(task, f"did not pass{times}")
    return Decider(task, f"{metric} {shown(value, kind)}{times}")


MAX_NEEDED = 1_000_000
"""Beyond so many attempts a gate is too close to call."""


@dataclass(frozen=True, slots=True)
class ThresholdTest:
    """A gate, the records it is about, and their estimate."""

    gate: Gate
    records: GateRecords
    estimate: Estimate
    error_rate: float

    @property
    def value(self) -> float:
        """The metric's value."""
        assert isinstance(self.estimate.value, float)
        return self.estimate.value

    @property
    def threshold(self) -> Threshold:
        """The gate's threshold."""
        assert self.gate.threshold is not None
        return self.gate.threshold

    def on_value(self) -> Decision:
        """Decide on the value alone, as the specification does."""
        held = self.threshold.holds(self.value)
        word: Word = "pass" if held else "fail"
        why = f"{self.said(self.value)} {'meets' if held else 'misses'} {self.threshold}"
        gap = abs(self.threshold.effect(self.value))
        if gap > 1e-12 and math.isfinite(gap):
            rate = self.gate.kind == "rate"
            why += f" by {points(gap, signed=False) if rate else shown(gap, self.gate.kind)}"
        why += "."
        return self.decision(word, why, self.estimate.low, self.estimate.high)

    def at(self, pass_level: float, fail_level: float) -> Decision:
        """Decide on the interval: all of it must be on one side."""
        (low, _), (_, high) = self.ends(pass_level), self.ends(fail_level)
        up = self.threshold.upwards
        if not up:
            (low, _), (_, high) = self.ends(fail_level), self.ends(pass_level)
        if not isinstance(low, float) or not isinstance(high, float):
            why = f"{self.said(self.value)}, but a single task has no interval; add more tasks."
            return self.decision("inconclusive", why)
        worst, best = (low, high) if up else (high, low)
        ends = f"{self.said(low)} to {self.said(high)}"
        if self.threshold.holds(worst):
            why = f"its whole interval, {ends}, meets {self.threshold}."
            return self.decision("pass", f"{self.said(self.value)}; {why}", low, high)
        if not self.threshold.holds(best):
            why = f"its whole interval, {ends}, misses {self.threshold}."
            return self.decision("fail", f"{self.said(self.value)}; {why}", low, high)
        held = self.threshold.holds(self.value)
        needed = self.needed(worst if held else best, pass_level if held else fail_level)
        why = f"{self.said(self.value)}; its interval, {ends}, is on both sides of "
        why += f"{declared(self.threshold.value, unit_of(self.gate.kind))}. "
        alone = self.ends(pass_level)[1 if up else 0]
        if isinstance(alone, float) and not self.threshold.holds(alone):
            why += "On its own it would fail, but the gates share one error rate. "
        return self.decision("inconclusive", why + wanted(needed), low, high, needed=needed)

    def ends(self, level: float) -> tuple[Value, Value]:
        """Return the ends of the interval, each wrong with a chance of `level` at most."""
        units = self.units()
        found = None if units is None else self.exact_ends(units, level)
        if found is not None:
            return found
        estimate = self.records.estimate(self.gate.metric, 1 - 2 * level)
        return estimate.low, estimate.high

    def units(self) -> pl.DataFrame | None:
        """Return the value of each task, if the metric is a mean of values in [0, 1]."""
        metric, records = self.gate.metric, self.records
        declared = METRICS.get(metric)
        plain = declared is not None and declared.range == (0, 1) and declared.over == "scored"
        if not plain or records.values(metric) is None or records.weighs(metric):
            return None
        return records.units(metric)

    def exact_ends(
        self, units: pl.DataFrame, level: float, times: float = 1.0
    ) -> tuple[float, float] | None:
        """Return the ends of a mean if there were `times` as many tasks."""
        return mean_ends(units, level, rate=self.records.is_rate(self.gate.metric), times=times)

    def needed(self, end: float, level: float) -> int | None:
        """Estimate how many more attempts would decide the gate."""
        records, held = self.estimate.records, self.threshold.holds(self.value)
        units = self.units()
        if units is None or self.exact_ends(units, level) is None:
            return more(records, self.value, end, self.threshold)
        side = 0 if held == self.threshold.upwards else 1

        def enough(total: int) -> bool:
            ends = self.exact_ends(units, level, total / records)
            return ends is not None and self.threshold.holds(ends[side]) == held

        low, high = records, 2 * records
        while not enough(high):
            if high - records > MAX_NEEDED:
                return None
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        found = rounded_up(high - records)
        while found <= MAX_NEEDED and not enough(records + found):  # hits are whole numbers
            found = rounded_up(found + 1)
        return found if found <= MAX_NEEDED else None

    def said(self, value: float) -> str:
        """Write a value of this metric."""
        return shown(value, self.gate.kind)

    def decision(
        self, word: Word, why: str, low: Any = None, high: Any = None, needed: int | None = None
    ) -> Decision:
        """Build the decision."""
        gate, threshold = self.gate, self.threshold
        scored = self.records.scored
        return replace(
            Decision.of(gate, word, why),
            value=self.value,
            low=low,
            high=high,
            threshold=threshold.value,
            sign=threshold.sign,
            effect=threshold.effect(self.value),
            records=self.estimate.records,
            tasks=scored[CLUSTER].n_unique() if scored.height else 0,
            scenarios=() if word == "pass" else deciders(gate, self.records),
            needed=needed,
            weighted=self.records.weighs(gate.metric),
        )

    def hopeful(self, missing: int) -> bool:
        """Whether the gate could hold if so many more attempts had the best value."""
        if not missing:
            return False
        rate = self.gate.kind in FRACTIONS and self.records.values(self.gate.metric) is not None
        if not rate or self.records.weighs(self.gate.metric):
            return True
        records = self.estimate.records
        best = float(self.threshold.upwards)
        return self.threshold.holds((self.value * records + best * missing) / (records + missing))


def more(records: int, value: float, end: float, threshold: Threshold) -> int | None:
    """Estimate how many more records would move the end of an interval to the threshold."""
    gap, half = abs(value - threshold.value), abs(value - end)
    if not math.isfinite(half) or gap <= half / math.sqrt(MAX_NEEDED):
        return None
    needed = records * ((half / gap) ** 2 - 1)
    return None if needed > MAX_NEEDED else rounded_up(needed)


def rounded_up(number: float) -> int:
    """Round up to two digits: it is a guess.

    >>> rounded_up(133.2), rounded_up(7.1)
    (140, 8)
    """
    step: int = 10 ** max(0, math.ceil(math.log10(max(number, 1) + 1e-9)) - 2)
    return max(1, math.ceil(number / step) * step)


def wanted(needed: int | None, unit: str = "attempts") -> str:
    """Write what would decide an open gate."""
    if needed is None:
        return f"It is too close to the threshold to be decided by more {unit}."
    unit = unit.removesuffix("s") if needed == 1 else unit
    return f"About {needed:,} more {unit} would decide it, if the value stays the same."
