"""Pairs of sides, compared task by task on the tasks that both tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from pennyweight.define import METRICS
from pennyweight.errors import UsageError
from pennyweight.scoring.groups import GROUP, mean_values, sums
from pennyweight.scoring.margins import HeldMargin, adjusted, held, worst
from pennyweight.scoring.missing import MissingResults, undecided
from pennyweight.scoring.sides import Overlap
from pennyweight.stats.paired import Kind, Paired, Tries, cliffs_delta, compare, holm
from pennyweight.stats.power import Design
from pennyweight.stats.ratio import ratio_of
from pennyweight.stats.resample import CLUSTER

PAIRED = (
    *("pass_rate", "impl_rate_mean", "composite_score", "cost_usd_mean"),
    *("latency_mean_ms", "duration_seconds", "total_tokens_mean"),
)
"""The metrics that are compared by default, and measures whose mean is compared."""
MEASURED: dict[str, Kind] = {"composite_score": "score", "duration_seconds": "number"}

_JSON = (
    *("a", "b", "metric", "difference", "interval", "p", "p_adjusted", "method", "tasks"),
    *("only_a", "only_b", "mean_a", "mean_b", "cliffs_delta", "detectable", "tasks_for_5_points"),
    *("ratio", "ratio_low", "ratio_high", "long_tail", "primary"),
)

FIVE_POINTS = 0.05
RECORDS, SCORED, LACKS = "\0records", "\0scored", "\0lacks"
"""How many records a cell has, how many of them without an error, and how many without a value."""
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
    primary: bool = False
    """Whether it is the primary question: interval and p hold for all compared pairs at once."""
    held: HeldMargin | None = None
    """What it shows about a margin, if one was given and something varied."""
    missing: MissingResults | None = None
    """The results that the sides lack on these tasks; None if they lack none."""
    level: float = 0.05
    """The significance level at which `errors_decide` is told."""

    @property
    def interval(self) -> list[float | None] | None:
        """The interval of the difference, if there is one."""
        return None if self.low is None else [self.low, self.high]

    @property
    def alike(self) -> bool:
        """Whether the difference is the same at every task."""
        return self.tasks > 1 and self.low is None

    def shown(self, level: float) -> bool:
        """Whether the difference is significant, adjusted for all comparisons.

        It must stay so if every missing result speaks against it.
        """
        return self._significant(level) and not self.errors_decide(level)

    def errors_decide(self, level: float) -> bool:
        """Whether the difference is significant only as long as missing results are left out."""
        missing = self.missing
        return self._significant(level) and missing is not None and missing.p_adjusted > level

    def _significant(self, level: float) -> bool:
        return self.p_adjusted is not None and self.p_adjusted <= level

    def agreeing(self, level: float) -> Pair:
        """Return the pair with an interval that leaves out 0 only if the difference is shown."""
        if self.low is None or self.high is None or self.difference is None:
            return self
        low, high = self.low, self.high
        if not self._significant(level):
            return replace(self, low=min(low, 0.0), high=max(high, 0.0))
        return (
            replace(self, low=max(low, 0.0))
            if self.difference > 0
            else replace(self, high=min(high, 0.0))
        )

    def to_dict(self) -> dict[str, Any]:
        """Return one entry of `pairs` in what `pennyweight compare --format json` prints."""
        margin = {} if self.held is None else self.held.to_dict()
        lacking = {
            "missing": self.missing.to_dict() if self.missing else None,
            "errors_decide": self.errors_decide(self.level),
        }
        return {**{name: getattr(self, name) for name in _JSON}, **lacking, **margin}


@dataclass(frozen=True, slots=True)
class Compared:
    """A value of each record whose mean is compared."""

    name: str
    values: pl.Expr
    kind: Kind
    amount: bool = False
    """Whether values are declared as 0 or more without an upper bound, so that they have ratios."""
    better: str | None = "higher"
    alone: bool = True
    """Whether the value of a record depends on that record alone, and not on others of its side."""
    named: bool = False
    """Whether it may read the names of tasks, and not only which records have the same task."""
    waiting: pl.Expr = field(default_factory=lambda: pl.lit(value=False))
    """Selects the records without a value that have one as soon as they are decided."""

    @classmethod
    def of(cls, name: str, schema: pl.Schema, options: Mapping[str, Any]) -> Compared | None:
        """Return the values whose mean is a metric; None if the metric is not a mean."""
        if name in MEASURED:
            amount = MEASURED[name] == "number"
            better = "lower" if amount else "higher"
            return cls(name, pl.col(name), MEASURED[name], amount, better)
        metric = METRICS[name]
        values = mean_values(metric, options)
        if values is None:
            return None
        kind: Kind = "score" if metric.range == (0, 1) else "number"
        if schema.to_frame().select(values.alias("x")).schema["x"] == pl.Boolean:
            kind = "rate"
        amount = kind == "number" and metric.range == (0, None)
        users = metric.is_users and not values.meta.is_column()  # it may read all records
        alone = "task_id" not in metric.inputs and not users
        waiting = undecided(metric)
        if not {*waiting.meta.root_names()} <= {*schema.names()}:
            waiting = pl.lit(value=False)
        return cls(name, values, kind, amount, metric.better, alone, metric.is_users, waiting)

    @property
    def columns(self) -> list[str]:
        """The columns that `computed` reads."""
        return [*dict.fromkeys((GROUP, "status", *self.values.meta.root_names()))]

    def computed(self, frame: pl.DataFrame) -> tuple[Compared, pl.Series]:
        """Compute the values side by side, as the metric of a side is; null at an error."""
        row, name = "\0row", f"\0{self.name}"
        rows = frame.select(self.columns).with_row_index(row)
        scored = rows.filter(pl.col("status").ne_missing("error"))
        sides = scored.partition_by(GROUP) or [scored]
        try:
            found = pl.concat([side.select(row, self.values.alias(name)) for side in sides])
        except pl.exceptions.ShapeError:
            raise UsageError(
                f"Metric {self.name!r} leaves out records by itself, as filter and drop_nulls do. "
                "To compare it task by task, give these records null: pl.when(condition).then(x)."
            ) from None
        values = rows.select(row).join(found, on=row, how="left", maintain_order="left")[name]
        return replace(self, values=pl.col(name)), values

    def by_task(
        self, tables: Sequence[pl.DataFrame], key: list[str], frame: pl.DataFrame, tried: pl.Series
    ) -> tuple[Paired, int, int]:
        """Pair two sides; also return how many tasks only the first tried, and only the second.

        `tried` has the tasks that both tried, with or without a value. `frame` has the records, for
        the single tries of sides that were tried unevenly; without records, these are not used.
        """
        both, only = self.in_both(tables, key, tried)
        tasks = self.tasks(both)
        columns = tasks.drop(CLUSTER).get_columns()
        mean_a, mean_b, tries_a, tries_b = (column.to_numpy() for column in columns)
        fits = tries_a.sum() + tries_b.sum() <= MOST_TRIES
        each = None
        if self.needs_tries(both) and fits and frame.height:
            groups = [table[GROUP][0] for table in tables]
            each = self._each(frame, groups, key, both.select(key), tasks[CLUSTER])
        return Paired(mean_a, mean_b, tries_a, tries_b, self.kind, each), *only

    def cells(self) -> list[pl.Expr]:
        """Sum and count the values of records without an error; count what can have no value.

        Of numbers, also the least and the largest.
        """
        scored, name = pl.col("status").ne_missing("error"), self.name
        values = pl.when(scored).then(self.values)
        open_ = (scored & self.values.is_null() & ~self.waiting).sum().alias(f"{name}/open")
        ends = [values.min().alias(f"{name}/least"), values.max().alias(f"{name}/most")]
        return [*sums({name: values}), open_, *(ends if self.kind == "number" else ())]

    def extremes(
        self, cells: Sequence[pl.DataFrame], key: list[str], tried: pl.Series
    ) -> Extremes | None:
        """Return both sides with every missing result for one and against the other.

        `cells` are those of the two sides. A missing share or score counts as 0 or 1, any other
        number as the least and the largest that the sides have. None if no result is missing.
        """
        name, tasks = self.name, pl.col(CLUSTER).is_in(tried.implode(), nulls_equal=True)
        total, count, open_ = (f"{name}/{part}" for part in ("s", "n", "open"))
        summed = pl.col(total, count, open_, SCORED, RECORDS).sum()
        sides = [side.filter(tasks).group_by(key).agg(summed) for side in cells]
        found = sides[0].join(sides[1], on=key, suffix="/b", nulls_equal=True)

        def both(column: str) -> pl.Expr:
            return pl.col(column) + pl.col(f"{column}/b")

        decided = both(count).sum().over(CLUSTER) > 0
        found = found.filter(decided | (both(open_).sum().over(CLUSTER) == 0)).with_columns(
            (pl.col(f"{RECORDS}{of}") - pl.col(f"{count}{of}")).alias(f"{LACKS}{of}")
            for of in ("", "/b")
        )
        a, b = (int(found[f"{LACKS}{of}"].sum()) for of in ("", "/b"))
        if not a + b:
            return None
        errors = int(found.select(both(RECORDS) - both(SCORED)).to_series().sum())
        least, most = 0.0, 1.0
        if self.kind == "number":
            ends = pl.concat([side.select(f"{name}/least", f"{name}/most") for side in cells])
            least, most = (float(x) for x in ends.select(pl.first().min(), pl.last().max()).row(0))

        def filled(of: str, value: float) -> pl.Expr:
            every = pl.col(f"{total}{of}") + pl.col(f"{LACKS}{of}") * value
            return _digits((every / pl.col(f"{RECORDS}{of}")).mean())

        tries = [pl.col(f"{RECORDS}{of}").sum().cast(pl.Float64) for of in ("", "/b")]
        means = [
            filled(of, value).alias(f"{of}{end}")
            for end, values in (("low", (most, least)), ("high", (least, most)))
            for of, value in zip(("", "/b"), values, strict=True)
        ]
        table = found.group_by(CLUSTER).agg(*means, *tries).sort(CLUSTER).drop(CLUSTER)
        low_a, low_b, high_a, high_b, tries_a, tries_b = (c.to_numpy() for c in table.get_columns())
        low = Paired(low_a, low_b, tries_a, tries_b, self.kind)
        return Extremes(a, b, errors, low, replace(low, a=high_a, b=high_b))

    def in_both(
        self, tables: Sequence[pl.DataFrame], key: list[str], tried: pl.Series
    ) -> tuple[pl.DataFrame, tuple[int, int]]:
        """Return the means and counts of units that both sides have, and tasks of one side only."""
        total, count = f"{self.name}/s", f"{self.name}/n"
        a, b = (
            table.filter(pl.col(count) > 0)
            .group_by(key)
            .agg(pl.col(total, count).sum())
            .with_columns(pl.col(total) / pl.col(count))
            for table in tables
        )
        alone = ~pl.col(CLUSTER).is_in(tried.implode(), nulls_equal=True)
        only = tuple(t.filter(alone)[CLUSTER].n_unique() for t in (a, b))
        return a.join(b, on=key, suffix="/b", nulls_equal=True), (only[0], only[1])

    def tasks(self, both: pl.DataFrame) -> pl.DataFrame:
        """Return the mean of each side and its tries, task by task, in the order of `CLUSTER`.

        The last digits of a mean depend on the order in which its values were added. Without them,
        equal sides are equal however the records are ordered.
        """
        total, count = f"{self.name}/s", f"{self.name}/n"
        means = [_digits(pl.col(name).mean()) for name in (total, f"{total}/b")]
        tries = pl.col(count, f"{count}/b").sum().cast(pl.Float64)
        return both.group_by(CLUSTER).agg(*means, tries).sort(CLUSTER)

    def needs_tries(self, both: pl.DataFrame) -> bool:
        """Whether sides were tried unevenly, so that single tries tell more than means."""
        count = f"{self.name}/n"
        uneven = (pl.col(count) != pl.col(f"{count}/b")).any()
        return self.kind != "rate" and both.height > 0 and bool(both.select(uneven).item())

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
class Extremes:
    """How many results two sides lack, and both sides as these are worst or best for the second."""

    a: int
    b: int
    errors: int
    low: Paired
    high: Paired


def _digits(values: pl.Expr) -> pl.Expr:
    """Round to 14 significant digits what can be rounded without overflow."""
    return (
        pl.when(values.abs().is_between(1e-280, 1e280))
        .then(values.round_sig_figs(14))
        .otherwise(values)
    )


@dataclass(frozen=True, slots=True)
class Units:
    """Sums and counts of each side's values, task by task, in each other configuration."""

    table: pl.DataFrame
    compared: list[Compared]
    others: list[str]
    frame: pl.DataFrame
    every: pl.DataFrame
    """All records, errors too."""
    cells: pl.DataFrame
    """The same sums and counts, also where all attempts ended in an error."""

    @classmethod
    def of(cls, frame: pl.DataFrame, compared: list[Compared], others: list[str]) -> Units:
        """Add up measured records, without errors and records without a task."""
        compared = [*compared]
        for i, one in enumerate(compared):
            if not one.alone:
                compared[i], values = one.computed(frame)
                frame = frame.with_columns(values)
        named = frame.filter(pl.col("task_id").is_not_null())
        cells = cells_of(named, compared, others)
        table = cells.filter(pl.col(SCORED) > 0)
        scored = named.filter(pl.col("status").ne_missing("error"))
        return cls(table, compared, others, scored, frame, cells)

    def tables(self, *names: str) -> list[pl.DataFrame]:  # noqa: ARG002
        """Return the sums and counts."""
        return [self.table]

    def shared(self) -> list[str]:
        """Return the columns in which tries must agree that all sides are compared by."""
        return [name for name in self.others if shared_by_all(name, self.table)]

    def lacking(self, metric: str) -> set[int]:
        """Return the sides that have records without a value of a metric; errors have none."""
        lacks = self.cells.filter(pl.col(f"{metric}/n") < pl.col(RECORDS))
        return {*lacks[GROUP].unique()}

    def named_tasks(self) -> list[pl.DataFrame]:
        """Return the number and the name of each record's task."""
        return [self.frame.select(CLUSTER, pl.col("task_id").cast(pl.String))]

    def overlap(self, names: Sequence[str], a: int, b: int) -> Overlap:
        """Return what two sides, given by their numbers, both tried."""
        key = self._key([self.table.filter(pl.col(GROUP) == g) for g in (a, b)])
        tried = self.every.filter(pl.col("task_id").is_not_null())
        return Overlap.of([tried], (names[a], names[b]), (a, b), key)

    def pairs(
        self,
        names: Sequence[str],
        which: Iterable[tuple[int, int]],
        overlaps: Mapping[tuple[int, int], Overlap],
        asked: PairwiseTest,
    ) -> list[Pair]:
        """Compare pairs of sides, given by their numbers, in every value that both have."""
        sides = [self.table.filter(pl.col(GROUP) == g) for g in range(len(names))]
        every = [self.cells.filter(pl.col(GROUP) == g) for g in range(len(names))]
        lacking = {one.name: self.lacking(one.name) for one in self.compared}
        paired: list[tuple[str, str, Compared, Paired, int, int, Extremes | None]] = []
        for a, b in which:
            tables, cells = [sides[a], sides[b]], [every[a], every[b]]
            key, tried = self._key(tables), overlaps[a, b].clusters
            paired += [
                (
                    *(names[a], names[b], one, *one.by_task(tables, key, self.frame, tried)),
                    one.extremes(cells, key, tried) if lacking[one.name] & {a, b} else None,
                )
                for one in self.compared
                if all(table[f"{one.name}/n"].sum() > 0 for table in tables)
            ]
        asked = asked.counted(sum(values.tasks > 0 for *_, values, _, _, _ in paired))
        return corrected([asked(*one) for one in paired])

    def _key(self, tables: Sequence[pl.DataFrame]) -> list[str]:
        """Return the columns in which compared tries must agree."""
        return [CLUSTER, *(n for n in self.others if overlapping(n, *tables))]


