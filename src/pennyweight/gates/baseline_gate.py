"""Gates that compare with a baseline: the same tasks, before and now."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from pennyweight.catalogue import METRICS
from pennyweight.gates.policy import Gate
from pennyweight.gates.records import GateRecords
from pennyweight.gates.threshold import FRACTIONS, Threshold, shown
from pennyweight.gates.threshold_gate import more, more_needed
from pennyweight.gates.verdict import LISTED, Decider, Decision, Word
from pennyweight.stats.interval import Floats
from pennyweight.stats.paired import Paired, interval, weighted_interval
from pennyweight.text.format import plural, points

SAME = 0.9
"""The share of all tasks that must have the one difference that was observed."""


@dataclass(frozen=True, slots=True)
class BaselineTest:
    """A gate and the values of each task, in the baseline and now; higher is better."""

    gate: Gate
    tasks: pl.Series
    before: Floats
    now: Floats
    tries: tuple[Floats, Floats]
    kind: str
    missing: pl.Series
    """The tasks of the baseline that were not tried now."""
    sides: tuple[float, float]
    """The metric before and now, over the tasks that both sides have."""
    before_all: pl.DataFrame
    """The value of every task in the baseline; higher is better."""
    weights: Floats | None = None
    """The weight of each task; None if all weights are equal."""

    @classmethod
    def of(cls, gate: Gate, records: GateRecords, baseline: GateRecords) -> BaselineTest:
        """Pair the tasks that both sides have."""
        metric = METRICS[gate.metric]
        old, new = (side.units(gate.metric).drop_nulls("task_id") for side in (baseline, records))
        both = old.join(new, on="task_id", how="inner", suffix=" now", maintain_order="left")
        gone = old.filter(~old["task_id"].is_in(records.frame["task_id"].implode()))["task_id"]
        before, now = (both[c].to_numpy() for c in ("value", "value now"))
        weights = both["weight now"].to_numpy() if records.weighs(gate.metric) else None
        some = both.height and (weights is None or weights.sum() > 0)
        means = [float(np.average(v, weights=weights)) if some else 0.0 for v in (before, now)]
        all_before = old.select("task_id", "value")
        rate = metric.range == (0, 1)
        if metric.better == "lower":
            best = float(rate)
            before, now = best - before, best - now
            all_before = all_before.with_columns(best - pl.col("value"))
        kind = "rate" if rate and records.is_rate(gate.metric) else "score" if rate else "number"
        tries = both["tries"].to_numpy(), both["tries now"].to_numpy()
        names, sides = both["task_id"], (means[0], means[1])
        return cls(gate, names, before, now, tries, kind, gone, sides, all_before, weights)

    @property
    def old(self) -> dict[str, float]:
        """The value of every task in the baseline by its name."""
        return dict(self.before_all.iter_rows())

    @property
    def margin(self) -> float:
        """How much worse the value may be, in the metric's unit."""
        margin = self.gate.margin
        if margin is None:
            return 0.0
        return margin.value * abs(self.sides[0]) if margin.relative else margin.value

    @property
    def paired(self) -> Paired:
        """The values of both sides, with a relative margin already subtracted."""
        before, margin = self.before, self.gate.margin
        if margin is not None and margin.relative:
            before = before - margin.value * np.abs(before)
        return Paired(before, self.now, *self.tries, self.kind)  # type: ignore[arg-type]

    def ends(self, level: float) -> tuple[float, float] | None:
        """Return the interval of the difference; each end is wrong with probability `level`."""
        (paired, unit), confidence = self.paired.rescaled(), 1 - 2 * level
        ends: tuple[float, float] | None = None
        if self.weights is not None:
            ends = weighted_interval(paired, self.weights, confidence)
        elif not paired.alike or len(self.tasks) >= self.enough(level):
            ends = interval(paired, confidence, one_sided=True)
        moved = self.margin if self.gate.margin and self.gate.margin.relative else 0.0
        return None if ends is None else (ends[0] * unit - moved, ends[1] * unit - moved)

    @staticmethod
    def enough(level: float) -> int:
        """Return how many equal differences show that nine in ten tasks have that difference."""
        return math.ceil(math.log(level) / math.log(SAME))

    @property
    def value(self) -> float:
        """How much better the mean is now than before."""
        return float(np.average(self.now - self.before, weights=self.weights))

    def unfit(self) -> Decision | None:
        """Return an inconclusive decision if nothing can be compared."""
        if self.weights is not None and len(self.tasks) and not self.weights.sum():
            empty = replace(self, tasks=self.tasks.clear(), weights=None)
            return empty.decision("inconclusive", "all tasks of both sides have weight 0.")
        if len(self.tasks) > 1:
            return None
        what = "only one task is" if len(self.tasks) else "no task is"
        return self.decision("inconclusive", f"{what} in the baseline and in these records.")

    def on_value(self) -> Decision:
        """Decide on the difference alone."""
        held = self.value > 0 if self.gate.against == "better" else self.value >= -self.margin
        return self.decision("pass" if held else "fail", f"{self.shown()}, on the value alone.")

    def at(self, pass_level: float, fail_level: float) -> Decision:
        """Decide on the interval of the difference."""
        to_pass, to_fail = self.ends(pass_level), self.ends(fail_level)
        if to_pass is None or to_fail is None:
            few = self.enough(min(pass_level, fail_level)) - len(self.tasks)
            why = f"{self.shown()} at every task, which does not show how much other tasks vary. "
            why += more_needed(few, "tasks")
            return self.decision("inconclusive", why, needed=few)
        low, high, limit = to_pass[0], to_fail[1], 0 - self.margin
        margin = self.gate.margin
        allowed = f", with {margin} allowed" if margin else ""
        if margin and margin.value < 0:
            allowed = f", where at least {replace(margin, value=-margin.value)} better is asked"
        if low > limit or (low >= limit and self.gate.against == "no_worse_than"):
            worst = f"at worst {self.change(low)}{allowed}"
            if self.gate.against == "better":
                worst = "with its whole interval better"
            return self.decision("pass", f"{self.shown()}, {worst}.", low, high)
        if high < limit:
            why = f"{self.shown()}, at best {self.change(high)}{allowed}."
            return self.decision("fail", why, low, high)
        held = self.value >= limit
        needed = more(len(self.tasks), self.value, low if held else high, Threshold(">=", limit))
        why = f"{self.shown()}; its interval is {self.change(low)} to {self.change(high)}. "
        why += more_needed(needed, "tasks")
        return self.decision("inconclusive", why, low, high, needed=needed)

    def shown(self) -> str:
        """Write the difference and both values."""
        kind, (old, new) = self.gate.kind, self.sides
        return f"{self.change(self.value)} ({shown(old, kind)} → {shown(new, kind)})"

    def change(self, difference: float) -> str:
        """Write a difference in words."""
        if not difference:
            return "no change"
        kind, size = self.gate.kind, abs(difference)
        amount = points(size, signed=False) if kind == "rate" else shown(size, kind)
        return f"{amount} {'better' if difference > 0 else 'worse'}"

    def decision(
        self, word: Word, why: str, low: Any = None, high: Any = None, needed: int | None = None
    ) -> Decision:
        """Build the decision; a pass is inconclusive if tasks of the baseline were not tried."""
        gate, some = self.gate, len(self.tasks) > 0
        listed, unlisted = ((), 0) if word == "pass" or not some else self.worse()
        decision = replace(
            Decision.of(gate, word, why),
            value=self.value if some else None,
            low=low,
            high=high,
            threshold=0 - self.margin if some else None,
            sign=">" if gate.against == "better" else ">=",
            effect=self.value + self.margin if some else None,
            baseline=self.sides[0] if some else None,
            records=int(self.tries[1].sum()),
            tasks=len(self.tasks),
            scenarios=listed,
            unlisted=unlisted,
            needed=needed,
            weighted=self.weights is not None,
        )
        if word != "pass" or not len(self.missing):
            return decision
        names = ", ".join(self.missing[:5]) + (", …" if len(self.missing) > 5 else "")
        count = len(self.missing)
        what = plural(count, "task of the baseline was", "tasks of the baseline were")
        why = f"{why} But {what} not tried now ({names}). Try them, or set the baseline again."
        return replace(decision, verdict="inconclusive", why=why)

    def worse(self) -> tuple[tuple[Decider, ...], int]:
        """Name the tasks that became worse, the worst first, with the values of the metric.

        Also return how many more there are than can be listed.
        """
        kind, old, new, apart = self.gate.kind, self.before, self.now, self.now - self.before
        if METRICS[self.gate.metric].better == "lower":
            best = float(kind in FRACTIONS)
            old, new = best - old, best - new
        order = np.argsort(apart, kind="stable")[: np.count_nonzero(apart < 0)]
        listed = order[:LISTED]
        rows = zip(self.tasks[listed], old[listed].tolist(), new[listed].tolist(), strict=True)
        named = tuple(Decider(t, f"{shown(a, kind)} → {shown(b, kind)}") for t, a, b in rows)
        return named, len(order) - len(listed)
