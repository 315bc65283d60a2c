"""Cut a measure into bins whose edges are round numbers, and count what lies in each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from pennyweight.scoring.digest import CountBin, Histogram

BINS = 20


def edges_of(frame: pl.LazyFrame, name: str) -> tuple[list[float], dict[str, float]] | None:
    """Cut a measure into equal bins up to its 99th percentile; the last takes the rest."""
    value = pl.col(name)
    ends = (
        frame.select(
            low=value.min(),
            high=value.quantile(0.99, "nearest"),
            p50=value.quantile(0.5, "nearest"),
            p95=value.quantile(0.95, "higher"),
            kinds=value.n_unique(),
            n=value.count(),
        )
        .collect()
        .to_dicts()[0]
    )
    if not ends["n"] or ends["low"] is None:
        return None
    low, high = float(ends["low"]), float(ends["high"])
    low = 0.0 if low < high / 3 else math.floor(low)
    count = min(BINS, max(5, ends["kinds"]))
    step = _step((high - low) / count or 1.0)
    number = max(1, math.ceil((high - low) / step + 1e-9))
    if low + number * step <= high:
        number += 1
    return [low + step * i for i in range(number + 1)], {k: float(ends[k]) for k in ("p50", "p95")}


def _step(raw: float) -> float:
    """Round the width of a bin up to a round number."""
    size = 10.0 ** math.floor(math.log10(raw))
    return next(m * size for m in (1, 2, 2.5, 5, 10) if raw <= m * size * 1.0001)


def in_bins(name: str, edges: Sequence[float]) -> pl.Expr:
    """Return the bin of a value, by the same edges that a filter gets."""
    inner = [(pl.col(name) >= edge).cast(pl.Int32) for edge in edges[1:-1]]
    return pl.sum_horizontal(pl.lit(0, dtype=pl.Int32), *inner).alias("bin")


def histogram(frame: pl.LazyFrame, name: str) -> Histogram | None:
    """Count the records in each bin of a measure; None where it has no value."""
    if name not in frame.collect_schema().names():
        return None
    found = edges_of(frame, name)
    if found is None:
        return None
    edges, ends = found
    rows = (
        frame.filter(pl.col(name).is_not_null())
        .group_by(in_bins(name, edges))
        .agg(n=pl.len())
        .collect()
    )
    counts = dict(rows.iter_rows())
    bins: list[CountBin] = [
        {"low": edges[i], "high": edges[i + 1], "n": counts.get(i, 0)}
        for i in range(len(edges) - 1)
    ]
    return {"measure": name, "bins": bins, "p50": ends["p50"], "p95": ends["p95"]}