@dataclass(frozen=True, slots=True)
class PairwiseTest:
    """How pairs are tested."""

    confidence: float
    seed: int
    margin: float | None = None
    comparisons: int = 0
    """The number of tests, which the detectable difference takes into account; 0 counts them."""
    planned: bool = True
    """Whether to compute what the tasks can show and how many it takes, which is slow."""

    def counted(self, comparisons: int) -> PairwiseTest:
        """Fill in the number of tests, unless it is given."""
        return replace(self, comparisons=self.comparisons or comparisons)

    def __call__(
        self,
        a: str,
        b: str,
        one: Compared,
        values: Paired,
        only_a: int,
        only_b: int,
        extremes: Extremes | None = None,
    ) -> Pair:
        """Test a pair, also as its missing results are worst."""
        pair = Pair(a, b, one.name, one.kind, values.tasks, only_a, only_b)
        pair = _tested(pair, one, values, self)
        pair = replace(pair, level=1 - self.confidence)
        if extremes:
            pair = replace(pair, missing=self.missing(pair, extremes))
        if self.margin is None:
            return pair
        sets = [values, *([extremes.low, extremes.high] if extremes else ())]
        margins = [
            held(each, self.margin, self.confidence, amount=one.amount, better=one.better)
            for each in sets
        ]
        return replace(pair, held=worst(margins))

    def missing(self, pair: Pair, extremes: Extremes) -> MissingResults | None:
        """Test the observed direction as the missing results speak against it."""
        low, high = (float(one.differences.mean()) for one in (extremes.low, extremes.high))
        found = MissingResults(extremes.a, extremes.b, extremes.errors, low, high, p=1.0)
        if pair.difference is None or pair.p is None:
            return found
        against, value = (extremes.low, low) if pair.difference > 0 else (extremes.high, high)
        if pair.difference * value <= 0:
            return found
        tested = compare(against.rescaled()[0], self.confidence, self.seed, self.comparisons)
        return replace(found, p=max(pair.p, tested.p))


