"""Pairs of sides, compared task by task on the tasks that both tried."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from pennyweight.define import METRICS
from pennyweight.scoring.groups import GROUP, mean_values, sums
from pennyweight.scoring.margins import HeldMargin, adjusted, held
from pennyweight.stats.paired import Kind, Paired, Tries, cliffs_delta, compare, holm
from pennyweight.stats.power import Design
from pennyweight.stats.ratio import ratio_of
from pennyweight.stats.resample import CLUSTER


@dataclass(frozen=True, slots=True)
class UnsharedValues:
    """Values of a column that only one side has, and how many records are left out with them."""

    side: str
    values: tuple[str, ...]
    records: int


@dataclass(frozen=True, slots=True)
class SharedValues:
    """The values of a column that both sides have, if one side has others too."""

    column: str
    values: tuple[str, ...]
    alone: tuple[UnsharedValues, ...]


@dataclass(frozen=True, slots=True)
class Overlap:
    """The tasks that two sides both tried.

    `passes`, `rates` and `costs` are the cost of a pass, the pass rate and the cost of an attempt
    of each side on these tasks.
    """

    a: str
    b: str
    tasks: int
    whole: bool
    """Whether both sides tried the same tasks, so that nothing is left out."""
    passes: tuple[float | None, float | None]
    rates: tuple[float | None, float | None]
    costs: tuple[float | None, float | None]
    common: tuple[SharedValues, ...]
    clusters: pl.Series = field(repr=False, compare=False)

    @classmethod
    def of(
        cls, frame: pl.DataFrame, names: tuple[str, str], groups: tuple[int, int], key: list[str]
    ) -> Overlap:
        """Return what two sides of the records have in common; errors count as tries."""
        tried = frame.filter(pl.col("task_id").is_not_null())
        sides = [tried.filter(pl.col(GROUP) == group) for group in groups]
        units = [side.select(key).unique() for side in sides]
        both = units[0].join(units[1], on=key, how="semi", nulls_equal=True)
        clusters = both[CLUSTER].unique()
        scored = [
            side.join(both, on=key, how="semi", nulls_equal=True)
            .filter(pl.col("status").ne_missing("error"))
            .select(pl.col("passed", "cost_usd").cast(pl.Float64))
            for side in sides
        ]
        (rate_a, cost_a), (rate_b, cost_b) = (side.mean().row(0) for side in scored)
        shared = (_shared_values(name, names, sides) for name in key if name != CLUSTER)
        return cls(
            *names,
            tasks=len(clusters),
            whole=all(side.height == both.height for side in units),
            passes=(_cost_of_pass(scored[0]), _cost_of_pass(scored[1])),
            rates=(rate_a, rate_b),
            costs=(cost_a, cost_b),
            common=tuple(values for values in shared if values),
            clusters=clusters,
        )

    def better(self, name: str) -> bool:
        """Whether a side passed more often than the other on the shared tasks."""
        return _above(self.rates, first=name == self.a)

    def dearer(self, name: str) -> bool:
        """Whether a side cost more per attempt than the other on the shared tasks."""
        return _above(self.costs, first=name == self.a)


def _above(values: tuple[float | None, float | None], *, first: bool) -> bool:
    """Whether the first or the second number is above the other by more than rounding."""
    own, other = values if first else values[::-1]
    if own is None or other is None:
        return False
    return own > other and not math.isclose(own, other, rel_tol=1e-9)


def _cost_of_pass(scored: pl.DataFrame) -> float | None:
    known = scored.drop_nulls()
    if not known.height:
        return None
    passes, cost = known.sum().row(0)
    return float(cost / passes) if passes else math.inf


def _shared_values(
    column: str, names: tuple[str, str], sides: list[pl.DataFrame]
) -> SharedValues | None:
    counts = [
        dict(side.group_by(pl.col(column).cast(pl.String)).len().iter_rows()) for side in sides
    ]
    alone = []
    for name, own, other in zip(names, counts, reversed(counts), strict=True):
        if only := own.keys() - other.keys():
            alone.append(UnsharedValues(name, _texts(only), sum(own[value] for value in only)))
    both = counts[0].keys() & counts[1].keys()
    return SharedValues(column, _texts(both), tuple(alone)) if alone else None


def _texts(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted("none" if value is None else value for value in values))


PAIRED = (
    *("pass_rate", "impl_rate_mean", "composite_score", "cost_usd_mean"),
    *("latency_mean_ms", "duration_seconds", "total_tokens_mean"),
)
"""The metrics that are compared by default, and measures whose mean is compared."""
MEASURED: dict[str, Kind] = {"composite_score": "score", "duration_seconds": "number"}

_JSON = (
    *("a", "b", "metric", "difference", "interval", "p", "p_adjusted", "method", "tasks"),
    *("only_a", "only_b", "mean_a", "mean_b", "cliffs_delta", "detectable", "tasks_for_5_points"),
    *("ratio", "ratio_low", "ratio_high", "long_tail"),
)

FIVE_POINTS = 0.05
MOST_TRIES = 20_000
"""The most single tries that are used; with more, the differences of tasks are nearly symmetric."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One metric of two sides on the tasks that both tried; `difference` is b minus a."""

    a: str
    b: str
    metric: str
    kind: Kind
    tasks: int
    only_a: int
    only_b: int
    mean_a: float | None = None
    mean_b: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    method: str | None = None
    cliffs_delta: float | None = None
    detectable: float | None = None
    tasks_for_5_points: int | None = None
    ratio: float | None = None
    """`mean_b` / `mean_a`, for values that cannot be negative and are not bounded above."""
    ratio_low: float | None = None
    ratio_high: float | None = None
    long_tail: bool = False
    """Whether the tasks are few for the tail of a side: unseen tasks may double the ratio."""
    held: HeldMargin | None = None
    """What it shows about a margin, if one was given and something varied."""

    @property
    def interval(self) -> list[float | None] | None:
        """The interval of the difference, if there is one."""
        return None if self.low is None else [self.low, self.high]

    @property
    def alike(self) -> bool:
        """Whether the difference is the same at every task."""
        return self.tasks > 1 and self.low is None

    def shown(self, level: float) -> bool:
        """Whether the difference is significant, adjusted for all comparisons."""
        return self.p_adjusted is not None and self.p_adjusted <= level

    def agreeing(self, level: float) -> Pair:
        """Return the pair with an interval that leaves out 0 only if the difference is shown."""
        if self.low is None or self.high is None or self.difference is None:
            return self
        low, high = self.low, self.high
        if not self.shown(level):
            return replace(self, low=min(low, 0.0), high=max(high, 0.0))
        return (
            replace(self, low=max(low, 0.0))
            if self.difference > 0
            else replace(self, high=min(high, 0.0))
        )

    def to_dict(self) -> dict[str, Any]:
        """Return one entry of `pairs` in what `pennyweight compare --format json` prints."""
        margin = {} if self.held is None else self.held.to_dict()
        return {**{name: getattr(self, name) for name in _JSON}, **margin}


