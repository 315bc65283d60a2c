"""What a metric needs to have a value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pennyweight.catalogue import METRICS

if TYPE_CHECKING:
    from pennyweight.scoring.scores import Group

_FURTHER_NEEDS = {"sce_normalized": "two different answers"}
"""What a metric needs although its columns are there."""

SOURCES = {
    "correct": "answer and target",
    "normalized_answer": "answer",
    "normalized_target": "target",
    "cot_tokens": "cot",
    "cot_chars": "cot",
    "step_count": "cot",
    "ra_ratio": "cot",
    "self_correcting": "cot",
    "total_tokens": "prompt_tokens and completion_tokens",
    "scenario_score": "observed",
    "quality": "a score or answers",
    "composite_score": "passed and impl_rate",
    "judges": "judge_scores",
    "judge_mean": "judge_scores",
    "judge_variance": "judge_scores",
    "judge_difference": "judge_scores",
}
"""The columns behind a measure that is not itself a column of the record."""


def why_missing(name: str, group: Group) -> str:
    """Explain why a metric has no value."""
    metric = METRICS[name]
    if metric.open_parts:
        return "name its parts with --weight, each with a value"
    if metric.parts:
        missing = [n for n in metric.parts if n not in group.estimates or group[n].value is None]
        return f"needs {', '.join(missing)}"
    if group[name].records == 0 or not metric.needs:
        return f"needs {needed_columns(name, metric.inputs)}"
    return "not defined for these records"


def needed_columns(name: str, inputs: Iterable[str]) -> str:
    """List the columns that a metric with these inputs needs."""
    columns = dict.fromkeys(SOURCES.get(n, n) for n in inputs)
    return _FURTHER_NEEDS.get(name) or " and ".join(columns)


def needs(name: str) -> str:
    """List what a metric needs, whatever the records are."""
    metric = METRICS[name]
    if metric.open_parts:
        return "weights"
    return needed_columns(name, metric.parts or metric.needs or metric.inputs)
