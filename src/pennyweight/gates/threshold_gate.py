"""Gates that compare a value or its interval with a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from pennyweight.catalogue import METRICS
from pennyweight.gates.policy import Gate
from pennyweight.gates.records import GateRecords
from pennyweight.gates.threshold import FRACTIONS, Threshold, kind_of, shown, unit_of
from pennyweight.gates.verdict import LISTED, Decider, Decision, Word
from pennyweight.scoring.estimates import Estimate, Value
from pennyweight.stats.drawn_weights import drawn_ends
from pennyweight.stats.labels import CorrectedByLabels
from pennyweight.stats.quantiles import special
from pennyweight.stats.resample import CLUSTER
from pennyweight.stats.skewness import mean_interval
from pennyweight.text.format import declared, plural, points


def rate_ends(hits: float, n: float, level: float) -> tuple[float, float]:
    """Return ends for a rate of n tasks tried once, each wrong with probability `level`.

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
    """Return ends for the mean over tasks; None where these methods do not apply.

    The interval that scores show holds as a whole, but one of its ends can be wrong more often than
    stated and the other less. A gate uses one end, so rates get exact binomial ends (Clopper and
    Pearson), or their generalization to means where tasks were repeated (Learned-Miller and
    Thomas). Means of scores get the ends of their interval.

    `units` has a `value` for each task, the mean of its `tries`. `times` multiplies the number of
    tasks.
    """
    if units.height < 2:
        return None
    values, tries = units["value"].to_numpy(), units["tries"].to_numpy()
    if rate and tries.max() == 1 and np.isin(values, (0.0, 1.0)).all():
        return rate_ends(round(values.sum() * times), len(values) * times, level)
    if rate:
        return drawn_ends(values, tries, level, times)
    if np.ptp(tries) > 0:
        return None
    size, apart = len(values), values - values.mean()
    square = max(float(np.square(apart).sum()), 1e-100)
    error = math.sqrt(square / (size - 1) / size / times)
    skew = float((apart**3).sum()) / square**1.5 / math.sqrt(times)
    mean, spread, bent, tasks = (np.array([x]) for x in (values.mean(), error, skew, size * times))
    low, high = mean_interval(mean, spread, bent, tasks, 1 - 2 * level, (0, 1))
    return low.item(), high.item()


def deciders(gate: Gate, records: GateRecords) -> tuple[tuple[Decider, ...], int]:
    """Name the tasks with the worst values, the worst first; none if the metric is not a mean.

    Also return how many more there are than can be listed.
    """
    metric = "latency_mean_ms" if gate.metric == "latency_p95_ms" else gate.metric
    metric = "pass_rate" if gate.metric in records.composites else metric
    if records.values(metric) is None:
        return (), 0
    up = METRICS[metric].better != "lower"
    units = records.units(metric).drop_nulls("task_id").sort("value", descending=not up)
    kind = gate.kind if metric == gate.metric else kind_of(METRICS[metric])
    if METRICS[metric].range == (0, 1):
        units = units.filter(pl.col("value") < 1 if up else pl.col("value") > 0)
    elif gate.threshold:
        limit = gate.threshold.value
        units = units.filter(pl.col("value") < limit if up else pl.col("value") > limit)

    def why(value: float, tries: float) -> str:
        times = f" in {plural(round(tries), 'attempt')}" if tries > 1 else ""
        failed = metric == "pass_rate" and value == 0
        return f"{'did not pass' if failed else f'{metric} {shown(value, kind)}'}{times}"

    rows = units.select("task_id", "value", "tries").head(LISTED).iter_rows()
    listed = tuple(Decider(task, why(value, tries)) for task, value, tries in rows)
    return listed, units.height - len(listed)


MAX_NEEDED = 1_000_000
"""A gate that needs more attempts than this is too close to call."""