@dataclass(frozen=True, slots=True)
class Compared:
    """A value of each record whose mean is compared."""

    name: str
    values: pl.Expr
    kind: Kind
    amount: bool = False
    """Whether values are declared as 0 or more without an upper bound, so that they have ratios."""
    better: str | None = "higher"

    @classmethod
    def of(cls, name: str, schema: pl.Schema, options: Mapping[str, Any]) -> Compared | None:
        """Return the values whose mean is a metric; None if the metric is not a mean."""
        if name in MEASURED:
            kind = MEASURED[name]
            amount = kind == "number"
            return cls(name, pl.col(name), kind, amount, "lower" if amount else "higher")
        metric = METRICS[name]
        values = mean_values(metric, options)
        if values is None:
            return None
        if schema.to_frame().select(values.alias("x")).schema["x"] == pl.Boolean:
            return cls(name, values, "rate", better=metric.better)
        if metric.range == (0, 1):
            return cls(name, values, "score", better=metric.better)
        return cls(name, values, "number", metric.range == (0, None), metric.better)

    def by_task(
        self, tables: Sequence[pl.DataFrame], key: list[str], frame: pl.DataFrame, tried: pl.Series
    ) -> tuple[Paired, int, int]:
        """Pair two sides; also return how many tasks only the first tried, and only the second.

        `tried` has the tasks that both tried, with or without a value. `frame` has the records, for
        the single tries of sides that were tried unevenly; without records, these are not used.
        """
        total, count = f"{self.name}/s", f"{self.name}/n"
        a, b = (
            table.filter(pl.col(count) > 0)
            .group_by(key)
            .agg(pl.col(total, count).sum())
            .with_columns(pl.col(total) / pl.col(count))
            for table in tables
        )
        both = a.join(b, on=key, suffix="/b", nulls_equal=True)
        means = pl.col(total, f"{total}/b").mean()
        tries = pl.col(count, f"{count}/b").sum().cast(pl.Float64)
        tasks = both.group_by(CLUSTER).agg(means, tries).sort(CLUSTER)
        alone = ~pl.col(CLUSTER).is_in(tried.implode(), nulls_equal=True)
        only = [t.filter(alone)[CLUSTER].n_unique() for t in (a, b)]
        columns = (total, f"{total}/b", count, f"{count}/b")
        mean_a, mean_b, tries_a, tries_b = (tasks[c].to_numpy() for c in columns)
        uneven = both.height and both.select((pl.col(count) != pl.col(f"{count}/b")).any()).item()
        fits = tries_a.sum() + tries_b.sum() <= MOST_TRIES
        each = None
        if uneven and fits and self.kind != "rate" and frame.height:
            groups = [table[GROUP][0] for table in tables]
            each = self._each(frame, groups, key, both.select(key), tasks[CLUSTER])
        return Paired(mean_a, mean_b, tries_a, tries_b, self.kind, each), only[0], only[1]

    def _each(
        self,
        frame: pl.DataFrame,
        groups: Sequence[int],
        key: list[str],
        units: pl.DataFrame,
        tasks: pl.Series,
    ) -> Tries:
        values = self.values.cast(pl.Float64).drop_nulls().sort()
        units = units.join(tasks.to_frame().with_row_index("task"), on=CLUSTER, nulls_equal=True)
        for side, group in zip("ab", groups, strict=True):
            tries = frame.filter(pl.col(GROUP) == group).group_by(key).agg(values.alias(side))
            units = units.join(tries, on=key, nulls_equal=True)
        units = units.sort("task", *(n for n in key if n != CLUSTER))
        counts = [units[side].list.len().to_numpy().astype(np.int64) for side in "ab"]
        flat = units.select(pl.concat_list("a", "b")).to_series().explode().to_numpy()
        return Tries(flat, counts[0], counts[1], units["task"].to_numpy().astype(np.int64))


