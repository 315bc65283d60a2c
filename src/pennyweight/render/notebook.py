"""Results in a notebook: tables with intervals, small charts, records that unfold.

Everything that a model or a file may have written is escaped, and there is no script, so a hostile
reply is shown as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pennyweight.catalogue import METRICS
from pennyweight.gates.verdict import Verdict
from pennyweight.render.comparison import adjusted_p, words
from pennyweight.render.format import difference_cells, estimate_cells
from pennyweight.render.page import environment
from pennyweight.render.scores import more_line, shown
from pennyweight.render.verdict import verdict_view
from pennyweight.render.view import spark
from pennyweight.scoring.comparison import Comparison
from pennyweight.scoring.estimates import Estimate
from pennyweight.scoring.pooling import pooled_words
from pennyweight.scoring.scores import Group, Scores
from pennyweight.text.format import level

if TYPE_CHECKING:
    from jinja2 import Template

MAX_GROUPS = 12
"""Groups that stand side by side; more would not fit."""


@cache
def _template() -> Template:
    return environment().get_template("notebook.html")


def html(result: object) -> str:
    """Write a result of `score`, `compare`, `gate` or `plan` as HTML."""
    if isinstance(result, Scores):
        return scores_html(result)
    if isinstance(result, Comparison):
        return _template().render(comparison=_comparison_view(result))
    if isinstance(result, Verdict):
        return _template().render(verdict=verdict_view(result))
    return _template().render(text=repr(result))


def scores_html(scores: Scores, notes: Sequence[str] = ()) -> str:
    """Write scores, with notes on their records."""
    return _template().render(scores=_scores_view(scores), notes=notes)


def run_html(
    facts: str,
    made: str,
    scores: Scores | None,
    records: Sequence[Mapping[str, Any]],
    of: int,
    notes: Sequence[str],
) -> str:
    """Write a run: its scores, and the first of its records, each of which unfolds."""
    view = {"facts": facts, "made": made, "records": records, "of": of}
    found = _scores_view(scores) if scores is not None and scores.groups else None
    return _template().render(run=view, scores=found, notes=notes)


def _scores_view(scores: Scores) -> dict[str, Any]:
    if not scores.groups:
        return {"groups": [], "rows": [], "title": "", "more": ["There are no records."]}
    names, groups = shown(scores, every=False), scores.groups[:MAX_GROUPS]
    more = more_line(scores, names, "to_polars()")
    if len(scores.groups) > MAX_GROUPS:
        more.append(f"{len(scores.groups) - MAX_GROUPS:,} more groups; to_polars() has them.")
    return {
        "by": ", ".join(groups[0].group),
        "groups": [_head(g) for g in groups],
        "pooled": [pooled_words(g.pooled) for g in groups] if any(g.group for g in groups) else [],
        "records": [f"{g.records:,}" for g in groups],
        "errors": [f"{g.errors:,}" for g in groups] if any(g.errors for g in groups) else None,
        "rows": [_row(name, [group[name] for group in groups]) for name in names],
        "title": f"{level(scores.confidence)} confidence intervals are shown below the values.",
        "more": more,
    }


def _head(group: Group) -> str:
    """Write the head of a column of values."""
    if group.group:
        return " / ".join(map(_value, group.group.values()))
    return pooled_words(group.pooled) or "value"


def _value(value: Any) -> str:
    return "—" if value is None else str(value)


def _row(name: str, found: Sequence[Estimate]) -> dict[str, Any]:
    texts = [estimate_cells(name, e, narrow=True, others=found) for e in found]
    metric = METRICS.get(name)
    sparks = [spark(metric, e) if metric else None for e in found]
    cells = [
        {"value": value, "interval": interval, "spark": drawn, "skewed": e.skewed}
        for (value, interval), drawn, e in zip(texts, sparks, found, strict=True)
    ]
    return {"name": name, "summary": metric.summary if metric else "", "cells": cells}


def _comparison_view(comparison: Comparison) -> dict[str, Any]:
    by_metric: dict[str, float] = {}
    for pair in comparison.pairs:
        numbers = (pair.low, pair.high, pair.difference)
        widest = max((abs(x) for x in numbers if x is not None), default=0.0)
        by_metric[pair.metric] = max(by_metric.get(pair.metric, 0.0), widest)
    rows = []
    for pair in comparison.pairs:
        value, interval = difference_cells(pair.metric, pair.difference, pair.low, pair.high)
        rows.append(
            {
                "sides": f"{pair.b} − {pair.a}",
                "metric": pair.metric,
                "value": value,
                "interval": interval,
                "p": adjusted_p(pair, comparison.level) if pair.p_adjusted is not None else "",
                "tasks": f"{pair.tasks:,}",
                "spark": _around_zero(pair.difference, pair.low, pair.high, by_metric[pair.metric]),
            }
        )
    return {"rows": rows, "words": words(comparison)}


def _around_zero(
    value: float | None, low: float | None, high: float | None, widest: float
) -> dict[str, float] | None:
    """Place a difference on a track with 0 in its middle."""
    if value is None or not widest:
        return None
    at, start, end = (48 + 44 * (value if x is None else x) / widest for x in (value, low, high))
    return {"at": at, "low": start, "high": end}