def corrected(pairs: Sequence[Pair]) -> list[Pair]:
    """Correct the tests of all pairs for their number.

    Missing results may make a test that is significant one that is not, so they count as they are
    worst in the correction of other tests.
    """
    margins = zip(pairs, adjusted([pair.held for pair in pairs]), strict=True)
    tested = [pair for pair in pairs if pair.p is not None]
    plain = holm([pair.p for pair in tested if pair.p is not None])
    safe = holm([p for one in tested if (p := one.missing.p if one.missing else one.p) is not None])
    both = iter(zip(plain, safe, strict=True))
    made = []
    for pair, margin in margins:
        if pair.p is None:
            made.append(replace(pair, held=margin))
            continue
        alone, sure = next(both)
        missing = pair.missing and replace(pair.missing, p_adjusted=max(alone, sure))
        p = alone if missing else sure
        made.append(replace(pair, held=margin, p_adjusted=p, missing=missing))
    return made


def cells_of(
    rows: pl.DataFrame, compared: Sequence[Compared], others: Sequence[str]
) -> pl.DataFrame:
    """Add up the values of each side, task by task, in each other configuration."""
    scored = pl.col("status").ne_missing("error").sum().alias(SCORED)
    values = [expr for one in compared for expr in one.cells()]
    return rows.group_by(GROUP, CLUSTER, *others).agg(*values, scored, pl.len().alias(RECORDS))