@dataclass(frozen=True, slots=True)
class Units:
    """Sums and counts of each side's values, task by task, in each other configuration."""

    table: pl.DataFrame
    compared: list[Compared]
    others: list[str]
    frame: pl.DataFrame
    every: pl.DataFrame
    """All records, errors too."""

    @classmethod
    def of(cls, frame: pl.DataFrame, compared: list[Compared], others: list[str]) -> Units:
        """Add up measured records, without errors and records without a task."""
        valid = pl.col("status").ne_missing("error") & pl.col("task_id").is_not_null()
        scored = frame.filter(valid)
        table = scored.group_by(GROUP, CLUSTER, *others).agg(
            sums({one.name: one.values for one in compared})
        )
        return cls(table, compared, others, scored, frame)

    def overlap(self, names: Sequence[str], a: int, b: int) -> Overlap:
        """Return what two sides, given by their numbers, both tried."""
        key = self._key([self.table.filter(pl.col(GROUP) == g) for g in (a, b)])
        return Overlap.of(self.every, (names[a], names[b]), (a, b), key)

    def pairs(
        self,
        names: Sequence[str],
        which: Iterable[tuple[int, int]],
        overlaps: Mapping[tuple[int, int], Overlap],
        confidence: float,
        seed: int,
        margin: float | None = None,
        comparisons: int | None = None,
    ) -> list[Pair]:
        """Compare pairs of sides, given by their numbers, in every value that both have.

        What can be detected is adjusted for the number of comparisons, unless that is given.
        """
        sides = [self.table.filter(pl.col(GROUP) == g) for g in range(len(names))]
        paired: list[tuple[str, str, Compared, Paired, int, int]] = []
        for a, b in which:
            tables = [sides[a], sides[b]]
            key, tried = self._key(tables), overlaps[a, b].clusters
            paired += [
                (names[a], names[b], one, *one.by_task(tables, key, self.frame, tried))
                for one in self.compared
                if all(table[f"{one.name}/n"].sum() > 0 for table in tables)
            ]
        tests = comparisons or sum(values.tasks > 0 for _, _, _, values, *_ in paired)
        how = confidence, seed, tests
        pairs = [
            _tested(Pair(a, b, one.name, one.kind, values.tasks, only_a, only_b), one, values, *how)
            for a, b, one, values, only_a, only_b in paired
        ]
        if margin is not None:
            margins = [
                held(values, margin, confidence, amount=one.amount, better=one.better)
                for _, _, one, values, *_ in paired
            ]
            pairs = [replace(p, held=t) for p, t in zip(pairs, adjusted(margins), strict=True)]
        p_adjusted = iter(holm([pair.p for pair in pairs if pair.p is not None]))
        return [p if p.p is None else replace(p, p_adjusted=next(p_adjusted)) for p in pairs]

    def _key(self, tables: Sequence[pl.DataFrame]) -> list[str]:
        """Return the columns in which compared tries must agree."""
        return [CLUSTER, *(n for n in self.others if _overlapping(n, *tables))]


