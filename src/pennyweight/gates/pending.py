"""Attempts that wait for a verdict: how many a metric leaves out, and what they could change.

A check broke, a person has not answered, a judge gave nothing valid: nobody knows yet. Such an
attempt is no pass and no failure, so a gate holds only if it holds however they end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from pennyweight.catalogue import METRICS
from pennyweight.gates.policy import NORMALIZED

if TYPE_CHECKING:
    from pennyweight.gates.records import GateRecords

_FILLED = {
    "passed": (pl.Boolean, True),
    "scenario_score": (pl.Float64, 1.0),
    "impl_rate": (pl.Float64, 1.0),
    "composite_score": (pl.Float64, 1.0),
    "quality": (pl.Float64, 1.0),
}
"""The best value of each measure; the worst is 0 or False."""


def waiting(metric: str, records: GateRecords) -> int:
    """Count the attempts that a metric leaves out because nobody knows how they ended."""
    return int(records.frame.select(_mask(metric, records).sum()).item() or 0)


def settled(metric: str, records: GateRecords, *, good: bool) -> GateRecords:
    """Return the records as if all pending attempts had ended well, or badly."""
    mask = _mask(metric, records)
    frame = records.frame
    columns = [
        pl.when(mask & pl.col(name).is_null())
        .then(pl.lit(best if good else type(best)(0), dtype=dtype))
        .otherwise(pl.col(name))
        .alias(name)
        for name, (dtype, best) in _FILLED.items()
        if name in frame.columns
    ]
    if {"observed", "expected"} <= set(frame.columns):
        seen = pl.col("expected") if good else pl.lit(0, dtype=frame.schema["expected"])
        lacking = mask & pl.col("observed").is_null()
        columns.append(pl.when(lacking).then(seen).otherwise(pl.col("observed")).alias("observed"))
    return replace(records, frame=frame.with_columns(columns))


def parts_of(metric: str, records: GateRecords) -> Sequence[str]:
    """Name the metrics that another is made of."""
    if metric in records.composites:
        return [term.metric for term in records.composites[metric].terms]
    return METRICS[metric].part_names(records.options) if metric in METRICS else ()


def _mask(metric: str, records: GateRecords) -> pl.Expr:
    """Pick the attempts that a metric, or a part of it, waits for."""
    parts = parts_of(metric, records)
    if parts:
        masks = [_mask(part, records) for part in parts if part not in {NORMALIZED, metric}]
        return pl.any_horizontal(masks) if masks else pl.lit(value=False)
    if metric not in METRICS:
        return pl.lit(value=False)
    made = pl.col("status").cast(pl.String).ne_missing("error")
    inputs = METRICS[metric].inputs
    if "passed" in inputs:
        mask = made & pl.col("passed").is_null()
        if "category" in inputs:
            category = pl.col("category").str.strip_chars().str.to_lowercase()
            mask &= category.eq_missing(pl.lit("adversarial"))
        return mask
    needs = METRICS[metric].needs
    if not needs or "correct" in needs:  # an answer is right or wrong, whatever else is open
        return pl.lit(value=False)
    mask = made & _open() & pl.any_horizontal(pl.col(name).is_null() for name in needs)
    return mask & (pl.col("expected") > 0).fill_null(value=True) if "expected" in inputs else mask


def _open() -> pl.Expr:
    """Pick the attempts of which something is undecided, or which no judge has judged."""
    undecided = (pl.col("undecided").list.len() > 0).fill_null(value=False)
    return undecided | (pl.col("judge_scores").list.len() == 0).fill_null(value=False)
