"""The measured records that gates decide on, each with its weight."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import polars as pl

from pennyweight.catalogue import METRICS
from pennyweight.define import MEASURES, Metric, by_task, needed_columns
from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.gates.policy import NORMALIZED, Formula, Gate, Policy
from pennyweight.record import BY_NAME
from pennyweight.scoring.estimates import Estimate, combine, estimates
from pennyweight.scoring.exam import EXAM
from pennyweight.scoring.groups import GROUP, Grouped, cluster, mean_values
from pennyweight.scoring.large.spill import Spill
from pennyweight.scoring.pipeline import ScoreRequest, Scoring
from pennyweight.scoring.pooling import COLUMNS, several
from pennyweight.scoring.repeats import Attempts
from pennyweight.scoring.selection import cell_key, selects
from pennyweight.scoring.sides import SIDE
from pennyweight.sources.source import Rerun, Source
from pennyweight.stats.interval import bounded_interval
from pennyweight.stats.resample import CLUSTER, clustered_error
from pennyweight.text.natural_order import natural

WEIGHT = "\0weight"
SIDES = ("subject", "tier")
CONTEXT = (
    *(*SIDES, "run", "attempt", "category", "capability", "violations", "violated", "undecided"),
    *("weight", "required", "judge_scores"),
)
"""The columns that gates need in addition to those of their metrics."""
_ROLES = ("expected_behaviors", "checks")
"""The columns that show which undecided behaviours are must-nots."""
MUST_NOT = "\0must_not"
"""The column that lists the must-nots of an attempt without a verdict."""

WEIGHTED = ("pass_rate", "behavior_coverage")
"""The rates in which scenarios count by their weight."""


@dataclass(frozen=True, slots=True)
class GateRecords:
    """Measured records of one side."""

    frame: pl.DataFrame
    options: Mapping[str, Any] = field(default_factory=dict)
    composites: Mapping[str, Formula] = field(default_factory=dict)
    name: str = ""
    left_out: int = 0
    planned: int | None = None
    """How many attempts the run makes in all; None if the records are not those of a run."""
    remaining: int = 0
    """How many of these attempts have no record yet."""
    run: str = ""
    narrowed: str = ""
    """What part of its suite the run has, in words; empty if it has all of it."""
    unseen: tuple[str, ...] = ()
    """Required scenarios of the suite without a record."""
    reruns: Mapping[str, Rerun] = field(default_factory=dict)
    """How changed tasks are tried again, by the ids of runs."""

    @property
    def scored(self) -> pl.DataFrame:
        """The attempts without an error."""
        failed = (self.frame["status"].cast(pl.String) == "error").fill_null(value=False)
        return self.frame.filter(~failed) if failed.any() else self.frame

    @property
    def pooled(self) -> dict[str, int]:
        """How many data sets, tools or tiers the records are of, if several."""
        there = (name for name in COLUMNS if name in self.frame)
        return several({name: self.frame[name].drop_nulls().n_unique() for name in there})

    @property
    def errors(self) -> int:
        """The number of attempts that failed with an error."""
        return self.frame.height - self.scored.height

    def under(self, policy: Policy) -> GateRecords:
        """Apply the weights, options and composites of a policy."""
        weight = pl.col("weight").cast(pl.Float64, strict=False).fill_null(1.0)
        for column, weights in policy.weights.items():
            if weights:
                key = cell_key(column)
                weight *= key.replace_strict(weights, default=1.0, return_dtype=pl.Float64)
        return replace(
            self,
            frame=self.frame.with_columns(weight.alias(WEIGHT)),
            options={**self.options, **policy.options},
            composites=policy.composites,
        )

    def where(self, select: Sequence[tuple[str, str]]) -> GateRecords:
        """Keep the records with these values, ignoring case and surrounding white space."""
        keys = _selected(dict(select))
        return replace(self, frame=self.frame.filter(keys)) if keys else self

    def about(self, gate: Gate) -> GateRecords:
        """Keep the records that a gate is about, with the options that it sets."""
        return replace(self.where(gate.select), options={**self.options, **dict(gate.options)})

    def without(self, tasks: pl.Series) -> GateRecords:
        """Leave out some tasks."""
        if tasks.is_empty():
            return self
        gone = pl.col("task_id").is_in(tasks.implode()).fill_null(value=False)
        return replace(self, frame=self.frame.filter(~gone))

    def exams(self, side: str) -> pl.DataFrame:
        """Return the digests of the records, as those of one side."""
        known = self.frame.columns
        columns = (
            pl.col(name).cast(pl.String)
            if name in known
            else pl.lit(None, dtype=pl.String).alias(name)
            for name in ("task_id", "run", *EXAM)
        )
        return self.frame.select(pl.lit(side).alias(SIDE), *columns)

    def values_in(self, column: str) -> list[str]:
        """Return the distinct values of a column, in lower case and stripped."""
        found = self.frame.select(cell_key(column).unique().sort().drop_nulls())
        return found.to_series().to_list()

    def estimate(self, metric: str, confidence: float) -> Estimate:
        """Estimate a metric, or a composite of the policy."""
        if metric in self.composites:
            return self._composite(self.composites[metric], confidence)
        if self.weighs(metric):
            return self._weighted(metric, confidence)
        declared = METRICS[metric]
        if declared.combined and self.weighted:
            names = declared.part_names(self.options)
            parts = {name: [self.estimate(name, confidence)] for name in names}
            return combine(declared, parts, 1, self.options)[0]
        needed = {GROUP, CLUSTER, "status", "passed", *SIDES}
        needed |= needed_columns([declared], self.options)
        frame = self.frame.select(name for name in self.frame.columns if name in needed)
        return estimates(frame, 1, [declared], self.options, confidence, 0)[0][metric]

    def weighs(self, metric: str) -> bool:
        """Whether scenarios have different weights in a metric."""
        return metric in WEIGHTED and self.weighted

    @property
    def weighted(self) -> bool:
        """Whether scenarios have different weights."""
        if WEIGHT not in self.frame.columns:
            return False
        weights = self.frame[WEIGHT]
        return weights.min() != weights.max()

    def values(self, metric: str) -> pl.Expr | None:
        """Return the values whose mean is a metric; None if the metric is not a mean."""
        if metric in self.composites or metric not in METRICS:
            return None
        return mean_values(METRICS[metric], self.options)

    def units(self, metric: str) -> pl.DataFrame:
        """Return the mean value of each task, its weight, and how many attempts have a value."""
        values = self.values(metric)
        assert values is not None
        return self._units(self.scored, values)

    def share_units(self, metric: str) -> tuple[pl.DataFrame, bool] | None:
        """Return the units of a mean of values in [0, 1], and whether they are true or false.

        None if the metric is another one, or weighs scenarios. Unlike `units` this includes shares
        of all attempts, such as that of errors, and means over tasks, such as pass@k.
        """
        declared = METRICS.get(metric)
        if declared is None or declared.range != (0, 1) or self.weighs(metric):
            return None
        if declared.over == "tasks":
            return self._task_units(declared), True
        values = mean_values(replace(declared, over="scored"), self.options)
        if values is None:
            return None
        rows = self.frame if declared.over == "all" else self.scored
        rate = rows.clear().select(values.alias("x")).schema["x"] == pl.Boolean
        return self._units(rows, values), rate

    def _task_units(self, metric: Metric) -> pl.DataFrame:
        """Return the values of a metric over tasks; each counts once, whatever its attempts."""
        grouped = Grouped(self.scored, 1, self.options, 0.0, 0)
        attempts = Attempts.of(grouped)
        (size,) = attempts.sizes(self.options, 1)
        rows = grouped.rows if size else grouped.rows.clear()
        found = by_task(rows, attempts.key, [metric], {**self.options, "n": size or 1})
        values = found.select(pl.col(metric.name).cast(pl.Float64).alias("value")).drop_nulls()
        return values.with_columns(tries=pl.lit(1.0))

    @staticmethod
    def _units(rows: pl.DataFrame, values: pl.Expr) -> pl.DataFrame:
        weight = pl.col(WEIGHT) if WEIGHT in rows.columns else pl.lit(1.0)
        value = values.cast(pl.Float64)
        rows = rows.select("task_id", CLUSTER, value.alias("value"), weight.alias("weight"))
        table = rows.drop_nulls("value").group_by(CLUSTER, maintain_order=True)
        return table.agg(
            pl.col("task_id").first(),
            pl.col("value").mean(),
            pl.col("weight").mean(),
            pl.len().cast(pl.Float64).alias("tries"),
        )

    def is_rate(self, metric: str) -> bool:
        """Whether the values of a mean are true or false."""
        values = self.values(metric)
        assert values is not None
        return self.frame.clear().select(values.alias("x")).schema["x"] == pl.Boolean

    def _weighted(self, metric: str, confidence: float) -> Estimate:
        values = self.values(metric)
        assert values is not None
        rows = self.scored.select(
            CLUSTER, values.cast(pl.Float64).alias("x"), pl.col(WEIGHT).alias("w")
        )
        used = rows.drop_nulls("x")
        total = used["w"].sum()
        if not total:
            return Estimate(None, records=used.height, skipped=rows.height - used.height)
        tasks = used.group_by(CLUSTER, maintain_order=True).agg(
            (pl.col("x") * pl.col("w")).sum().alias("s"), pl.col("w").sum()
        )
        error, clusters = clustered_error(pl.col("s"), pl.col("w"))
        mean = pl.col("s").sum() / pl.col("w").sum()
        row = tasks.select(v=mean, e=error, k=clusters).row(0)
        value, spread, count = (np.array([0.0 if x is None else x]) for x in row)
        low, high = (float(end[0]) for end in bounded_interval(value, spread, count, confidence))
        low_, high_ = (None, None) if np.isnan(low) else (low, high)
        return Estimate(float(value[0]), low_, high_, used.height, rows.height - used.height)

    def _composite(self, formula: Formula, confidence: float) -> Estimate:
        """Add the parts up; the ends of the interval are the sums at the ends of the parts'."""
        parts = [(t, self.part(t.metric, confidence)) for t in formula.terms]
        sums: list[float | None] = [0.0, 0.0, 0.0]
        for term, part in parts:
            ends = (part.high, part.low) if term.less else (part.low, part.high)
            for place, x in enumerate((part.value, *ends)):
                total = sums[place]
                if total is None or not isinstance(x, float):
                    sums[place] = None
                else:
                    sums[place] = total + term.weight * (1 - x if term.less else x)
        value, low, high = sums if None not in sums else (sums[0], None, None)
        records = min(part.records for _, part in parts)
        return Estimate(value, low, high, records, max(part.skipped for _, part in parts))

    def part(self, metric: str, confidence: float) -> Estimate:
        """Estimate a part of a composite."""
        if metric != NORMALIZED:
            return self.estimate(metric, confidence)
        e = self.estimate("latency_p95_ms", confidence)
        budget = self.options.get("latency_budget_ms", 5000.0)
        three = (e.value, e.low, e.high)
        value, low, high = (min(1.0, x / budget) if isinstance(x, float) else None for x in three)
        return replace(e, value=value, low=low, high=high)


