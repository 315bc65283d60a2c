"""Attempts without a verdict: how many a metric leaves out, and what they could change.

A check raised an error, a review is missing, or a judge's reply was invalid. Such an attempt has
neither passed nor failed, so a gate passes only if it passes whatever their verdicts will be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from pennyweight.catalogue import METRICS
from pennyweight.gates.policy import NORMALIZED
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
    """Count the attempts that a metric leaves out for lack of a verdict."""
    return int(records.frame.select(_mask(metric, records).sum()).item() or 0)


def settled(metric: str, records: GateRecords, *, good: bool) -> GateRecords:
    """Return the records as if all attempts without a verdict had ended well, or badly."""
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


def _mask(metric: str, records: GateRecords) -> pl.Expr:
    """Select the attempts without a verdict on which a metric, or a part of it, depends."""
    never = pl.lit(value=False)
    if metric in records.composites:
        parts: Sequence[str] = [term.metric for term in records.composites[metric].terms]
    elif metric in METRICS:
        parts = METRICS[metric].part_names(records.options)
    else:
        return never
    if parts:
        masks = [_mask(part, records) for part in parts if part not in {NORMALIZED, metric}]
        return pl.any_horizontal(never, *masks)
    scored = pl.col("status").cast(pl.String).ne_missing("error")
    inputs = METRICS[metric].inputs
    if "passed" in inputs:
        mask = scored & pl.col("passed").is_null()
        if "category" in inputs:
            category = pl.col("category").str.strip_chars().str.to_lowercase()
            mask &= category.eq_missing(pl.lit("adversarial"))
        return mask
    needs = METRICS[metric].needs
    if not needs or "correct" in needs:  # an answer is right or wrong, whatever else is open
        return never
    undecided = (pl.col("undecided").list.len() > 0).fill_null(value=False)
    undecided |= (pl.col("judge_scores").list.len() == 0).fill_null(value=False)
    mask = scored & undecided & pl.any_horizontal(pl.col(name).is_null() for name in needs)
    return mask & (pl.col("expected") > 0).fill_null(value=True) if "expected" in inputs else mask
