"""The digest of records: scores, the numbers behind each chart, and the most telling records.

It is plain data, so that a report, a page and a store's cache can all hold it.
"""

from __future__ import annotations

import math
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from assay.errors import InputError, UsageError
from assay.pipeline import score
from assay.report.telling import telling
from assay.scores import json_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from assay.scores import Group, Scores

VERSION = 2
"""Changes when a digest that was kept can no longer be read."""
HEADLINES = ("accuracy", "pass_rate", "behavior_coverage", "impl_rate_mean")
"""The metrics that may stand for a whole run, the first that has a value."""
SIDES = ("run", "subject", "tier")
BINS, MOST = 20, 12


def digest(
    sources: Sequence[Any],
    *,
    confidence: float = 0.95,
    take: Callable[[pl.LazyFrame], None] | None = None,
) -> dict[str, Any]:
    """Score records and gather what charts and pages show.

    `take` is given the measured records, for instance to keep them, before they are gone.
    """
    if "-" in sources:
        raise UsageError("Standard input can be read only once; write it to a file and name that.")
    with _measured(sources, confidence) as (whole, frame):
        by = [n for n in SIDES if _distinct(frame, n) > 1]
        sides = score(sources, by=by, confidence=confidence) if by else None
        headline = _headline(whole.groups[0])
        groups = list(sides.groups) if sides else []
        paired = comparison(sources, confidence) if len(groups) > 1 else None
        found = {
            "version": VERSION,
            "confidence": confidence,
            "by": by,
            "headline": headline,
            "whole": _group(whole.groups[0]),
            "sides": [_group(g) for g in groups],
            "left_out": whole.left_out,
            "comparison": paired,
            "charts": {
                "sides": _estimates(groups, headline) if len(groups) > 1 else None,
                "differences": differences(paired, headline),
                "frontier": _frontier(groups, headline),
                "categories": _categories(sources, frame, headline, confidence),
                "reliability": _reliability(frame),
                "thought": _thought(frame),
                "answers": _answers(frame),
                "latency": _histogram(frame, "latency_ms"),
                "tokens": _histogram(frame, "total_tokens"),
                "coverage": _coverage(frame),
            },
            "telling": telling(frame),
        }
        if take:
            take(frame)
    return found


def comparison(
    sources: Sequence[Any], confidence: float, by: Sequence[str] = ()
) -> dict[str, Any] | None:
    """Compare the sides on the same tasks, in words and numbers; None where that cannot be."""
    from assay.comparison import compare  # noqa: PLC0415
    from assay.report.words import sentences  # noqa: PLC0415

    try:
        found = compare(list(sources), by=list(by), confidence=confidence)
    except (UsageError, InputError):
        return None
    told = found.to_dict()
    return {"words": list(sentences(found)), "pairs": told["pairs"], "by": list(found.by)}


def differences(found: dict[str, Any] | None, metric: str | None) -> dict[str, Any] | None:
    """Give the paired differences of one metric, for a forest plot."""
    there = {p["metric"] for p in found["pairs"]} if found else set()
    chosen = next((n for n in (metric, "pass_rate", "accuracy") if n in there), None)
    pairs = [p for p in found["pairs"] if p["metric"] == chosen] if found else []
    rows = [
        {
            "name": f"{p['b']} − {p['a']}",
            "value": p["difference"],
            "low": p["interval"][0],
            "high": p["interval"][1],
            "n": p["tasks"],
        }
        for p in pairs
        if p["difference"] is not None and p["interval"]
    ]
    return {"metric": chosen, "rows": rows[:40]} if rows else None