def read_records(
    sources: Sequence[Source],
    metrics: Sequence[str] | None,
    options: Mapping[str, Any],
    *,
    where: Mapping[str, str] | None = None,
    same_side: Mapping[str, str] | None = None,
    map: Mapping[str, str] | None = None,  # noqa: A002
    skip_bad: bool = False,
    name: str = "",
    across: Collection[str] = (),
    paired: bool = True,
) -> GateRecords:
    """Read and measure the records of one side; refuse several sides, and an empty source.

    `same_side` selects a subject and a tier only if the records have several. `across` names the
    columns that may have several values because the gates compare these. `paired` says whether
    they are compared with others, and so must be of one exam.
    """
    where = where or {}
    columns = list(dict.fromkeys((*CONTEXT, *_ROLES, *(EXAM if paired else ()), *where)))
    request = ScoreRequest(metrics, map=map, skip_bad=skip_bad, options=options)
    work = Scoring.of(sources, request, also=columns)
    with Spill.open(()) as spill:
        measured = work.measure(sources, spill=spill)
        if measured.spilled:
            if where and not same_side and all(source.planned is None for source in sources):
                spill.keep(pl.all_horizontal(_selected(where)))
            # Of the other records, long texts would be in memory that nobody reads.
            is_open = pl.col("undecided").list.len() > 0
            spill.views |= {name: pl.when(is_open).then(pl.col(name)) for name in _ROLES}
            read = spill.gathered(n for n in measured.frame.columns if not n.startswith("\0"))
        else:
            read = measured.frame
    if not (read.height or spill.kept):
        raise InputError(["There are no records to decide on."])
    present = {*measured.loaded.present, *MEASURES}
    for column in where:
        if column not in present and not (read[column].count() or spill.filled[column]):
            known = {*present, *BY_NAME} - {column}
            raise UsageError(unknown("Column", column, known, "No record has it."))
    frame = _with_open_must_nots(read)
    every = GateRecords(frame, work.options, name=name, left_out=measured.left_out)
    where = narrowed(frame, where, same_side or {})
    records = every.where(list(where.items()))
    if not records.frame.height:
        values = ", ".join(f"{n}={v}" for n, v in where.items())
        raise InputError([f"{f'{name} has' if name else 'There are'} no records with {values}."])
    again = {one.run_id: one.rerun for one in sources if one.run_id and one.rerun}
    records = replace(records, frame=numbered(records.frame), reruns=again)
    alike = [column for column in SIDES if column not in across or column in where]
    compared = {METRICS[m].across: m for m in metrics or () if m in METRICS}
    one_side(records.frame, alike, compared)
    return _planned(records, frame, sources, alike)


