"""The numbers behind the charts of reasoning: confidence by its source, and what thinking buys."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from pennyweight.scoring.chart_data import has, in_bins, most, row
from pennyweight.scoring.chart_types import Bin, ChartRow, RowChart, SourceBins
from pennyweight.scoring.scores import Group

_SOURCES = {"stated": "stated_confidence", "log-probabilities": "logprob_confidence"}
_TASK = ("run", "subject", "tier", "task_id")


def confidence_sources(frame: pl.LazyFrame) -> list[SourceBins] | None:
    """Compare each source of confidence with the share of right answers, in ten bins.

    None with fewer than two sources: then the chart of stated probabilities is enough.
    """
    if not has(frame, "correct"):
        return None
    found: list[SourceBins] = []
    for name, column in _SOURCES.items():
        if has(frame, column):
            found += _bins(frame, name, pl.col(column))
    if has(frame, "task_id", "answer_class"):
        key = [name for name in _TASK if has(frame, name)]
        attempts = pl.len().over(key)
        agreement = pl.len().over([*key, "answer_class"]) / attempts
        found += _bins(frame, "agreement of repeats", pl.when(attempts > 1).then(agreement))
    return found if len(found) > 1 else None


def _bins(frame: pl.LazyFrame, source: str, said: pl.Expr) -> list[SourceBins]:
    rows = (
        frame.filter(pl.col("status").ne_missing("error") if has(frame, "status") else pl.lit(True))
        .select(said.alias("said"), "correct")
        .drop_nulls()
        .group_by(in_bins("said", [k / 10 for k in range(11)]))
        .agg(n=pl.len(), said=pl.col("said").mean(), right=pl.col("correct").mean())
        .sort("bin")
        .collect()
    )
    bins: list[Bin] = [
        {"low": k / 10, "high": (k + 1) / 10, "n": n, "said": said, "right": right}
        for k, n, said, right in rows.iter_rows()
    ]
    return [{"source": source, "bins": bins}] if bins else []


def thinking(groups: Sequence[Group], metric: str | None) -> RowChart | None:
    """Return the quality of each side with its output tokens and dollars, where sides think."""
    rows: list[ChartRow] = []
    for group in most(groups, metric) if metric is not None else ():
        found, tokens = row(group, metric or ""), group.estimates["completion_tokens_mean"].value
        cost = group.estimates["cost_usd_mean"].value
        if found and isinstance(tokens, float) and math.isfinite(tokens):
            rows.append({**found, "tokens": tokens})
            if isinstance(cost, float) and math.isfinite(cost):
                rows[-1]["cost"] = cost
    thinks = any(group.estimates["thinking_share"].value for group in groups)
    if metric is None or len(rows) < 2 or not thinks:
        return None
    return {"metric": metric, "rows": rows}