def _tested(pair: Pair, compared: Compared, paired: Paired, asked: PairwiseTest) -> Pair:
    """Test a pair that has tasks in common."""
    if not paired.tasks:
        return pair
    paired, unit = paired.rescaled()
    found = compare(paired, asked.confidence, asked.seed, asked.comparisons)
    tail = paired.tail
    if compared.amount and (ratio := ratio_of(paired, asked.confidence, found.p)):
        pair = replace(pair, ratio=ratio.value, ratio_low=ratio.low, ratio_high=ratio.high)
    if asked.planned:
        design, level = Design.of(paired), (1 - asked.confidence) / asked.comparisons
        bounded = pair.kind != "number" and paired.tasks > 1
        detectable = design.detectable(paired.tasks, level)
        pair = replace(
            pair,
            detectable=None if detectable is None else detectable * unit,
            tasks_for_5_points=design.tasks_needed(FIVE_POINTS, level) if bounded else None,
        )
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
        long_tail=tail is not None and tail.doubtful(1 - asked.confidence),
    )


def shared_by_all(name: str, table: pl.DataFrame) -> bool:
    """Whether there is a value of a column that all sides have."""
    found = table.select(GROUP, name).unique()
    return bool((found[name].unique_counts() == found[GROUP].n_unique()).any())


def overlapping(name: str, a: pl.DataFrame, b: pl.DataFrame) -> bool:
    """Whether both sides share a value of a column; otherwise it is what distinguishes them."""
    values = [set(side[name].unique().cast(pl.String)) for side in (a, b)]
    return bool(values[0] & values[1])