def _planned(
    records: GateRecords, every: pl.DataFrame, sources: Sequence[Source], alike: Sequence[str]
) -> GateRecords:
    """Add what the runs of a side planned, and what of it has no record yet.

    A side has one value in each column of `alike`, and all values in the others.
    """
    runs = [
        (s, s.run_id or "", s.planned * prod(len(v) for c, v in s.sides.items() if c not in alike))
        for s in sources
        if s.planned is not None
    ]
    if not runs:
        return records
    side = zip(alike, records.frame.select(alike).row(0), strict=True)
    rows = every.filter(pl.col(c).cast(pl.String).eq_missing(pl.lit(v)) for c, v in side)
    made = dict(rows["run"].cast(pl.String).value_counts().iter_rows())
    tried = set(rows["task_id"])
    remaining = {run: max(0, planned - made.get(run, 0)) for _, run, planned in runs}
    unseen = (name for source, *_ in runs for name in source.required if name not in tried)
    return replace(
        records,
        planned=sum(planned for *_, planned in runs),
        remaining=sum(remaining.values()),
        run=next((run for run, left in remaining.items() if left), ""),
        narrowed="; ".join(filter(None, (source.narrowed for source, *_ in runs))),
        unseen=tuple(dict.fromkeys(unseen)),
    )