def _tested(
    pair: Pair, compared: Compared, paired: Paired, confidence: float, seed: int, comparisons: int
) -> Pair:
    """Test a pair; the detectable difference takes the number of comparisons into account."""
    if not paired.tasks:
        return pair
    paired, unit = paired.rescaled()
    found = compare(paired, confidence, seed, comparisons)
    design, level = Design.of(paired), (1 - confidence) / comparisons
    bounded = pair.kind != "number" and paired.tasks > 1
    detectable = design.detectable(paired.tasks, level)
    tail = paired.tail
    if compared.amount and (ratio := ratio_of(paired, confidence, found.p)):
        pair = replace(pair, ratio=ratio.value, ratio_low=ratio.low, ratio_high=ratio.high)
    return replace(
        pair,
        mean_a=float(paired.a.mean()) * unit,
        mean_b=float(paired.b.mean()) * unit,
        difference=found.value * unit,
        low=None if found.low is None else found.low * unit,
        high=None if found.high is None else found.high * unit,
        p=found.p,
        method=found.method,
        cliffs_delta=cliffs_delta(paired.a, paired.b),
        detectable=None if detectable is None else detectable * unit,
        long_tail=tail is not None and tail.doubtful(1 - confidence),
        tasks_for_5_points=design.tasks_needed(FIVE_POINTS, level) if bounded else None,
    )


def _overlapping(name: str, a: pl.DataFrame, b: pl.DataFrame) -> bool:
    """Whether both sides share a value of a column; otherwise it is what distinguishes them."""
    values = [set(side[name].unique().cast(pl.String)) for side in (a, b)]
    return bool(values[0] & values[1])
