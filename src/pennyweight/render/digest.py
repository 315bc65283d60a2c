"""The digest of records: scores, the numbers behind each chart, and the most telling records.

It is plain data, so that a report, a page and a store's cache can all hold it.
"""

from __future__ import annotations

import math
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pennyweight.catalogue import chosen
from pennyweight.errors import InputError, UsageError
from pennyweight.render.bins import edges_of, histogram, in_bins
from pennyweight.render.copied import copied
from pennyweight.render.telling import telling
from pennyweight.scoring.per_task import PerTask
from pennyweight.scoring.pipeline import Work
from pennyweight.scoring.scores import json_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pennyweight.scoring.pipeline import Measured
    from pennyweight.scoring.scores import Group

    Tell = Callable[[str, int], None]

VERSION = 3
"""Changes when a digest that was kept can no longer be read."""
HEADLINES = ("accuracy", "pass_rate", "behavior_coverage", "impl_rate_mean")
"""The metrics that may stand for a whole run, the first that has a value."""
SIDES = ("run", "subject", "tier")
MOST = 12
SPELT = 12
"""Spellings of one answer that are told."""


def digest(
    sources: Sequence[Any],
    *,
    confidence: float = 0.95,
    take: Callable[[pl.LazyFrame], None] | None = None,
    tell: Tell | None = None,
) -> dict[str, Any]:
    """Score records and gather what charts and pages show.

    `take` is given the measured records, for instance to keep them, before they are gone.
    `tell` is told what is being done, and how many records are done with.
    """
    if "-" in sources:
        raise UsageError("Standard input can be read only once; write it to a file and name that.")
    say: Tell = tell or (lambda *_: None)
    with copied(sources, partial(say, "read")) as held:
        return _digest(held, confidence, take, say)


def _digest(
    sources: Sequence[Any],
    confidence: float,
    take: Callable[[pl.LazyFrame], None] | None,
    say: Tell,
) -> dict[str, Any]:
    with _measured(sources, confidence, partial(say, "measure")) as (held, frame):
        say("score", 0)
        whole = held.scored([])[0]
        by = [n for n in SIDES if _distinct(frame, n) > 1]
        headline = _headline(whole)
        groups = held.scored(by) if by else []
        say("compare", 0)
        paired = comparison(sources, confidence) if len(groups) > 1 else None
        found = {
            "version": VERSION,
            "confidence": confidence,
            "by": by,
            "headline": headline,
            "whole": _group(whole),
            "sides": [_group(g) for g in groups],
            "left_out": held.measured.left_out,
            "comparison": paired,
            "charts": {
                "sides": _estimates(groups, headline) if len(groups) > 1 else None,
                "differences": differences(paired, headline),
                "frontier": _frontier(groups, headline),
                "categories": _categories(held, frame, headline),
                "reliability": _reliability(frame),
                "thought": _thought(frame),
                "answers": _answers(frame),
                "latency": histogram(frame, "latency_ms"),
                "tokens": histogram(frame, "total_tokens"),
                "coverage": _coverage(frame),
            },
            "telling": telling(frame),
            "failures": _failures(frame),
        }
        if take:
            take(frame)
    return found


def comparison(
    sources: Sequence[Any], confidence: float, by: Sequence[str] = ()
) -> dict[str, Any] | None:
    """Compare the sides on the same tasks, in words and numbers; None where that cannot be."""
    try:
        return compared(sources, confidence, by)
    except (UsageError, InputError):
        return None


def compared(sources: Sequence[Any], confidence: float, by: Sequence[str]) -> dict[str, Any]:
    """Compare the sides on the same tasks, in words and numbers, or say why that cannot be."""
    from pennyweight.render.sentences import sentences  # noqa: PLC0415
    from pennyweight.scoring.comparison import compare  # noqa: PLC0415

    found = compare(list(sources), by=list(by), confidence=confidence)
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
            "pair": [p["b"], p["a"]],
            "value": p["difference"],
            "low": p["interval"][0],
            "high": p["interval"][1],
            "n": p["tasks"],
        }
        for p in pairs
        if p["difference"] is not None and p["interval"]
    ]
    return {"metric": chosen, "rows": rows[:40]} if rows else None


