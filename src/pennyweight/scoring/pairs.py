"""Pairs of sides on the tasks that both tried: what is compared, task by task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from pennyweight.define import METRICS
from pennyweight.scoring.groups import GROUP, mean_values, sums
from pennyweight.stats.attempt_noise import Tries
from pennyweight.stats.multiple import holm
from pennyweight.stats.paired import Kind, Paired, cliffs_delta, compare
from pennyweight.stats.power import Design
from pennyweight.stats.resample import CLUSTER


@dataclass(frozen=True, slots=True)
class Alone:
    """Values of a column that only one side has, and how many records stay out with them."""

    side: str
    values: tuple[str, ...]
    records: int


@dataclass(frozen=True, slots=True)
class Common:
    """The values of a column that both sides have, where one has others too."""

    column: str
    values: tuple[str, ...]
    alone: tuple[Alone, ...]


@dataclass(frozen=True, slots=True)
class Overlap:
    """The tasks that two sides both tried.

    `passes`, `rates` and `costs` hold for both sides, on these tasks, what a pass costs, how often
    they passed, and what an attempt cost.
    """

    a: str
    b: str
    tasks: int
    whole: bool
    """Whether both sides tried the same tasks, so that nothing is left out."""
    passes: tuple[float | None, float | None]
    rates: tuple[float | None, float | None]
    costs: tuple[float | None, float | None]
    common: tuple[Common, ...]
    clusters: pl.Series = field(repr=False, compare=False)

    @classmethod
    def of(
        cls, frame: pl.DataFrame, names: tuple[str, str], groups: tuple[int, int], key: list[str]
    ) -> Overlap:
        """Find what two sides of the records have in common; errors are tries too."""
        tried = frame.filter(pl.col("task_id").is_not_null())
        sides = [tried.filter(pl.col(GROUP) == group) for group in groups]
        units = [side.select(key).unique() for side in sides]
        both = units[0].join(units[1], on=key, how="semi", nulls_equal=True)
        clusters = both[CLUSTER].unique()
        shared = [side.join(both, on=key, how="semi", nulls_equal=True) for side in sides]
        return cls(
            *names,
            tasks=len(clusters),
            whole=all(one.height == both.height for one in units),
            passes=(_cost_of_pass(shared[0]), _cost_of_pass(shared[1])),
            rates=(_mean(shared[0], "passed"), _mean(shared[1], "passed")),
            costs=(_mean(shared[0], "cost_usd"), _mean(shared[1], "cost_usd")),
            common=tuple(
                one for name in key if name != CLUSTER and (one := _common(name, names, sides))
            ),
            clusters=clusters,
        )

    def better(self, name: str) -> bool:
        """Whether a side passed more often than the other on what both tried."""
        return _above(self.rates, first=name == self.a)

    def dearer(self, name: str) -> bool:
        """Whether an attempt of a side cost more than the other's on what both tried."""
        return _above(self.costs, first=name == self.a)


def _above(values: tuple[float | None, float | None], *, first: bool) -> bool:
    """Whether one of two numbers is above the other by more than their last digits."""
    own, other = values if first else values[::-1]
    if own is None or other is None:
        return False
    return own > other and not math.isclose(own, other, rel_tol=1e-9)


def _cost_of_pass(frame: pl.DataFrame) -> float | None:
    known = frame.filter(
        pl.col("status").ne_missing("error"),
        pl.col("cost_usd").is_not_null(),
        pl.col("passed").is_not_null(),
    )
    if not known.height:
        return None
    passes = float(known["passed"].cast(pl.Float64).sum())
    return float(known["cost_usd"].sum()) / passes if passes else math.inf


def _mean(frame: pl.DataFrame, column: str) -> float | None:
    scored = frame.filter(pl.col("status").ne_missing("error"))
    return scored.select(pl.col(column).cast(pl.Float64).mean()).item()  # type: ignore[no-any-return]


def _common(column: str, names: tuple[str, str], sides: list[pl.DataFrame]) -> Common | None:
    counts = [
        dict(side.group_by(pl.col(column).cast(pl.String)).len().iter_rows()) for side in sides
    ]
    alone = []
    for name, own, other in zip(names, counts, reversed(counts), strict=True):
        if only := [value for value in own if value not in other]:
            records = sum(own[value] for value in only)
            alone.append(Alone(name, _texts(only), records))
    both = [value for value in counts[0] if value in counts[1]]
    return Common(column, _texts(both), tuple(alone)) if alone else None


def _texts(values: list[str | None]) -> tuple[str, ...]:
    return tuple(sorted("none" if value is None else value for value in values))


PAIRED = (
    *("pass_rate", "impl_rate_mean", "composite_score", "cost_usd_mean"),
    *("latency_mean_ms", "duration_seconds", "total_tokens_mean"),
)
"""The default comparison: metrics that are means, and measures whose mean is compared."""

MEASURED: dict[str, Kind] = {"composite_score": "score", "duration_seconds": "number"}

_JSON = (
    *("a", "b", "metric", "difference", "interval", "p", "p_adjusted", "method", "tasks"),
    *("only_a", "only_b", "mean_a", "mean_b", "cliffs_delta", "detectable", "tasks_for_5_points"),
)

