"""Attempts without a verdict or a record: how many a metric leaves out, what they could change.

A check raised an error, a review is missing, or a judge's reply was invalid. Such an attempt has
neither passed nor failed, so a gate passes only if it passes whatever their verdicts will be. An
attempt that was not made, or ended in an error, does not prevent a failure that even its best
possible result would leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from pennyweight.catalogue import METRICS
from pennyweight.gates.policy import NORMALIZED
from pennyweight.gates.records import GateRecords
from pennyweight.scoring import missing
from pennyweight.scoring.groups import GROUP
from pennyweight.stats.resample import CLUSTER

_BEST: dict[str, Any] = {
    **{name: best for name, (_, best) in missing.BEST.items()},
    "correct": True,
    "truncated": False,
    "cut_in_thought": False,
    **dict.fromkeys(("cost_usd", "judge_cost_usd", "latency_ms", "ttft_ms"), 0.0),
    **dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), 0),
}
"""The best value that an attempt can have: nobody is paid or has finished before the call."""
_COUNTED = {"category": "adversarial", "expected": 1}
"""What an attempt must have in columns that only say whether it counts."""


def waiting(metric: str, records: GateRecords) -> int:
    """Count the attempts that a metric leaves out for lack of a verdict."""
    return int(records.frame.select(_mask(metric, records).sum()).item() or 0)


def settled(metric: str, records: GateRecords, *, good: bool) -> GateRecords:
    """Return the records as if all attempts without a verdict had ended well, or badly."""
    return replace(records, frame=missing.settled(records.frame, _mask(metric, records), good=good))


def ended(records: GateRecords, *, good: bool) -> GateRecords:
    """Return the records as if all attempts that ended in an error had ended well, or badly."""
    if not records.errors:
        return records
    failed = pl.col("status").cast(pl.String).eq_missing("error")
    frame = missing.settled(records.frame, failed, good=good)
    if "correct" in frame.columns:
        right = pl.when(failed).then(pl.lit(good)).otherwise(pl.col("correct"))
        frame = frame.with_columns(right.alias("correct"))
    ok = pl.lit("ok").cast(frame.schema["status"])
    status = pl.when(failed).then(ok).otherwise(pl.col("status")).alias("status")
    return replace(records, frame=frame.with_columns(status))


def at_best(metric: str, records: GateRecords, *, absent: int, errors: bool) -> GateRecords | None:
    """Return the records as if attempts that are missing had ended as well as possible.

    These are `absent` attempts without a record and, with `errors`, those that ended in an error.
    None where no result is the best one: of a calibration error, say, or of a user's metric.
    """
    columns = _columns_behind(metric, records)
    by_task = metric in METRICS and METRICS[metric].over == "tasks"
    if columns is None or (absent and (by_task or records.weighted)):
        return None
    frame = records.frame
    best = {name: _BEST[name] for name in columns & set(frame.columns) & _BEST.keys()}
    counted = {name: _COUNTED[name] for name in columns & _COUNTED.keys()}
    ok = pl.lit("ok").cast(frame.schema["status"])
    if errors:
        failed = pl.col("status").cast(pl.String) == "error"
        filled = (
            pl.when(failed & pl.col(name).is_null())
            .then(pl.lit(value, dtype=frame.schema[name]))
            .otherwise(pl.col(name))
            .alias(name)
            for name, value in best.items()
        )
        frame = frame.with_columns(*filled)
        status = pl.when(failed).then(ok).otherwise(pl.col("status"))
        frame = frame.with_columns(status.alias("status"))
    if absent:
        cells = {**best, **counted}
        values = (pl.lit(x, dtype=frame.schema[n]).alias(n) for n, x in cells.items())
        rows = frame.clear(absent).with_columns(
            *values, ok.alias("status"), pl.lit(0, dtype=frame.schema[GROUP]).alias(GROUP)
        )
        own = pl.int_range(absent, dtype=pl.UInt64).cast(frame.schema[CLUSTER])
        frame = pl.concat([frame, rows.with_columns(own.alias(CLUSTER))])
    return replace(records, frame=frame, remaining=0)


def _columns_behind(metric: str, records: GateRecords) -> set[str] | None:
    """Return the columns that a metric reads if each has a best value; else None."""
    if metric in records.composites:
        terms = records.composites[metric].terms
        parts = [(t.metric.replace(NORMALIZED, "latency_p95_ms"), t.less) for t in terms]
    elif metric in METRICS:
        names = METRICS[metric].part_names(records.options)
        parts = [(name, name == "latency_p95_ms") for name in names]
    else:
        return None
    if not parts:
        declared = METRICS[metric]
        read = set(declared.inputs)
        known = read <= {*_BEST, *_COUNTED, "status"}
        return read if known and declared.better and not declared.is_users else None
    found: set[str] = set()
    for name, less in parts:
        inner = _columns_behind(name, records) if name != metric else None
        if inner is None or less != (METRICS[name].better == "lower"):
            return None
        found |= inner
    return found


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
    return missing.undecided(METRICS[metric])
