"""Intervals by resampling tasks, for metrics without a closed form.

Sums over tasks are resampled, never rows, so the cost does not grow with the records: beyond
`BLOCKS` tasks, tasks are first summed in that many blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pennyweight.stats.interval import (
    bounded_interval,
    rate_interval,
    t_interval,
    t_quantile,
)
from pennyweight.stats.skewness import mean_interval

Floats = NDArray[np.float64]

Ends = tuple[float, float] | None

BLOCKS = 1000
DRAWS = 1000
ROWS = 5000
GROUPS = 32
SLICE = 1_000_000
"""How many records are summed at a time, so that what is summed need not be held for all."""

CLUSTER = "\0cluster"
"""The column of a sample that identifies the records of one task."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The records of one group as an interval sees them: a metric's inputs and the clusters."""

    frame: pl.DataFrame
    value: float
    expression: pl.Expr
    inputs: Sequence[str]
    options: dict[str, Any]
    confidence: float
    seed: int
    clustered: bool
    """Whether some task has several records."""
    clusters: int
    """The number of tasks."""


class Interval(Protocol):
    """A method to compute an interval."""

    @property
    def text(self) -> str:
        """The method in a few words."""

    def __call__(self, sample: Sample) -> Ends:
        """Return both ends, or None."""


@dataclass(frozen=True, slots=True)
class NoInterval:
    """Computes no interval, because the draws would not show how far a value is off."""

    why: str

    @property
    def text(self) -> str:
        """The method in a few words."""
        return f"none: it is {self.why}"

    def __call__(self, sample: Sample) -> Ends:  # noqa: ARG002
        """Return no ends."""
        return None


@dataclass(frozen=True, slots=True)
class Draws:
    """Sums over all tasks, and the same sums over resampled tasks (draws × sums)."""

    totals: Floats
    resampled: Floats
    value: float
    confidence: float
    tasks: float
    """The number of tasks."""


@dataclass(frozen=True, slots=True)
class ResampledSums:
    """Resamples sums over tasks; `ends` computes the interval from them."""

    values: Callable[..., list[pl.Expr]]
    ends: Callable[[Draws], Ends]
    cells: Callable[..., tuple[pl.Expr, int]] | None = None
    """The cell of each record, and the number of cells, if the sums are by cell."""
    text: str = "bootstrap over tasks"

    def __call__(self, sample: Sample) -> Ends:
        """Return both ends, or None with one task."""
        columns = [pl.col(n) for n in sample.inputs]
        exprs = self.values(*columns, **sample.options)
        cells = self.cells(*columns, **sample.options) if self.cells else (pl.lit(0), 1)
        totals = _sums_by_block(sample, exprs, *cells)
        if len(totals) < 2:
            return None
        draws = drawn_weights(len(totals), sample.seed) @ totals
        tasks = float(sample.clusters)
        return self.ends(Draws(totals.sum(axis=0), draws, sample.value, sample.confidence, tasks))


@dataclass(frozen=True, slots=True)
class JackknifedSums:
    """Leaves out one task at a time; for 1 − a ratio of sums that are never negative.

    `rest` returns that ratio for rows of sums. Student's interval of the value and that of the
    ratio's logarithm are each too narrow for some values, so the interval encloses both.
    """

    values: Callable[..., list[pl.Expr]]
    rest: Callable[[Floats], Floats]
    text: str = "t of the value and of log(1 − value), leaving out one task at a time"

    def __call__(self, sample: Sample) -> Ends:
        """Return both ends; None with one task, or if nothing varies."""
        exprs = self.values(*(pl.col(n) for n in sample.inputs), **sample.options)
        totals = _sums_by_block(sample, exprs, pl.lit(0), 1)
        totals = totals[totals.any(axis=1)]
        if len(totals) < 2:
            return None
        others = self.rest(totals.sum(axis=0) - totals)
        whole = 1 - sample.value
        others = others[np.isfinite(others)]
        count = len(others)
        if count < 2 or np.ptp(others) < 1e-12:
            return None
        t = float(t_quantile(np.array([float(count)]), sample.confidence)[0])
        plain = t * math.sqrt((count - 1) * float(others.var()))
        low, high = 1 - whole - plain, 1 - whole + plain
        if whole > 0 and others.min() > 0:
            logs = t * math.sqrt((count - 1) * float(np.log(others).var()))
            low, high = min(low, 1 - whole * math.exp(logs)), max(high, 1 - whole * math.exp(-logs))
        return low, high