@dataclass(frozen=True, slots=True)
class _Held:
    """Measured records, to be scored by one column and by another."""

    work: Work
    measured: Measured

    def scored(self, by: Sequence[str], metric: str | None = None) -> list[Group]:
        """Score the records of each group; every metric unless one is named."""
        work = replace(self.work, metrics=chosen([metric])) if metric else self.work
        return list(work.score(self.measured.frame, by)[0])


@contextmanager
def _measured(
    sources: Sequence[Any], confidence: float, progress: Callable[[int], None]
) -> Iterator[tuple[_Held, pl.LazyFrame]]:
    """Measure everything once, with each measured record in a file that is gone afterwards."""
    held = list(sources)
    also = (*SIDES, "category")
    work = Work.of(held, [], None, confidence, 0, None, {}, everything=True, also=also)
    with tempfile.TemporaryDirectory(prefix="pennyweight-digest-") as folder:
        path = Path(folder) / "records.parquet"
        with PerTask.open(path) as sink:
            measured = work.measure(held, sink=sink, progress=progress)
            if sink:
                sink.finish(measured.doubles)
        if not path.exists():
            raise UsageError("There are no records yet, so there is nothing to report.")
        yield _Held(work, measured), pl.scan_parquet(path)


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


def _categories(held: _Held, frame: pl.LazyFrame, metric: str | None) -> dict[str, Any] | None:
    if metric is None or not 2 <= _distinct(frame, "category") <= 200:
        return None
    groups = sorted(held.scored(["category"], metric), key=lambda g: -g.records)[:MOST]
    return _estimates(sorted(groups, key=lambda g: str(g.group["category"])), metric)


def _reliability(frame: pl.LazyFrame) -> list[dict[str, Any]] | None:
    if not _has(frame, "prob_correct", "correct"):
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
        {"low": r["bin"] / 10, "high": (r["bin"] + 1) / 10, **{k: r[k] for k in r if k != "bin"}}
        for r in rows.to_dicts()
    ] or None


def _thought(frame: pl.LazyFrame) -> dict[str, Any] | None:
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
    bins = []
    for i in range(len(edges) - 1):
        right, wrong = counts.get(i, (0, 0))
        bins.append({"low": edges[i], "high": edges[i + 1], "right": right, "wrong": wrong})
    return {"bins": bins}


def _answers(frame: pl.LazyFrame) -> list[dict[str, Any]] | None:
    if not _has(frame, "normalized_answer", "answer"):
        return None
    given = frame.filter(pl.col("correct").is_not_null())
    rows = (
        given.group_by(answer=pl.col("normalized_answer").str.slice(0, 200))
        .agg(
            n=pl.len(),
            right=pl.col("correct").sum(),
            spelt=pl.col("answer").unique(maintain_order=True).head(SPELT + 1),
        )
        .sort(["n", "answer"], descending=[True, False])
        .head(MOST)
        .collect()
        .to_dicts()
    )
    for row in rows:  # too many spellings, or too long ones, make no address
        long = len(row["spelt"]) > SPELT or sum(len(s or "") for s in row["spelt"]) > 1_000
        row["spelt"] = [] if long else row["spelt"]
    return rows if rows and (rows[0]["n"] > 1 or len(rows) < MOST) else None


def _failures(frame: pl.LazyFrame) -> list[dict[str, Any]]:
    """Give the commonest reasons why attempts could not be made."""
    if not _has(frame, "status", "error"):
        return []
    return (
        frame.filter(pl.col("status") == "error")
        .group_by(error=pl.col("error").str.slice(0, 600))
        .agg(n=pl.len())
        .sort(["n", "error"], descending=[True, False])
        .head(3)
        .collect()
        .to_dicts()
    )


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