def _with_open_must_nots(frame: pl.DataFrame) -> pl.DataFrame:
    """Add a column with the must-nots without a verdict, according to the checks.

    In a record without checks, everything undecided may be one, except expected behaviours.
    """
    kind = pl.List(pl.String)
    rows = frame.select("undecided", *_ROLES).with_row_index()
    rows = rows.filter(pl.col("undecided").list.len() > 0)
    if not rows.height:
        return frame.drop(_ROLES).with_columns(pl.lit(None, dtype=kind).alias(MUST_NOT))
    lists: list[list[str] | None] = [None] * frame.height
    for row in rows.iter_rows(named=True):
        try:
            checks = json.loads(row["checks"] or "null")
            names = [c["name"] for c in checks if c["role"] == "must_not" and c["holds"] is None]
        except (ValueError, TypeError, KeyError):
            expected = set(row["expected_behaviors"] or ())
            names = [name for name in row["undecided"] if name not in expected]
        lists[row["index"]] = names or None
    return frame.drop(_ROLES).with_columns(pl.Series(MUST_NOT, lists, dtype=kind))


def _selected(where: Mapping[str, str]) -> list[pl.Expr]:
    return [selects(column, value) for column, value in where.items()]


def numbered(frame: pl.DataFrame) -> pl.DataFrame:
    """Number the clusters of records that are all one group."""
    return frame.with_columns(cluster(), pl.lit(0, dtype=pl.UInt32).alias(GROUP))


def narrowed(
    frame: pl.DataFrame, where: Mapping[str, str], same_side: Mapping[str, str]
) -> dict[str, str]:
    """Add the subject and the tier of `same_side` where the records have several."""
    several = (c for c in SIDES if c in same_side and frame[c].drop_nulls().n_unique() > 1)
    return {**{column: same_side[column] for column in several}, **where}


def one_side(
    frame: pl.DataFrame, columns: Sequence[str] = SIDES, compared: Mapping[str, str] | None = None
) -> None:
    """Refuse to decide on several tiers or subjects at once: one would hide the other.

    `compared` names a metric for each column whose values it compares.
    """
    for column in columns:
        values = sorted(frame[column].drop_nulls().cast(pl.String).unique(), key=natural)
        if len(values) > 1:
            shown = ", ".join(values[:5]) + (", …" if len(values) > 5 else "")
            if metric := (compared or {}).get(column):
                raise UsageError(
                    f"The records are of several {column}s ({shown}). {metric} compares them, the "
                    f"other gates decide on one: write {metric} into a policy of its own."
                )
            raise UsageError(
                f"The records are of several {column}s ({shown}); one has to be chosen. "
                f"For example: --where {column}={values[-1]}. Or --each {column} decides on all, "
                "one by one."
            )