def percentiles(values: Floats, draws: Draws) -> Ends:
    """Return percentiles of resampled values, infinities included, that enclose the value."""
    ordered = np.sort(values[~np.isnan(values)])
    if not len(ordered):
        return None
    low, high = (_nearest(ordered, (1 + side * draws.confidence) / 2) for side in (-1, 1))
    return min(low, draws.value), max(high, draws.value)


@dataclass(frozen=True, slots=True)
class ResampledRows:
    """Evaluates the metric itself on resampled tasks; works for any metric without a declaration.

    Beyond `ROWS` records it is evaluated `GROUPS` times, each time without one group of the tasks
    (the jackknife), at a cost that does not depend on the number of tasks.
    """

    text: str = "bootstrap over tasks"

    def __call__(self, sample: Sample) -> Ends:
        """Return both ends, or None with one task."""
        if sample.clusters < 2:
            return None
        return self._groups(sample) if sample.frame.height > ROWS else self._draws(sample)

    def _draws(self, sample: Sample) -> Ends:
        rows = sample.frame.group_by(CLUSTER, maintain_order=True).agg(pl.all())
        rng = np.random.default_rng(sample.seed)
        picks = rng.integers(0, rows.height, (DRAWS // 5, rows.height))
        tables = [rows[p].explode(pl.exclude(CLUSTER)).lazy() for p in picks]
        frames = pl.collect_all([t.select(sample.expression) for t in tables])
        values = np.array([v for f in frames if (v := f.item()) is not None], dtype=np.float64)
        return percentiles(values, Draws(values, values, sample.value, sample.confidence, 0.0))

    def _groups(self, sample: Sample) -> Ends:
        numbered = sample.frame.lazy().with_columns(pl.col(CLUSTER).rank("dense").alias(CLUSTER))
        parts = [numbered.filter(pl.col(CLUSTER) % GROUPS != g) for g in range(GROUPS)]
        frames = pl.collect_all([f.select(sample.expression) for f in parts])
        values = np.array([v for f in frames if (v := f.item()) is not None], dtype=np.float64)
        if len(values) < GROUPS:
            return None
        error = np.sqrt((GROUPS - 1) * values.var())
        value, spread, count = (np.array([x]) for x in (sample.value, error, GROUPS))
        low, high = t_interval(value, spread, count, sample.confidence)
        return low.item(), high.item()


@dataclass(frozen=True, slots=True)
class Linearised:
    """Treats the metric as a mean of each record's contribution (the delta method).

    `terms` returns each record's contribution or deviation. `bias` is how far the value is expected
    to be below the truth; it moves the upper end. `least` is the smallest plausible variance, since
    full agreement is not certainty.
    """

    terms: Callable[..., pl.Expr]
    rate: bool = False
    bias: Callable[..., pl.Expr] | None = None
    least: Callable[..., pl.Expr] | None = None
    amount: bool = False
    """Whether the terms are amounts, which are skewed and never below 0."""
    text: str = "t, linearised, clustered by task"

    def __call__(self, sample: Sample) -> Ends:
        """Return both ends, or None with one task."""
        columns = [pl.col(n) for n in sample.inputs]
        least = 0.0
        if self.least:
            least = sample.frame.select(self.least(*columns, **sample.options)).item() or 0.0
        key = [CLUSTER] if sample.clustered else []  # which takes as much memory as the terms
        terms = sample.frame.select(self.terms(*columns, **sample.options).alias("x"), *key)
        by_task = terms.drop_nulls("x").with_columns(n=pl.lit(1))
        if sample.clustered:
            by_task = by_task.group_by(CLUSTER, maintain_order=True).agg(pl.col("x", "n").sum())
        if by_task.height < 2:
            return None
        total = float(by_task["n"].sum())
        spread_, tasks_ = clustered_error(pl.col("x"), pl.col("n"))
        error, count = by_task.select(error=spread_, tasks=tasks_).row(0)
        if least > 0:
            deviation = float(terms["x"].cast(pl.Float64).std() or 0.0)  # type: ignore[arg-type]
            error = _at_least(error, least, deviation**2 / total, total / count)
        value, spread, n, tasks = (np.array([x]) for x in (sample.value, error, total, count))
        if terms["x"].dtype == pl.Boolean:
            ends = rate_interval(value, spread, n, tasks, sample.confidence)
        elif self.amount:
            skew = by_task.select(clustered_skew(pl.col("x"), pl.col("n"))).item()
            bent = np.array([np.nan if skew is None else skew])
            ends = mean_interval(value, spread, bent, tasks, sample.confidence, (0, None))
        elif self.rate:
            ends = bounded_interval(value, spread, tasks, sample.confidence)
        else:
            ends = t_interval(value, spread, tasks, sample.confidence)
        low, high = (end.item() for end in ends)
        wider = self.bias(*columns, **sample.options) if self.bias else pl.lit(0.0)
        return low, high + sample.frame.select(wider).item()


def _at_least(error: float, least: float, single: float, attempts: float) -> float:
    """Return the error, at least that of a squared error of independent records.

    Repeated attempts make a mean less certain than independent records do, by a factor that the
    clustered error shows; if nothing varies, they count as one record per task.
    """
    if single <= 0:
        return max(error, math.sqrt(least * attempts))
    return error * math.sqrt(max(1.0, least / single))


def clustered_error(total: pl.Expr, count: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Return the standard error of a mean, from each cluster's sum and count, and its clusters.

    The error is the jackknife's over clusters. For clusters of equal size it is the usual clustered
    error, and it stays correct if one cluster outweighs the others. The effective number of
    clusters is Kish's, N² / Σ n²: fewer if their sizes differ, and at least two.
    """
    size = count.sum()
    there = (count > 0).sum().cast(pl.Float64)
    error = ((there - 1) / there * (clustered_change(total, count) ** 2).sum()).sqrt()
    kish = size.cast(pl.Float64) ** 2 / (count.cast(pl.Float64) ** 2).sum()
    tasks = pl.when(there > 1).then(pl.max_horizontal(kish, pl.lit(2.0))).otherwise(there)
    return error, tasks


def clustered_skew(total: pl.Expr, count: pl.Expr) -> pl.Expr:
    """Return the skewness of a mean, from each cluster's sum and count.

    For clusters of equal size it is that of the clusters' means, divided by the square root of
    their number.
    """
    change = clustered_change(total, count)
    unit = change.abs().max()
    return ((change / unit) ** 3).sum() / ((change / unit) ** 2).sum() ** 1.5


def clustered_change(total: pl.Expr, count: pl.Expr) -> pl.Expr:
    """Return by how much the mean falls without each cluster (the jackknife)."""
    size = count.sum()
    rest = pl.when(count < size).then(size - count)
    return (total - count * (total.sum() / size)) / rest


def smoothed_variance(total: pl.Expr, count: pl.Expr) -> pl.Expr:
    """Return the variance of a rate with one additional hit and one additional miss."""
    rate = (total + 1) / (count + 2)
    return rate * (1 - rate)


def ratio_terms(top: pl.Expr, bottom: pl.Expr) -> pl.Expr:
    """Return each record's deviation in a ratio of two sums; unused records are null in both."""
    total = bottom.sum()
    return (top - bottom * (top.sum() / total)) * bottom.count() / total


def _sums_by_block(sample: Sample, exprs: list[pl.Expr], cell: pl.Expr, cells: int) -> Floats:
    """Sum by task (beyond `BLOCKS` tasks, by block of tasks), cell by cell within each value."""
    named = [e.cast(pl.Float64).fill_null(0.0).alias(f"s{i}") for i, e in enumerate(exprs)]
    cluster = pl.col(CLUSTER)
    many = sample.frame.height > BLOCKS and sample.clusters > BLOCKS
    block = cluster % BLOCKS if many else cluster.rank("dense") - 1
    place = (block.cast(pl.Int64) * cells + cell.fill_null(0)).alias("place")
    size = (BLOCKS if many else sample.clusters) * cells
    sums = [np.zeros(size) for _ in named]
    filled = np.zeros(size // cells, np.bool_)
    for rows in sample.frame.iter_slices(SLICE) if many else (sample.frame,):
        table = rows.select(place, *named)
        places = table["place"].to_numpy()
        for total, e in zip(sums, named, strict=True):
            np.add.at(total, places, table[e.meta.output_name()].to_numpy())
        filled[places // cells] = True
    whole: Floats = np.stack([one.reshape(-1, cells) for one in sums], axis=1)
    whole = whole[filled].reshape(int(filled.sum()), -1)
    return whole[np.lexsort(whole.T)]


@lru_cache(maxsize=4)
def drawn_weights(count: int, seed: int) -> Floats:
    """Draw how often each of `count` units is picked, for each of `DRAWS` resamples."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(count, np.full(count, 1 / count), DRAWS).astype(np.float64)


def _nearest(ordered: Floats, share: float) -> float:
    """Return a nearest-rank quantile of sorted values, infinities included."""
    rank = int(np.ceil(share * len(ordered)))
    return float(ordered[min(max(rank, 1), len(ordered)) - 1])
