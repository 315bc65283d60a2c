"""The records that gates decide on: measured, of one side, each with its weight."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pennyweight.catalogue import METRICS
from pennyweight.define import MEASURES
from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.gates.policy import NORMALIZED, Formula
from pennyweight.record import BY_NAME
from pennyweight.scoring.estimates import Estimate, combine, estimates
from pennyweight.scoring.groups import GROUP, cluster, mean_values
from pennyweight.scoring.pipeline import Scoring
from pennyweight.stats.interval import bounded_interval
from pennyweight.stats.resample import CLUSTER, clustered_error

if TYPE_CHECKING:
    from pennyweight.gates.policy import Policy
    from pennyweight.sources.source import Source

WEIGHT = "\0weight"
SIDES = ("subject", "tier")
_OWN = ("weight", "required", "violated", "undecided", "judge_scores")
BESIDE = (*SIDES, "run", "attempt", "category", "capability", "violations", *_OWN)
_TOLD = ("expected_behaviors", "checks")
"""The columns that tell which undecided behaviours are must-nots."""
MUST_NOT = "\0must_not"
"""The must-nots of an attempt about which nothing could be decided."""

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
    """How many attempts a run was going to make; None for what is no run."""
    to_come: int = 0
    """How many of these attempts have no record yet."""
    run: str = ""
    unseen: tuple[str, ...] = ()
    """Scenarios that the suite requires and that have no record."""

    @property
    def scored(self) -> pl.DataFrame:
        """The attempts that could be made."""
        return self.frame.filter(pl.col("status").cast(pl.String).ne_missing("error"))

    @property
    def errors(self) -> int:
        """How many attempts could not be made."""
        return self.frame.height - self.scored.height

    def under(self, policy: Policy) -> GateRecords:
        """Weigh the scenarios, and take the options, as a policy says."""
        own = pl.col("weight").cast(pl.Float64, strict=False).fill_null(1.0)
        for column, weights in policy.weights.items():
            if weights:
                key = pl.col(column).str.strip_chars().str.to_lowercase()
                own *= key.replace_strict(weights, default=1.0, return_dtype=pl.Float64)
        return replace(
            self,
            frame=self.frame.with_columns(own.alias(WEIGHT)),
            options={**self.options, **policy.options},
            composites=policy.composites,
        )

    def where(self, select: Sequence[tuple[str, str]]) -> GateRecords:
        """Keep the records that have these values, but for case and space around them."""
        frame = self.frame
        for column, value in select:
            key = pl.col(column).cast(pl.String).str.strip_chars().str.to_lowercase()
            frame = frame.filter(key == value.strip().lower())
        return replace(self, frame=frame)

    def values_in(self, column: str) -> list[str]:
        """List what records have in a column, but for case and space around it."""
        key = pl.col(column).cast(pl.String).str.strip_chars().str.to_lowercase()
        return [str(v) for v in self.frame.select(key.unique().sort().drop_nulls()).to_series()]

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
        return estimates(self.frame, 1, [METRICS[metric]], self.options, confidence, 0)[0][metric]

    def weighs(self, metric: str) -> bool:
        """Whether scenarios count differently in a metric."""
        return metric in WEIGHTED and self.weighted

    @property
    def weighted(self) -> bool:
        """Whether scenarios count differently."""
        return WEIGHT in self.frame.columns and self.frame[WEIGHT].n_unique() > 1

    def values(self, metric: str) -> pl.Expr | None:
        """Return the values that a metric is the mean of; None if it is no mean."""
        if metric in self.composites or metric not in METRICS:
            return None
        return mean_values(METRICS[metric], self.options)

    def units(self, metric: str) -> pl.DataFrame:
        """Return the mean value of each task, its weight, and how many attempts have a value."""
        values = self.values(metric)
        assert values is not None
        weight = pl.col(WEIGHT) if WEIGHT in self.frame.columns else pl.lit(1.0)
        value = values.cast(pl.Float64)
        rows = self.scored.select("task_id", CLUSTER, value.alias("value"), weight.alias("weight"))
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
        row = tasks.select(mean.alias("v"), error.alias("e"), clusters.alias("k")).row(0)
        value, spread, count = (np.array([0.0 if x is None else x]) for x in row)
        low, high = (float(end[0]) for end in bounded_interval(value, spread, count, confidence))
        found = Estimate(float(value[0]), None, None, used.height, rows.height - used.height)
        return found if np.isnan(low) else replace(found, low=low, high=high)

    def _composite(self, formula: Formula, confidence: float) -> Estimate:
        """Add the parts up; the ends of its interval are its values at the ends of theirs."""
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
) -> GateRecords:
    """Read and measure the records of sources; refuse none at all, and several sides.

    `same_side` names a subject and a tier that are picked only where the records have several.
    """
    where = where or {}
    columns = list(dict.fromkeys((*BESIDE, *_TOLD, *where)))
    work = Scoring.of(sources, columns, list(metrics) if metrics else None, 0.9, 0, map, options)
    work = replace(work, plan=replace(work.plan, by=[]))
    measured = work.measure(sources, skip_bad=skip_bad)
    if not measured.frame.height:
        raise InputError(["There are no records to decide on."])
    for column in where:
        known = {*measured.loaded.present, *BY_NAME, *MEASURES} - {column}
        if column not in {*measured.loaded.present, *MEASURES} and not (
            measured.frame[column].count()
        ):
            raise UsageError(unknown("Column", column, known, "No record has it."))
    frame, taken = _open_must_nots(numbered(measured.frame)), {**work.options, **options}
    every = GateRecords(frame, taken, name=name, left_out=measured.left_out)
    where = narrowed(frame, where, same_side or {})
    found = every.where(list(where.items()))
    if not found.frame.height:
        shown = ", ".join(f"{n}={v}" for n, v in where.items())
        there = f"{name} has" if name else "There are"
        raise InputError([f"{there} no records with {shown}."])
    one_side(found.frame)
    return _planned(found, frame, sources)


def _planned(found: GateRecords, every: pl.DataFrame, sources: Sequence[Source]) -> GateRecords:
    runs = [(s, s.run_id or "", s.planned) for s in sources if s.planned is not None]
    if not runs:
        return found
    side = found.frame.select(SIDES).row(0)
    alike = zip(SIDES, side, strict=True)
    mine = every.filter(pl.col(c).cast(pl.String).eq_missing(pl.lit(v)) for c, v in alike)
    made = dict(mine["run"].cast(pl.String).value_counts().iter_rows())
    tried = set(mine["task_id"])
    coming = {run: max(0, planned - made.get(run, 0)) for _, run, planned in runs}
    unseen = (name for source, *_ in runs for name in source.required if name not in tried)
    return replace(
        found,
        planned=sum(planned for *_, planned in runs),
        to_come=sum(coming.values()),
        run=next((run for run, left in coming.items() if left), ""),
        unseen=tuple(dict.fromkeys(unseen)),
    )


def _open_must_nots(frame: pl.DataFrame) -> pl.DataFrame:
    """Find the must-nots without a verdict.

    The checks say which they are. Where a record has none, whatever is undecided and is no expected
    behaviour may be one.
    """
    names: list[list[str] | None] = [None] * frame.height
    rows = frame.select("undecided", "expected_behaviors", "checks", "violations").with_row_index()
    for row in rows.filter(pl.col("undecided").list.len() > 0).iter_rows(named=True):
        try:
            checks = json.loads(row["checks"] or "null")
            found = [c["name"] for c in checks if c["role"] == "must_not" and c["holds"] is None]
        except (ValueError, TypeError, KeyError):
            expected = set(row["expected_behaviors"] or ())
            found = [name for name in row["undecided"] if name not in expected]
        names[row["index"]] = found or None
    column = pl.Series(MUST_NOT, names, dtype=pl.List(pl.String))
    return frame.drop(_TOLD).with_columns(column)


def numbered(frame: pl.DataFrame) -> pl.DataFrame:
    """Number the clusters of records that are all one group."""
    return frame.with_columns(cluster(), pl.lit(0, dtype=pl.UInt32).alias(GROUP))


def narrowed(
    frame: pl.DataFrame, where: Mapping[str, str], same_side: Mapping[str, str]
) -> dict[str, str]:
    """Add the subject and the tier of `same_side` where the records have several."""
    several = (c for c in SIDES if c in same_side and frame[c].drop_nulls().n_unique() > 1)
    return {**{column: same_side[column] for column in several}, **where}


def one_side(frame: pl.DataFrame) -> None:
    """Refuse to decide on several tiers or subjects at once: one would hide the other."""
    for column in SIDES:
        values = [str(v) for v in frame[column].unique().drop_nulls().cast(pl.String).sort()]
        if len(values) > 1:
            shown = ", ".join(values[:5]) + (", …" if len(values) > 5 else "")
            raise UsageError(
                f"The records are of several {column}s ({shown}); a good one must not hide a bad "
                f"one. --where {column}={values[-1]} picks one."
            )
