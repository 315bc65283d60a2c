"""The numbers behind charts that show each side by itself, never several sides together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from pennyweight.scoring.chart_data import CURVED, has, in_bins, without_errors
from pennyweight.scoring.chart_types import (
    CategoryCell,
    RepeatsPoint,
    SideBin,
    SideBins,
    SideCharts,
    SideCurve,
    SideSpread,
)
from pennyweight.scoring.digest import group_name
from pennyweight.scoring.scores import Group
from pennyweight.stats.interval import wilson_interval, z_quantile

MAX_PANELS = 12
"""Sides that have a panel of their own; the best by the headline metric."""
MAX_SPREADS = 60
MAX_CATEGORIES = 12
PARTS = 5
"""Bins of thinking tokens, each with about as many records."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def side_charts(
    frame: pl.LazyFrame,
    by: Sequence[str],
    groups: Sequence[Group],
    value: str | None,
    curves: Mapping[str, list[RepeatsPoint]],
) -> SideCharts:
    """Gather the charts of each side; `groups` are the sides, the best first.

    `value` is the measure whose mean is the headline, and `curves` has the curve of each side.
    """
    sides = [(group_name(g), {k: str(v) for k, v in g.group.items()}) for g in groups]
    known = pl.col("status").fill_null("ok") != "error" if has(frame, "status") else pl.lit(True)
    measured = frame.filter(known)
    tenths = [k / 10 for k in range(11)]
    curve: list[SideCurve] = [
        {"name": name, "filter": where, "points": curves[name]}
        for name, where in sides
        if curves.get(name)
    ]
    return {
        "reliability": _bins(measured, by, sides, "prob_correct", tenths),
        "thinking": _bins(measured, by, sides, "cot_tokens", _parts(measured, "cot_tokens")),
        "latency": _spreads(frame, by, sides, "latency_ms"),
        "tokens": _spreads(frame, by, sides, "total_tokens"),
        "categories": _categories(measured, by, sides, value),
        "repeats": curve[:MAX_PANELS] or None,
        "sides": len(sides),
    }


Named = Sequence[tuple[str, dict[str, str]]]


def _parts(frame: pl.LazyFrame, name: str) -> list[float]:
    """Cut a measure where about a fifth of the records lies in each part."""
    if not has(frame, name, "correct"):
        return []
    value = pl.col(name)
    wanted = [value.quantile(i / PARTS, "nearest").alias(str(i)) for i in range(PARTS + 1)]
    cuts = frame.drop_nulls([name, "correct"]).select(wanted).collect().row(0)
    if cuts[0] is None:
        return []
    edges = sorted({float(cut) for cut in cuts})
    return edges if len(edges) > 2 else []


def _bins(
    frame: pl.LazyFrame, by: Sequence[str], sides: Named, name: str, edges: Sequence[float]
) -> list[SideBins] | None:
    if len(edges) < 3 or not has(frame, name, "correct", *by):
        return None
    rows = (
        frame.drop_nulls([name, "correct"])
        .group_by(*by, in_bins(name, edges))
        .agg(n=pl.len(), at=pl.col(name).cast(pl.Float64).mean(), right=pl.col("correct").mean())
        .sort("bin")
        .collect()
    )
    found: dict[tuple[str, ...], list[SideBin]] = {}
    lows, highs = wilson_interval(
        rows["right"].to_numpy(), rows["n"].to_numpy().astype(float), z_quantile(0.95)
    )
    ends = np.stack([lows, highs], axis=1).round(6).tolist()
    for row, pair in zip(rows.iter_rows(named=True), ends, strict=True):
        bin_: SideBin = {
            "low": edges[row["bin"]],
            "high": None if row["bin"] == len(edges) - 2 else edges[row["bin"] + 1],
            "n": row["n"],
            "at": row["at"],
            "right": row["right"],
            "ends": pair,
        }
        found.setdefault(tuple(str(row[column]) for column in by), []).append(bin_)
    made: list[SideBins] = [
        {"name": title, "filter": dict(where), "bins": found[tuple(where.values())]}
        for title, where in sides
        if tuple(where.values()) in found
    ]
    return made[:MAX_PANELS] or None


def _spreads(
    frame: pl.LazyFrame, by: Sequence[str], sides: Named, name: str
) -> list[SideSpread] | None:
    if not has(frame, name, *by):
        return None
    frame, good = without_errors(frame, name)
    value = pl.col(name).cast(pl.Float64)
    wanted = [value.quantile(q, "equiprobable").alias(str(q)) for q in QUANTILES]
    rows = frame.drop_nulls(name).group_by(*by).agg(pl.len().alias("n"), *wanted).collect()
    found = {tuple(map(str, row[: len(by)])): row[len(by) :] for row in rows.iter_rows()}
    made: list[SideSpread] = []
    for title, where in sides:
        if known := found.get(tuple(where.values())):
            spread: SideSpread = {
                "name": title, "filter": {**where, **good}, "n": known[0],
                "quantiles": list(known[1:]),
            }  # fmt: skip
            made.append(spread)
    return made[:MAX_SPREADS] or None


def _categories(
    frame: pl.LazyFrame, by: Sequence[str], sides: Named, value: str | None
) -> list[CategoryCell] | None:
    if value is None or "category" in by or not has(frame, value, "category", *by):
        return None
    known = frame.drop_nulls([value, "category"])
    sizes = (
        known.group_by("category").agg(n=pl.len()).sort("n", "category", descending=[True, False])
    )
    kinds = sorted(sizes.head(MAX_CATEGORIES).collect()["category"].cast(pl.String))
    if len(kinds) < 2:
        return None
    mean = pl.col(value).cast(pl.Float64).mean()
    rows = known.group_by(*by, "category").agg(mean.alias("value"), n=pl.len()).collect()
    found = {tuple(map(str, row[:-2])): row[-2:] for row in rows.iter_rows()}
    cells: list[CategoryCell] = [
        {
            "name": title,
            "filter": dict(where),
            "category": kind,
            "value": found[*where.values(), kind][0],
            "n": found[*where.values(), kind][1],
        }
        for title, where in sides[:MAX_SPREADS]
        for kind in kinds
        if (*where.values(), kind) in found
    ]
    return cells or None


def side_curves(
    groups: Sequence[Group], sizes: Iterable[int], fewest: Mapping[str, int]
) -> dict[str, list[RepeatsPoint]]:
    """Return the curve of each group over those k for which all of its tasks have attempts."""
    found: dict[str, list[RepeatsPoint]] = {}
    for group in groups:
        points: list[RepeatsPoint] = []
        for k in (k for k in sizes if k <= fewest.get(group_name(group), 1)):
            at, hat = (group[f"{name}/{k}"] for name in CURVED)
            if isinstance(at.value, float) and isinstance(hat.value, float):
                both = ([e.value, e.low, e.high] for e in (at, hat))
                points.append(
                    {"k": k, **dict(zip(CURVED, both, strict=True)), "n": at.records}  # type: ignore[typeddict-item]
                )
        if len(points) > 1:
            found[group_name(group)] = points
    return found
