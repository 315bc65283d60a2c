"""A pilot: records that show how a metric varies and what an attempt costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from pennyweight.catalogue import metric_named
from pennyweight.errors import InputError, UsageError
from pennyweight.record import BY_NAME
from pennyweight.scoring.digest import HEADLINES, headline_by
from pennyweight.scoring.groups import cluster
from pennyweight.scoring.pairs import Compared
from pennyweight.scoring.pipeline import ScoreRequest, Scoring
from pennyweight.scoring.selection import selects
from pennyweight.scoring.sides import DEFAULT_COLUMNS, SIDE, Sides
from pennyweight.sources.source import Source
from pennyweight.stats.interval import Floats
from pennyweight.stats.paired import Kind
from pennyweight.stats.resample import CLUSTER
from pennyweight.stats.variance import variance_split
from pennyweight.stats.variation import Variation

UNIT, SETTING = "\0unit", "\0setting"
"""A task in one setting of what does not tell the sides apart, and that setting."""
MEANS = "pass_rate, accuracy, cost_usd_mean or latency_mean_ms"


@dataclass(frozen=True, slots=True)
class Pilot:
    """What a pilot shows about one metric."""

    metric: str
    variation: Variation
    tasks: int
    attempts: int
    sides: tuple[str, ...]
    """The sides whose difference it shows; one name or none if it has no sides."""
    repeated: bool
    """Whether tasks were tried several times, so that their own variation is known."""
    extreme: bool
    """Whether all attempts passed or all failed, so that the rate is a cautious guess."""


@dataclass(frozen=True, slots=True)
class PilotRecords:
    """Measured records of a pilot, from which each metric's variation is estimated."""

    frame: pl.DataFrame
    work: Scoring
    sides: tuple[str, ...]
    columns: tuple[str, ...] = ()
    """The columns that tell the sides apart."""

    @classmethod
    def read(
        cls,
        sources: Sequence[Source],
        metrics: Sequence[str],
        by: Sequence[str],
        where: Mapping[str, str],
        *,
        paired: bool,
        options: Mapping[str, Any] | None = None,
        map: Mapping[str, str] | None = None,  # noqa: A002
        skip_bad: bool = False,
    ) -> PilotRecords:
        """Read the records; a question about one side refuses several."""
        wanted = [*dict.fromkeys((*(metrics or HEADLINES), "cost_usd_mean"))]
        sides = Sides.of(sources, by)
        request = ScoreRequest(wanted, map=map, skip_bad=skip_bad, options=options or {})
        also = [*dict.fromkeys((*DEFAULT_COLUMNS, "run", "category", "capability", *where))]
        work = Scoring.of(sources, request, sides.grouped, also=also)
        frame = work.measure(sources).frame
        for column, value in where.items():
            if column not in BY_NAME and not frame[column].count():
                raise UsageError(f"--where {column}={value}: no record has the column {column!r}.")
            frame = frame.filter(pl.col(column).cast(pl.String) == value)
        scored = frame.filter(
            pl.col("status").cast(pl.String).ne_missing("error"), pl.col("task_id").is_not_null()
        )
        if not scored.height:
            chosen = ", ".join(f"{c}={v}" for c, v in where.items())
            raise InputError(
                [
                    f"The pilot has no records{f' with {chosen}' if chosen else ''} that name a "
                    "task and have no error. Without a pilot, give --rate, or --mean and --sd."
                ]
            )
        several = bool(by or sides.sources) or any(
            scored[c].drop_nulls().n_unique() > 1 for c in DEFAULT_COLUMNS
        )
        if several:
            columns, named = sides.named(scored)
            scored = sides.ordered(named, columns)
            names = tuple(str(n) for n in scored[SIDE].unique().sort())
            if not paired:
                raise UsageError(
                    f"The pilot has several sides ({', '.join(names[:5])}), and this question is "
                    f"about one. For example: --where {columns[0]}={names[-1]}."
                )
        else:
            scored, names, columns = scored.with_columns(pl.lit("").alias(SIDE)), (), ()
        return cls(scored.with_columns(cluster()), work, names, columns)

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return self.frame[CLUSTER].n_unique()

    @property
    def cost(self) -> float | None:
        """The mean cost of an attempt."""
        return self.frame["cost_usd"].cast(pl.Float64).mean()  # type: ignore[return-value]

    def where(self, select: Sequence[tuple[str, str]]) -> PilotRecords:
        """Keep the records that a gate selects."""
        keys = [selects(column, value) for column, value in select]
        return replace(self, frame=self.frame.filter(keys)) if keys else self

    def headline(self) -> str:
        """Return the metric to plan for if none is named."""
        if found := headline_by(self.frame, SIDE):
            return found
        raise UsageError(f"The pilot shows no rate. Name a metric: --metric {MEANS}.")

    def pilot(self, metric: str, task_share: float, correlation: float) -> Pilot:
        """Estimate how a metric varies; what the records do not show is as assumed."""
        compared = mean_of(metric, self.frame.schema, self.work)
        others = [c for c in DEFAULT_COLUMNS if c not in self.columns]
        rows = self.frame.select(
            pl.col(SIDE).cast(pl.String),
            CLUSTER,
            pl.struct(CLUSTER, *others).hash().alias(UNIT),
            pl.struct(*others).hash().alias(SETTING) if others else pl.lit(0).alias(SETTING),
            compared.values.cast(pl.Float64).alias("x"),
        ).drop_nulls("x")
        tasks = rows[CLUSTER].n_unique()
        if tasks < 2:
            shown = "no value" if not tasks else "values of one task only"
            raise UsageError(
                f"The pilot has {shown} of {metric}, which does not show how it varies. Use a "
                "pilot of several tasks, or give --rate, or --mean and --sd."
            )
        counts = rows.group_by(SIDE, UNIT).len()["len"].to_numpy()
        repeated = bool(counts.max() > 1)
        found = _variation(rows, compared.kind, task_share, correlation, repeated=repeated)
        return Pilot(
            metric=metric,
            variation=replace(found, seen=tasks),
            tasks=tasks,
            attempts=rows.height,
            sides=self.sides,
            repeated=repeated,
            extreme=compared.kind == "rate" and rows["x"].n_unique() == 1,
        )