@contextmanager
def _measured(sources: Sequence[Any], confidence: float) -> Iterator[tuple[Scores, pl.LazyFrame]]:
    """Score everything once, with each measured record in a file that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="assay-digest-") as folder:
        path = Path(folder) / "records.parquet"
        whole = score(list(sources), per_task=path, confidence=confidence)
        if not path.exists():
            raise UsageError("There are no records yet, so there is nothing to report.")
        yield whole, pl.scan_parquet(path)


def _group(group: Group) -> dict[str, Any]:
    estimates = {
        n: [json_value(e.value), json_value(e.low), json_value(e.high), e.records, e.skipped]
        for n, e in group.estimates.items()
    }
    told = group.to_dict()
    return {
        "group": told["group"],
        "name": " · ".join("—" if v is None else str(v) for v in group.group.values()) or "all",
        "records": group.records,
        "errors": group.errors,
        "estimates": estimates,
        "statistics": told["statistics"],
    }


def _headline(group: Group) -> str | None:
    known = (n for n in HEADLINES if n in group.estimates)
    return next((n for n in known if group[n].value is not None), None)


def _has(frame: pl.LazyFrame, *names: str) -> bool:
    return set(names) <= set(frame.collect_schema().names())


def _distinct(frame: pl.LazyFrame, name: str) -> int:
    return int(frame.select(pl.col(name).n_unique()).collect().item()) if _has(frame, name) else 1


def _row(group: Group, metric: str) -> dict[str, Any] | None:
    e = group[metric]
    if not isinstance(e.value, float):
        return None
    return {
        "name": _group(group)["name"],
        "filter": {k: v for k, v in group.group.items() if v is not None},
        "value": e.value,
        "low": e.low,
        "high": e.high,
        "n": e.records,
    }


def _estimates(groups: Sequence[Group], metric: str | None) -> dict[str, Any] | None:
    rows = [_row(g, metric) for g in groups] if metric else []
    known = [row for row in rows if row][:40]
    return {"metric": metric, "rows": known} if known else None


def _frontier(groups: Sequence[Group], metric: str | None) -> dict[str, Any] | None:
    """Find the sides that no other is both cheaper and better than."""
    rows: list[dict[str, Any]] = []
    for group in groups:
        row = _row(group, metric) if metric else None
        cost = group.estimates["cost_usd_mean"].value
        if row and isinstance(cost, float) and math.isfinite(cost):
            rows.append({**row, "cost": cost})
    if len(rows) < 2:
        return None
    for row in rows:
        row["frontier"] = not any(
            o["cost"] <= row["cost"]
            and o["value"] >= row["value"]
            and (o["cost"], o["value"]) != (row["cost"], row["value"])
            for o in rows
        )
    return {"metric": metric, "rows": rows[:40]}


def _categories(
    sources: Sequence[Any], frame: pl.LazyFrame, metric: str | None, confidence: float
) -> dict[str, Any] | None:
    if metric is None or not 2 <= _distinct(frame, "category") <= 200:
        return None
    found = score(sources, by="category", metrics=metric, confidence=confidence)
    groups = sorted(found.groups, key=lambda g: -g.records)[:MOST]
    return _estimates(sorted(groups, key=lambda g: str(g.group["category"])), metric)


def _reliability(frame: pl.LazyFrame) -> list[dict[str, Any]] | None:
    if not _has(frame, "prob_correct", "correct"):
        return None
    edge = (pl.col("prob_correct") * 10).floor().clip(0, 9).cast(pl.Int32).alias("bin")
    rows = (
        frame.filter(pl.col("prob_correct").is_not_null() & pl.col("correct").is_not_null())
        .group_by(edge)
        .agg(n=pl.len(), said=pl.col("prob_correct").mean(), right=pl.col("correct").mean())
        .sort("bin")
        .collect()
    )
    return [
        {"low": r["bin"] / 10, "high": (r["bin"] + 1) / 10, **{k: r[k] for k in r if k != "bin"}}
        for r in rows.to_dicts()
    ] or None


def _edges(frame: pl.LazyFrame, name: str) -> tuple[list[float], dict[str, float]] | None:
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


def _in_bins(name: str, edges: Sequence[float]) -> pl.Expr:
    step = edges[1] - edges[0]
    place = ((pl.col(name) - edges[0]) / step).floor().clip(0, len(edges) - 2)
    return place.cast(pl.Int32).alias("bin")


def _histogram(frame: pl.LazyFrame, name: str) -> dict[str, Any] | None:
    if not _has(frame, name):
        return None
    found = _edges(frame, name)
    if found is None:
        return None
    edges, ends = found
    rows = (
        frame.filter(pl.col(name).is_not_null())
        .group_by(_in_bins(name, edges))
        .agg(n=pl.len())
        .collect()
    )
    counts = dict(rows.iter_rows())
    bins = [
        {"low": edges[i], "high": edges[i + 1], "n": counts.get(i, 0)}
        for i in range(len(edges) - 1)
    ]
    return {"measure": name, "bins": bins, **ends}


def _thought(frame: pl.LazyFrame) -> dict[str, Any] | None:
    known = frame.filter(pl.col("correct").is_not_null() & pl.col("cot_tokens").is_not_null())
    found = _edges(known, "cot_tokens")
    if found is None:
        return None
    edges, _ = found
    rows = (
        known.group_by(_in_bins("cot_tokens", edges))
        .agg(right=pl.col("correct").sum(), wrong=(~pl.col("correct")).sum())
        .collect()
    )
    counts = {r[0]: r[1:] for r in rows.iter_rows()}
    bins = []
    for i in range(len(edges) - 1):
        right, wrong = counts.get(i, (0, 0))
        bins.append({"low": edges[i], "high": edges[i + 1], "right": right, "wrong": wrong})
    return {"bins": bins}


def _answers(frame: pl.LazyFrame) -> list[dict[str, Any]] | None:
    if not _has(frame, "normalized_answer"):
        return None
    given = frame.filter(pl.col("correct").is_not_null())
    rows = (
        given.group_by(answer=pl.col("normalized_answer").str.slice(0, 200))
        .agg(n=pl.len(), right=pl.col("correct").sum())
        .sort(["n", "answer"], descending=[True, False])
        .head(MOST)
        .collect()
        .to_dicts()
    )
    return rows if rows and (rows[0]["n"] > 1 or len(rows) < MOST) else None


def _coverage(frame: pl.LazyFrame) -> dict[str, Any] | None:
    if not _has(frame, "category", "capability"):
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
    down, across = names["category"][:MOST], names["capability"][:8]
    cells = [r for r in rows if r["category"] in down and r["capability"] in across]
    return {"categories": down, "capabilities": across, "cells": cells}