FIVE_POINTS = 0.05

MOST_TRIES = 20_000
"""Up to so many, single tries are kept; tasks tried that often have even differences."""


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

    @property
    def interval(self) -> list[float | None] | None:
        """The ends, where there are any."""
        return None if self.low is None else [self.low, self.high]

    @property
    def alike(self) -> bool:
        """Whether the sides differ by the same number at every task, so nothing varied."""
        return self.tasks > 1 and self.low is None

    def shown(self, level: float) -> bool:
        """Whether there is a difference, all comparisons of the report considered."""
        return self.p_adjusted is not None and self.p_adjusted <= level

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in _JSON}


@dataclass(frozen=True, slots=True)
class Compared:
    """A value of each record whose mean is compared."""

    name: str
    values: pl.Expr
    kind: Kind

    @classmethod
    def of(cls, name: str, schema: pl.Schema, options: Mapping[str, Any]) -> Compared | None:
        """Find the values behind a metric that is a mean of the scored records; None for others."""
        if name in MEASURED:
            return cls(name, pl.col(name), MEASURED[name])
        metric = METRICS[name]
        values = mean_values(metric, options)
        if values is None:
            return None
        kind = schema.to_frame().select(values.alias("x")).schema["x"]
        if kind == pl.Boolean:
            return cls(name, values, "rate")
        return cls(name, values, "score" if metric.range == (0, 1) else "number")

    def by_task(
        self, tables: Sequence[pl.DataFrame], key: list[str], frame: pl.DataFrame, tried: pl.Series
    ) -> tuple[Paired, int, int]:
        """Pair two sides; also gives how many tasks only the one tried, and only the other.

        `tried` has the tasks that both tried, with a value or without. `frame` has the
        records: where sides were tried unevenly, single tries are kept.
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
        a_, b_, tries_a, tries_b = (tasks[c].to_numpy() for c in columns)
        uneven = both.height and both.select((pl.col(count) != pl.col(f"{count}/b")).any()).item()
        fits = tries_a.sum() + tries_b.sum() <= MOST_TRIES
        each = None
        if uneven and fits and self.kind != "rate":
            groups = [table[GROUP][0] for table in tables]
            each = self._each(frame, groups, key, both.select(key), tasks[CLUSTER])
        return Paired(a_, b_, tries_a, tries_b, self.kind, each), only[0], only[1]

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
        """Add up measured records; those with status `error` and those without a task stay out."""
        fine = pl.col("status").ne_missing("error") & pl.col("task_id").is_not_null()
        scored, values = frame.filter(fine), {one.name: one.values for one in compared}
        table = scored.group_by(GROUP, CLUSTER, *others).agg(sums(values))
        return cls(table, compared, others, scored, frame)

    def overlap(self, names: Sequence[str], a: int, b: int) -> Overlap:
        """Find what two sides, given by their numbers, both tried."""
        key = self._key([self.table.filter(pl.col(GROUP) == g) for g in (a, b)])
        return Overlap.of(self.every, (names[a], names[b]), (a, b), key)

    def pairs(
        self,
        names: Sequence[str],
        which: Iterable[tuple[int, int]],
        overlaps: Mapping[tuple[int, int], Overlap],
        confidence: float,
        seed: int,
    ) -> list[Pair]:
        """Compare pairs of sides, given by their numbers, in all that both have."""
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
        how = confidence, seed, sum(values.tasks > 0 for _, _, _, values, *_ in paired)
        found = [
            _tested(Pair(a, b, one.name, one.kind, values.tasks, only_a, only_b), values, *how)
            for a, b, one, values, only_a, only_b in paired
        ]
        adjusted = iter(holm([pair.p for pair in found if pair.p is not None]))
        return [p if p.p is None else replace(p, p_adjusted=next(adjusted)) for p in found]

    def _key(self, tables: Sequence[pl.DataFrame]) -> list[str]:
        """Name the columns that a try of both sides must have in common."""
        return [CLUSTER, *(n for n in self.others if _shared(n, *tables))]


def _tested(pair: Pair, paired: Paired, confidence: float, seed: int, comparisons: int) -> Pair:
    """Test a pair; the detectable difference takes the number of comparisons into account."""
    if not paired.tasks:
        return pair
    found = compare(paired, confidence, seed, comparisons)
    design, level = Design.of(paired), (1 - confidence) / comparisons
    bounded = pair.kind != "number" and paired.tasks > 1
    return replace(
        pair,
        mean_a=float(paired.a.mean()),
        mean_b=float(paired.b.mean()),
        difference=found.value,
        low=found.low,
        high=found.high,
        p=found.p,
        method=found.method,
        cliffs_delta=cliffs_delta(paired.a, paired.b),
        detectable=design.detectable(paired.tasks, level),
        tasks_for_5_points=design.tasks_needed(FIVE_POINTS, level) if bounded else None,
    )


def _shared(name: str, a: pl.DataFrame, b: pl.DataFrame) -> bool:
    """Whether both sides share a value of a column; otherwise the column is what differs."""
    there = b[name].unique().cast(pl.String).implode()
    return bool(a[name].unique().cast(pl.String).is_in(there, nulls_equal=True).any())