@dataclass(frozen=True, slots=True)
class ThresholdTest:
    """A gate, the records it is about, and their estimate."""

    gate: Gate
    records: GateRecords
    estimate: Estimate

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
        why = f"{self.shown(self.value)} {'meets' if held else 'misses'} {self.threshold}"
        gap = abs(self.threshold.effect(self.value))
        if gap > 1e-12 and math.isfinite(gap):
            rate = self.gate.kind == "rate"
            why += f" by {points(gap, signed=False) if rate else self.shown(gap)}"
        why += ", on the value alone"
        low, high = self.estimate.low, self.estimate.high
        ends = [end for end in (low, high) if isinstance(end, float)]
        if len({self.threshold.holds(end) for end in ends}) > 1 and not self.threshold.extreme:
            limit = declared(self.threshold.value, unit_of(self.gate.kind))
            why += f"; its interval, {' to '.join(map(self.shown, ends))}, contains {limit}"
        return self.decision("pass" if held else "fail", why + ".", low, high)

    def at(self, pass_level: float, fail_level: float) -> Decision:
        """Decide on the interval: all of it must be on one side of the threshold."""
        up, value = self.threshold.upwards, self.shown(self.value)
        levels = (pass_level, fail_level) if up else (fail_level, pass_level)
        low, high = (self.ends(level)[side] for side, level in enumerate(levels))
        if not isinstance(low, float) or not isinstance(high, float):
            why = f"{value}, but a single task has no interval; add more tasks."
            return self.decision("inconclusive", why)
        worst, best = (low, high) if up else (high, low)
        ends = f"{self.shown(low)} to {self.shown(high)}"
        if self.threshold.holds(worst):
            why = f"{value}; its whole interval, {ends}, meets {self.threshold}."
            return self.decision("pass", why, low, high)
        if not self.threshold.holds(best):
            why = f"{value}; its whole interval, {ends}, misses {self.threshold}."
            return self.decision("fail", why, low, high)
        held = self.threshold.holds(self.value)
        needed = self.needed(worst if held else best, pass_level if held else fail_level)
        limit = declared(self.threshold.value, unit_of(self.gate.kind))
        why = f"{value}; its interval, {ends}, is on both sides of {limit}. "
        alone = self.ends(pass_level)[1 if up else 0]
        if isinstance(alone, float) and not self.threshold.holds(alone):
            why += "On its own it would fail, but the gates share one error rate. "
        if not math.isfinite(worst if held else best):
            why += "The attempts so far are too few for an end on that side; more would give one."
        elif self.by_labels:
            why += "Further labels narrow it; attempts without labels hardly do."
        else:
            why += more_needed(needed)
        return self.decision("inconclusive", why, low, high, needed=needed)

    @property
    def by_labels(self) -> bool:
        """Whether labels correct the metric: they narrow its interval, rather than attempts."""
        metric = METRICS.get(self.gate.metric)
        return metric is not None and isinstance(metric.interval, CorrectedByLabels)

    def ends(self, level: float) -> tuple[Value, Value]:
        """Return the ends of the interval, each wrong with probability at most `level`."""
        found = self.records.share_units(self.gate.metric)
        if found and (exact := mean_ends(found[0], level, rate=found[1])):
            return exact
        estimate = self.records.estimate(self.gate.metric, 1 - 2 * level)
        return estimate.low, estimate.high

    def needed(self, end: float, level: float) -> int | None:
        """Estimate how many more attempts would decide the gate."""
        records, held = self.estimate.records, self.threshold.holds(self.value)
        if self.by_labels:
            return None
        found = self.records.share_units(self.gate.metric)
        if found is None or mean_ends(found[0], level, rate=found[1]) is None:
            return more(records, self.value, end, self.threshold)
        side = 0 if held == self.threshold.upwards else 1

        def enough(total: int) -> bool:
            ends = mean_ends(found[0], level, rate=found[1], times=total / records)
            return ends is not None and self.threshold.holds(ends[side]) == held

        low, high = records, 2 * records
        while not enough(high):
            if high - records > MAX_NEEDED:
                return None
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        needed = rounded_up(high - records)
        while needed <= MAX_NEEDED and not enough(records + needed):  # hits are whole numbers
            needed = rounded_up(needed + 1)
        return needed if needed <= MAX_NEEDED else None

    def shown(self, value: float) -> str:
        """Write a value of this metric."""
        return shown(value, self.gate.kind)

    def decision(
        self, word: Word, why: str, low: Any = None, high: Any = None, needed: int | None = None
    ) -> Decision:
        """Build the decision."""
        gate, threshold = self.gate, self.threshold
        scored = self.records.scored
        listed, unlisted = ((), 0) if word == "pass" else deciders(gate, self.records)
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
            scenarios=listed,
            unlisted=unlisted,
            needed=needed,
            weighted=self.records.weighs(gate.metric),
        )

    def hopeful(self, missing: int) -> bool:
        """Whether the gate could pass if this many more attempts had the best value."""
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
    """Round an estimate up to two digits.

    >>> rounded_up(133.2), rounded_up(7.1)
    (140, 8)
    """
    step: int = 10 ** max(0, math.ceil(math.log10(max(number, 1) + 1e-9)) - 2)
    return max(1, math.ceil(number / step) * step)


def more_needed(needed: int | None, unit: str = "attempts") -> str:
    """Write how many more attempts or tasks would decide an inconclusive gate."""
    if needed is None:
        return f"It is too close to the threshold to be decided by more {unit}."
    unit = unit.removesuffix("s") if needed == 1 else unit
    return f"About {needed:,} more {unit} would decide it, if the value stays the same."
