"""The numbers behind the charts of a report or a page, from measured records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from pennyweight.scoring.digest import (
    AnswerCount,
    Bin,
    BinChart,
    ChartRow,
    ComparisonDigest,
    Coverage,
    ErrorCount,
    Histogram,
    RowChart,
    group_name,
)
from pennyweight.scoring.scores import Group

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
    bins: list[Bin] = [
        {"low": edges[i], "high": edges[i + 1], "n": counts.get(i, 0)}
        for i in range(len(edges) - 1)
    ]
    return {"measure": name, "bins": bins, "p50": ends["p50"], "p95": ends["p95"]}


MAX_CATEGORIES = 12
MAX_CAPABILITIES = 8
MAX_ANSWERS = 12
MAX_SPELLINGS = 12
MAX_SPELLING_CHARACTERS = 1_000
"""More spellings of one answer, or longer ones, do not fit into an address that filters by them."""
MAX_ROWS = 40
MAX_ERRORS = 3


def differences(found: ComparisonDigest | None, metric: str | None) -> RowChart | None:
    """Return the paired differences of one metric, for a forest plot."""
    there = {p["metric"] for p in found["pairs"]} if found else set()
    chosen = next((n for n in (metric, "pass_rate", "accuracy") if n in there), None)
    pairs = [p for p in found["pairs"] if p["metric"] == chosen] if found else []
    rows: list[ChartRow] = [
        {
            "name": f"{p['b']} − {p['a']}",
            "pair": [p["b"], p["a"]],
            "value": p["difference"],
            "low": p["interval"][0],
            "high": p["interval"][1],
            "n": p["tasks"],
        }
        for p in pairs
        if p["difference"] is not None and p["interval"]
    ]
    return {"metric": chosen, "rows": rows[:MAX_ROWS]} if rows and chosen else None


def has(frame: pl.LazyFrame, *names: str) -> bool:
    """Whether a table has these columns."""
    return set(names) <= set(frame.collect_schema().names())


def distinct(frame: pl.LazyFrame, name: str) -> int:
    """Count the distinct values of a column; 1 where there is no such column."""
    return int(frame.select(pl.col(name).n_unique()).collect().item()) if has(frame, name) else 1


def row(group: Group, metric: str) -> ChartRow | None:
    """Return the estimate of a group; None where it is no number."""
    e = group[metric]
    if not isinstance(e.value, float):
        return None
    return {
        "name": group_name(group),
        "filter": {k: v for k, v in group.group.items() if v is not None},
        "value": e.value,
        "low": e.low,
        "high": e.high,
        "n": e.records,
    }


def estimates(groups: Sequence[Group], metric: str | None) -> RowChart | None:
    """Return the estimates of a metric, group by group."""
    if metric is None:
        return None
    known = [found for found in (row(group, metric) for group in groups) if found]
    return {"metric": metric, "rows": known[:MAX_ROWS]} if known else None


def frontier(groups: Sequence[Group], metric: str | None) -> RowChart | None:
    """Mark the sides that no other is both cheaper and better than."""
    if metric is None:
        return None
    rows: list[tuple[ChartRow, float]] = []
    for group in groups:
        found, cost = row(group, metric), group.estimates["cost_usd_mean"].value
        if found and isinstance(cost, float) and math.isfinite(cost):
            rows.append((found, cost))
    if len(rows) < 2:
        return None

    def beaten(value: float, cost: float) -> bool:
        others = ((o["value"], c) for o, c in rows if (o["value"], c) != (value, cost))
        return any(c <= cost and v >= value for v, c in others)

    for found, cost in rows:
        found["cost"], found["frontier"] = cost, not beaten(found["value"], cost)
    return {"metric": metric, "rows": [found for found, _ in rows[:MAX_ROWS]]}


def reliability(frame: pl.LazyFrame) -> list[Bin] | None:
    """Compare stated probabilities with the share of right answers, in ten bins."""
    if not has(frame, "prob_correct", "correct"):
        return None
    edge = in_bins("prob_correct", [k / 10 for k in range(11)])
    rows = (
        frame.filter(pl.col("prob_correct").is_not_null() & pl.col("correct").is_not_null())
        .group_by(edge)
        .agg(n=pl.len(), said=pl.col("prob_correct").mean(), right=pl.col("correct").mean())
        .sort("bin")
        .collect()
    )
    return [
        {"low": k / 10, "high": (k + 1) / 10, "n": n, "said": said, "right": right}
        for k, n, said, right in rows.iter_rows()
    ] or None


def thought(frame: pl.LazyFrame) -> BinChart | None:
    """Count right and wrong answers by the length of the chain of thought."""
    known = frame.filter(pl.col("correct").is_not_null() & pl.col("cot_tokens").is_not_null())
    found = edges_of(known, "cot_tokens")
    if found is None:
        return None
    edges, _ = found
    rows = (
        known.group_by(in_bins("cot_tokens", edges))
        .agg(right=pl.col("correct").sum(), wrong=(~pl.col("correct")).sum())
        .collect()
    )
    counts = {r[0]: r[1:] for r in rows.iter_rows()}
    bins: list[Bin] = []
    for i in range(len(edges) - 1):
        right, wrong = counts.get(i, (0, 0))
        bins.append({"low": edges[i], "high": edges[i + 1], "right": right, "wrong": wrong})
    return {"bins": bins}


def answers(frame: pl.LazyFrame) -> list[AnswerCount] | None:
    """Count the commonest answers."""
    if not has(frame, "normalized_answer", "answer"):
        return None
    given = frame.filter(pl.col("correct").is_not_null())
    rows: Any = (
        given.group_by(answer=pl.col("normalized_answer").str.slice(0, 200))
        .agg(
            n=pl.len(),
            right=pl.col("correct").sum(),
            spelt=pl.col("answer").unique(maintain_order=True).head(MAX_SPELLINGS + 1),
        )
        .sort(["n", "answer"], descending=[True, False])
        .head(MAX_ANSWERS)
        .collect()
        .to_dicts()
    )
    for answer in rows:  # too many spellings, or too long ones, make no address
        long = len(answer["spelt"]) > MAX_SPELLINGS
        long |= sum(len(s or "") for s in answer["spelt"]) > MAX_SPELLING_CHARACTERS
        answer["spelt"] = [] if long else answer["spelt"]
    return rows if rows and (rows[0]["n"] > 1 or len(rows) < MAX_ANSWERS) else None


def failures(frame: pl.LazyFrame) -> list[ErrorCount]:
    """Count the commonest reasons why attempts could not be made."""
    if not has(frame, "status", "error"):
        return []
    rows: Any = (
        frame.filter(pl.col("status") == "error")
        .group_by(error=pl.col("error").str.slice(0, 600))
        .agg(n=pl.len())
        .sort(["n", "error"], descending=[True, False])
        .head(MAX_ERRORS)
        .collect()
        .to_dicts()
    )
    return list(rows)


def coverage(frame: pl.LazyFrame) -> Coverage | None:
    """Count the records of each category and capability."""
    if not has(frame, "category", "capability"):
        return None
    both = pl.col("category").is_not_null() & pl.col("capability").is_not_null()
    rows = (
        frame.filter(both)
        .group_by("category", "capability")
        .agg(n=pl.len(), passed=pl.col("passed").mean())
        .sort("category", "capability")
        .collect()
        .to_dicts()
    )
    if not rows:
        return None
    names = {n: list(dict.fromkeys(sorted(r[n] for r in rows))) for n in ("category", "capability")}
    down, across = names["category"][:MAX_CATEGORIES], names["capability"][:MAX_CAPABILITIES]
    cells: Any = [r for r in rows if r["category"] in down and r["capability"] in across]
    return {"categories": down, "capabilities": across, "cells": cells}