def mean_of(metric: str, schema: pl.Schema, work: Scoring) -> Compared:
    """Return the values whose mean is a metric; refuse metrics that are no means."""
    metric_named(metric)
    compared = Compared.of(metric, schema, work.options)
    if compared is None:
        raise UsageError(
            f"{metric} is not a mean over records, so its sample size cannot be planned. "
            f"Plan for a mean, such as {MEANS}."
        )
    return compared


def _variation(
    rows: pl.DataFrame, kind: Kind, task_share: float, correlation: float, *, repeated: bool
) -> Variation:
    """Split the variance of single attempts into that between tasks and that within them."""
    mean = float(rows["x"].mean())  # type: ignore[arg-type]
    if kind == "rate" and mean in {0.0, 1.0}:
        tasks = rows[CLUSTER].n_unique()
        mean = (mean * tasks + 0.5) / (tasks + 1)
        return Variation(kind, mean, math.sqrt(mean * (1 - mean)), task_share, correlation)
    positive = kind == "number" and bool((rows["x"] > 0).all())
    scale = _centred(rows.with_columns(pl.col("x").log()) if positive else rows)
    between, within = _components(scale)
    shared = _covariance(scale)
    whole = between + within
    if not repeated:
        share = max(task_share, min(shared / whole, 1.0)) if shared and whole else task_share
    else:
        share = between / whole if whole else task_share
    if shared is not None and whole * share > 0:
        correlation = min(max(shared / (whole * share), 0.0), 1.0)
    if kind == "number":
        plain = sum(_components(_centred(rows)))
        log = whole if positive else math.log1p(plain / mean**2) if mean else 0.0
        return Variation(kind, mean, math.sqrt(plain), share, correlation, math.sqrt(log))
    sd = math.sqrt(mean * (1 - mean)) if kind == "rate" else math.sqrt(whole)
    return Variation(kind, mean, sd, share, correlation)


def _centred(rows: pl.DataFrame) -> pl.DataFrame:
    """Subtract the mean of each side and setting, so that only tasks and attempts vary."""
    return rows.with_columns(pl.col("x") - pl.col("x").mean().over(SIDE, SETTING))


def _components(rows: pl.DataFrame) -> tuple[float, float]:
    """Return the variances between and within tasks, averaged over sides.

    If no task was tried twice, all variance counts as between tasks.
    """
    parts = []
    for side in rows.partition_by(SIDE):
        values = side["x"].to_numpy()
        split = variance_split(values, side[UNIT].rank("dense").to_numpy().astype(np.int64) - 1)
        if split is not None:
            parts.append((split.task, split.attempt))
        elif len(values) > 1:
            parts.append((float(values.var(ddof=1)), 0.0))
    between, within = (sum(part) / len(parts) for part in zip(*parts, strict=True))
    return between, within


def _covariance(rows: pl.DataFrame) -> float | None:
    """Return the mean covariance of two sides' tasks; None with one side or too few tasks."""
    means = rows.group_by(SIDE, UNIT).agg(pl.col("x").mean())
    table = means.pivot(on=SIDE, index=UNIT, values="x").drop(UNIT)
    found = []
    for a, b in combinations(table.columns, 2):
        both = table.select(a, b).drop_nulls()
        if both.height > 1:
            x: Floats = both.to_numpy().astype(np.float64)
            found.append(float(np.cov(x[:, 0], x[:, 1])[0, 1]))
    return sum(found) / len(found) if found else None
