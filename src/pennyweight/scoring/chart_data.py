"""The numbers behind the charts of a report or a page, from measured records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import polars as pl

from pennyweight.define import Metric, metric_named
from pennyweight.scoring.chart_types import (
    AnswerCount,
    Bin,
    BinChart,
    ChartRow,
    Coverage,
    Histogram,
    RepeatsCurve,
    RepeatsPoint,
    RowChart,
)
from pennyweight.scoring.digest import ComparisonDigest, ErrorCount, group_name
from pennyweight.scoring.overview import best_first
from pennyweight.scoring.scores import Group

BINS = 20


def edges_of(frame: pl.LazyFrame, name: str) -> tuple[list[float], dict[str, float]] | None:
    """Cut a measure into equal bins up to its 99th percentile; the last takes the rest.

    Also return its median and its 95th percentile; None if it has no values.
    """
    value = pl.col(name)
    ends = frame.select(
        low=value.min(),
        high=value.quantile(0.99, "nearest"),
        p50=value.quantile(0.5, "equiprobable"),  # the nearest rank, as the metrics
        p95=value.quantile(0.95, "equiprobable"),
        kinds=value.n_unique(),
    ).collect()
    if ends["low"].item() is None:
        return None
    low, high, p50, p95, kinds = map(float, ends.row(0))
    low = 0.0 if low < high / 3 else math.floor(low)
    raw = (high - low) / min(BINS, max(5, kinds)) or 1.0
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(m * size for m in (1, 2, 2.5, 5, 10) if raw <= m * size * 1.0001)
    number = max(1, math.ceil((high - low) / step + 1e-9))
    if low + number * step <= high:
        number += 1
    return [low + step * i for i in range(number + 1)], {"p50": p50, "p95": p95}


def in_bins(name: str, edges: Sequence[float]) -> pl.Expr:
    """Return the bin of a value, by the same edges that a filter gets."""
    inner = [(pl.col(name) >= edge).cast(pl.Int32) for edge in edges[1:-1]]
    return pl.sum_horizontal(pl.lit(0, dtype=pl.Int32), *inner).alias("bin")


def without_errors(frame: pl.LazyFrame, name: str) -> tuple[pl.LazyFrame, dict[str, list[str]]]:
    """Leave out errors, as metrics do; also return the filter for it, if some have the measure."""
    if not has(frame, "status", name):
        return frame, {}
    status = pl.col("status").fill_null("ok")
    found = set(frame.drop_nulls(name).select(status.unique()).collect()["status"])
    where = {"status_in": sorted(found - {"error"})} if "error" in found else {}
    return frame.filter(status != "error"), where


def histogram(frame: pl.LazyFrame, name: str) -> Histogram | None:
    """Count the records without an error in each bin of a measure; None if it has no values."""
    frame, where = without_errors(frame, name)
    cut = edges_of(frame, name) if has(frame, name) else None
    if cut is None:
        return None
    edges, ends = cut
    rows = frame.drop_nulls(name).group_by(in_bins(name, edges)).agg(n=pl.len()).collect()
    counts = dict(rows.iter_rows())
    bins: list[Bin] = [
        {"low": low, "high": high, "n": counts.get(i, 0)}
        for i, (low, high) in enumerate(pairwise(edges))
    ]
    return {
        "measure": name,
        "filter": where,
        "bins": bins,
        "p50": ends["p50"],
        "p95": ends["p95"],
    }


MAX_CATEGORIES = 12
MAX_CAPABILITIES = 8
MAX_ANSWERS = 12
MAX_SPELLINGS = 12
MAX_SPELLING_CHARACTERS = 1_000
"""With more or longer spellings of an answer, an address cannot filter by them."""
MAX_ROWS = 100
"""The most rows of a chart; of more sides, the best."""
MAX_ERRORS = 3


def differences(compared: ComparisonDigest | None, metric: str | None) -> RowChart | None:
    """Return the paired differences of one metric, for a forest plot."""
    pairs = compared["pairs"] if compared else []
    if compared and any(p["metric"] == metric for p in compared.get("gaps", ())):
        pairs = compared["gaps"]  # their intervals agree with the leaderboard
    known = {p["metric"] for p in pairs}
    chosen = next((n for n in (metric, "pass_rate", "accuracy") if n in known), None)
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
        if p["metric"] == chosen and p["difference"] is not None and p["interval"]
    ]
    return {"metric": chosen, "rows": rows[:MAX_ROWS]} if rows and chosen else None


def has(frame: pl.LazyFrame, *names: str) -> bool:
    """Whether a table has these columns."""
    return set(names) <= set(frame.collect_schema().names())


def distinct(frame: pl.LazyFrame, name: str) -> int:
    """Count the distinct values of a column; 1 where there is no such column."""
    return int(frame.select(pl.col(name).n_unique()).collect().item()) if has(frame, name) else 1


def row(group: Group, metric: str) -> ChartRow | None:
    """Return the estimate of a group; None if it is not a number."""
    e = group[metric]
    if not isinstance(e.value, float):
        return None
    ends = [x if isinstance(x, float) and math.isfinite(x) else None for x in (e.low, e.high)]
    return {
        "name": group_name(group),
        "filter": {k: v for k, v in group.group.items() if v is not None},
        "value": e.value,
        "low": ends[0],
        "high": ends[1],
        "n": e.records,
    }


def estimates(groups: Sequence[Group], metric: str | None) -> RowChart | None:
    """Return the estimates of a metric, group by group."""
    if metric is None:
        return None
    rows = [found for group in most(groups, metric) if (found := row(group, metric))]
    return {"metric": metric, "rows": rows} if rows else None


def most(groups: Sequence[Group], metric: str) -> Sequence[Group]:
    """Return the groups that a chart has room for: the best, if there are too many."""
    return groups if len(groups) <= MAX_ROWS else best_first(groups, metric)[:MAX_ROWS]


def frontier(groups: Sequence[Group], metric: str | None) -> RowChart | None:
    """Mark the sides that no other is both cheaper and better than."""
    rows: list[ChartRow] = []
    for group in most(groups, metric) if metric is not None else ():
        found, cost = row(group, metric or ""), group.estimates["cost_usd_mean"].value
        if found and isinstance(cost, float) and math.isfinite(cost):
            rows.append({**found, "cost": cost})
    if metric is None or len(rows) < 2:
        return None
    places = [(one["value"], one["cost"]) for one in rows]
    for one, (value, cost) in zip(rows, places, strict=True):
        others = (place for place in places if place != (value, cost))
        one["frontier"] = not any(c <= cost and v >= value for v, c in others)
    return {"metric": metric, "rows": rows}


def reliability(frame: pl.LazyFrame) -> list[Bin] | None:
    """Compare stated probabilities with the share of right answers, in ten bins."""
    if not has(frame, "prob_correct", "correct"):
        return None
    rows = (
        frame.drop_nulls(["prob_correct", "correct"])
        .group_by(in_bins("prob_correct", [k / 10 for k in range(11)]))
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
    known = frame.drop_nulls(["correct", "cot_tokens"])
    cut = edges_of(known, "cot_tokens")
    if cut is None:
        return None
    correct = pl.col("correct")
    grouped = known.group_by(in_bins("cot_tokens", cut[0]))
    rows = grouped.agg(right=correct.sum(), wrong=(~correct).sum()).collect()
    counts = {r[0]: r[1:] for r in rows.iter_rows()}
    bins: list[Bin] = []
    for i, (low, high) in enumerate(pairwise(cut[0])):
        right, wrong = counts.get(i, (0, 0))
        bins.append({"low": low, "high": high, "right": right, "wrong": wrong})
    return {"bins": bins}


def answers(frame: pl.LazyFrame) -> list[AnswerCount] | None:
    """Count the most frequent answers."""
    if not has(frame, "normalized_answer", "answer"):
        return None
    normalized = pl.col("normalized_answer").str.slice(0, 200).alias("answer")
    spelt = pl.col("answer").unique(maintain_order=True).head(MAX_SPELLINGS + 1)
    grouped = frame.drop_nulls("correct").group_by(normalized)
    counted = grouped.agg(n=pl.len(), right=pl.col("correct").sum(), spelt=spelt)
    rows = _most_frequent(counted, "answer", MAX_ANSWERS)
    for answer in rows:
        long = len(answer["spelt"]) > MAX_SPELLINGS
        long |= sum(len(s or "") for s in answer["spelt"]) > MAX_SPELLING_CHARACTERS
        answer["spelt"] = [] if long else answer["spelt"]
    return rows if rows and (rows[0]["n"] > 1 or len(rows) < MAX_ANSWERS) else None


def failures(frame: pl.LazyFrame) -> list[ErrorCount]:
    """Count the most frequent errors of attempts that could not be made."""
    if not has(frame, "status", "error"):
        return []
    failed = frame.filter(pl.col("status") == "error")
    errors = failed.group_by(error=pl.col("error").str.slice(0, 600)).agg(n=pl.len())
    return list(_most_frequent(errors, "error", MAX_ERRORS))


def _most_frequent(counted: pl.LazyFrame, name: str, most: int) -> Any:
    ordered = counted.sort(["n", name], descending=[True, False])
    return ordered.head(most).collect().to_dicts()


CURVED = ("pass_at_k", "pass_hat_k")
MAX_POINTS = 10


def curve_metrics(fewest: int) -> dict[int, list[Metric]]:
    """Return the metrics of the curve over k, for k from 1 to the attempts that every task has."""
    steps = range(min(fewest, MAX_POINTS))
    sizes = sorted({round(1 + i * (fewest - 1) / max(1, len(steps) - 1)) for i in steps})
    return {
        k: [
            replace(metric, name=f"{metric.name}/{k}", options={"k": k, "n": None})
            for metric in map(metric_named, CURVED)
        ]
        for k in sizes
    }


def repeats_curve(group: Group, sizes: Iterable[int], sides: int) -> RepeatsCurve | None:
    """Return pass@k and pass^k by k, from a group scored with the metrics of the curve."""
    points: list[RepeatsPoint] = []
    for k in sizes:
        at, hat = (group[f"{name}/{k}"] for name in CURVED)
        if isinstance(at.value, float) and isinstance(hat.value, float):
            ends = ([e.value, e.low, e.high] for e in (at, hat))
            points.append({"k": k, **dict(zip(CURVED, ends, strict=True)), "n": at.records})  # type: ignore[typeddict-item]
    return {"points": points, "sides": sides} if len(points) > 1 else None


def coverage(frame: pl.LazyFrame) -> Coverage | None:
    """Count the records of each category and capability."""
    if not has(frame, "category", "capability"):
        return None
    names = ["category", "capability"]
    grouped = frame.drop_nulls(names).group_by(names)
    cells = grouped.agg(n=pl.len(), passed=pl.col("passed").mean()).sort(names).collect().to_dicts()
    if not cells:
        return None
    categories, capabilities = (
        sorted({cell[name] for cell in cells})[:most]
        for name, most in zip(names, (MAX_CATEGORIES, MAX_CAPABILITIES), strict=True)
    )
    shown: Any = [
        cell
        for cell in cells
        if cell["category"] in categories and cell["capability"] in capabilities
    ]
    return {"categories": categories, "capabilities": capabilities, "cells": shown}
