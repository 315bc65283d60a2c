"""What a mean is an estimate of: which tasks it speaks about, and what weighs the same in it.

The interval is about *tasks like these* (generalised accuracy) or about *these tasks* alone
(benchmark accuracy), and each record or each task counts once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from pennyweight.define import Metric
from pennyweight.errors import UsageError, unknown
from pennyweight.scoring.groups import GROUP, Grouped, mean_values, sums
from pennyweight.stats.interval import Floats, bounded_interval, rate_interval, t_interval
from pennyweight.stats.resample import CLUSTER
from pennyweight.stats.skewness import mean_interval

Weight = Literal["records", "tasks"]
About = Literal["tasks-like-these", "these-tasks"]
WEIGHTS: tuple[Weight, ...] = ("records", "tasks")
ABOUT: tuple[About, ...] = ("tasks-like-these", "these-tasks")


@dataclass(frozen=True, slots=True)
class Estimand:
    """What means are of, and what their intervals are about."""

    weight: Weight = "records"
    about: About = "tasks-like-these"

    @classmethod
    def of(cls, weight: str, about: str) -> Estimand:
        """Check two names."""
        for option, name, known in (("weight", weight, WEIGHTS), ("estimand", about, ABOUT)):
            if name not in known:
                raise UsageError(unknown(option.capitalize(), name, known, f"Known: {known}."))
        return cls(weight, about)  # type: ignore[arg-type]


USUAL = Estimand()
"""What metrics are defined as: over records, about tasks like these."""

Means = dict[str, tuple[Floats, Floats, Floats]]
"""The value and both ends of each mean, by group."""


def _means(grouped: Grouped, metrics: Sequence[Metric], estimand: Estimand) -> Means:
    """Estimate the metrics that are means over records; the others are absent."""
    found = {m.name: mean_values(m, grouped.options) for m in metrics}
    values = {name: v for name, v in found.items() if v is not None}
    if not values:
        return {}
    types = grouped.rows.clear().select(v.alias(n) for n, v in values.items()).schema
    squares = [v.cast(pl.Float64).pow(2).sum().alias(f"{name}/q") for name, v in values.items()]
    by_task = grouped.rows.group_by(GROUP, CLUSTER, maintain_order=True)
    exprs = [e for name in values for e in _moments(name, estimand)]
    table = grouped.aggregate(exprs, by_task.agg(*sums(values), *squares))
    ranges = {m.name: m.range or (None, None) for m in metrics}
    made: Means = {}
    for name in values:
        value, error, clusters, skew, n = (
            table[f"{name}/{part}"].cast(pl.Float64).fill_null(np.nan).to_numpy()
            for part in ("value", "error", "clusters", "skew", "records")
        )
        level = grouped.confidence
        if estimand.about == "these-tasks":
            make = bounded_interval if ranges[name] == (0, 1) else t_interval
            ends = make(value, error, clusters, level)
        elif types[name] == pl.Boolean:
            ends = rate_interval(value, error, n, clusters, level)
        else:
            ends = mean_interval(value, error, np.nan_to_num(skew), clusters, level, ranges[name])
        low, high = (np.where(np.isnan(error), np.nan, end) for end in ends)
        made[name] = value, low, high
    return made


def _moments(name: str, estimand: Estimand) -> list[pl.Expr]:
    """Return the value, its standard error, the clusters behind the error, and its skewness."""
    total, count, square = (pl.col(f"{name}/{part}") for part in "snq")
    tasks = (count > 0).sum().cast(pl.Float64)
    mean = pl.when(count > 0).then(total / count)
    by_task = estimand.weight == "tasks"
    value = mean.mean() if by_task else total.sum() / count.sum()
    if estimand.about == "these-tasks":
        weight = 1 / tasks if by_task else count / count.sum()
        inside = (square - total**2 / count).clip(0) / (count - 1)
        variance = pl.when(count > 0).then(weight**2 * inside / count).sum()
        error = pl.when(count.filter(count > 0).min() > 1).then(variance.sqrt())
        clusters, skew = count.sum() - tasks + 1, pl.lit(0.0)
    else:
        error = pl.when(tasks > 1).then(mean.std() / tasks.sqrt())
        clusters, skew = tasks, mean.skew() / tasks.sqrt()
    parts = {"value": pl.when(tasks > 0).then(value), "error": error, "clusters": clusters}
    parts |= {"skew": skew, "records": count.sum()}
    return [e.alias(f"{name}/{part}") for part, e in parts.items()]


def restated(
    found: Mapping[str, list[Any]], grouped: Grouped, metrics: Sequence[Metric], estimand: Estimand
) -> dict[str, list[Any]]:
    """Replace the estimates of means; others lose what the estimand does not define."""
    if not grouped.clustered and estimand.about == "tasks-like-these":
        return dict(found)
    means = _means(grouped, [m for m in metrics if m.over == "scored"], estimand)
    result: dict[str, list[Any]] = {}
    for name, estimates in found.items():
        if name in means:
            rows = zip(estimates, *(part.tolist() for part in means[name]), strict=True)
            result[name] = [
                e if e.value is None else replace(e, value=v, low=_end(a), high=_end(b))
                for e, v, a, b in rows
            ]
            continue
        over_tasks = any(m.name == name and m.over == "tasks" for m in metrics)
        if estimand.weight == "tasks" and not over_tasks:
            result[name] = [replace(e, value=None, low=None, high=None) for e in estimates]
        elif estimand.about == "these-tasks":
            result[name] = [replace(e, low=None, high=None) for e in estimates]
        else:
            result[name] = list(estimates)
    return result


def _end(value: float) -> float | None:
    return None if np.isnan(value) else value
