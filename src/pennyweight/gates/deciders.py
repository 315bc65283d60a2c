"""The scenarios that decide a gate: those that lower the metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from pennyweight.catalogue import METRICS
from pennyweight.gates.threshold import kind_of, shown
from pennyweight.gates.verdict import Decider
from pennyweight.text.format import plural

if TYPE_CHECKING:
    from pennyweight.gates.policy import Gate
    from pennyweight.gates.records import GateRecords


def deciders(gate: Gate, records: GateRecords) -> tuple[Decider, ...]:
    """Name the tasks with the worst values, the worst first; none for what is no mean."""
    metric = "latency_mean_ms" if gate.metric == "latency_p95_ms" else gate.metric
    if gate.metric in records.composites:
        metric = "pass_rate"
    if records.values(metric) is None:
        return ()
    up = METRICS[metric].better != "lower"
    units = records.units(metric).drop_nulls("task_id").sort("value", descending=not up)
    kind = gate.kind if metric == gate.metric else kind_of(METRICS[metric])
    if METRICS[metric].range == (0, 1):
        units = units.filter(pl.col("value") < 1 if up else pl.col("value") > 0)
    elif gate.threshold:
        limit = gate.threshold.value
        units = units.filter(pl.col("value") < limit if up else pl.col("value") > limit)
    rows = units.iter_rows(named=True)
    return tuple(_said(row["task_id"], row["value"], row["tries"], metric, kind) for row in rows)


def changed(tasks: Sequence[str], old: Sequence[float], new: Sequence[float], kind: str,
            better: Sequence[float]) -> tuple[Decider, ...]:  # fmt: skip
    """Name the tasks that became worse, the worst first."""
    order = sorted((d, i) for i, d in enumerate(better) if d < 0)
    return tuple(Decider(tasks[i], f"{shown(old[i], kind)} → {shown(new[i], kind)}")
                 for _, i in order)  # fmt: skip


def _said(task: str, value: float, tries: float, metric: str, kind: str) -> Decider:
    times = f" in {plural(round(tries), 'attempt')}" if tries > 1 else ""
    if metric == "pass_rate" and value == 0:
        return Decider(task, f"did not pass{times}")
    return Decider(task, f"{metric} {shown(value, kind)}{times}")
