"""All measures and metrics. Importing this module declares them."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Sequence

from pennyweight import measures as _measures  # noqa: F401
from pennyweight import metrics as _metrics  # noqa: F401
from pennyweight.define import (
    MEASURES,
    METRICS,
    Declaration,
    Metric,
    canonical,
    load_installed,
    metric_named,
)
from pennyweight.metrics.scores import FAMILY, declare_scores
from pennyweight.record import COLUMNS

__all__ = [
    "FAMILIES",
    "FURTHER_NEEDS",
    "MEASURES",
    "METRICS",
    "canonical",
    "chosen",
    "columns_behind",
    "declare_scores",
    "metric_named",
    "own_mark",
    "standard",
]

FAMILIES = {
    "answer": "Answers",
    "scores": "Scores",
    "calibration": "Calibration",
    "calibration_detail": "Calibration in detail",
    "confidence": "Confidence by source",
    "diversity": "Diversity",
    "reasoning": "Reasoning",
    "probes": "Probes of reasoning",
    "efficiency": "Efficiency",
    "cost": "Runs and cost",
    "repeats": "Repeated attempts",
    "scenario": "Scenarios",
    "judge": "Judges",
    "attempts": "Attempts",
}
"""The families in display order, with their titles."""

FURTHER_NEEDS = {
    "sce_normalized": "two different answers",
    "truncation_aoc": "all tiers of a probe in one group, from run --probe truncation",
    **dict.fromkeys(
        ("tier_uplift", "pass_rate_variance", "cost_variance", "cost_delta"),
        "several tiers in one group",
    ),
    "judge_pass_rate_corrected": "labels of records drawn at random: review RUN --queue random",
    "overthinking_tokens": "two correct attempts at a task, such as in two tiers",
    "usr_math": "an equation that can be read",
    "citation_precision": "citations such as [1]",
    "citation_recall": "citations such as [1]",
    "usr_rag_scored": "a scorer named usr_rag",
}
"""What a metric needs in addition to its columns."""

_SOURCES = {
    "correct": "answer and target",
    "ra_ratio": "cot",
    "scenario_score": "observed",
    "quality": "a score or answers",
    "equation_check": "a chain of thought (cot)",
    "support_check": "context and a reply",
    "support_verdict": "context and a reply",
    "logprob_confidence": "logprobs",
    "stated_confidence": "a stated confidence",
    "label": "answer",
    "answer_class": "answer",
}
"""The columns behind a measure, where they are not simply its inputs."""


def chosen(names: list[str] | None, scores: Sequence[str] = ()) -> list[Metric]:
    """Return metrics by name, in the order of the families; all of them if none is named.

    Of the metrics of scores, all means those in `scores`: others are of other records.
    """
    every = [*standard(), *scores]
    picked = [metric_named(n) for n in names or every]
    order = list(FAMILIES)
    return sorted(picked, key=lambda m: order.index(m.family) if m.family in order else len(order))


def standard() -> list[str]:
    """Return the names of the metrics that any records have, which are all but those of scores."""
    return [name for name, metric in METRICS.items() if metric.family != FAMILY]


def own_mark() -> str:
    """Return a hash of the user's metrics and measures that are loaded; empty without any.

    >>> own_mark()
    ''
    """
    declared: list[Declaration] = [*MEASURES.values(), *METRICS.values()]
    own = [(one.name, _source(one)) for one in declared if one.is_users]
    return hashlib.blake2b(repr(own).encode(), digest_size=8).hexdigest() if own else ""


def _source(declared: Declaration) -> str:
    try:
        return inspect.getsource(declared.function)
    except OSError:  # it was typed in
        return ""


def columns_behind(names: Iterable[str]) -> list[str]:
    """Return the columns of a record behind inputs: those that a measure is computed from.

    >>> columns_behind(["judges", "judge_mean", "cost_usd"])
    ['judge_scores', 'cost_usd']
    """
    recorded = {column.name for column in COLUMNS}

    def behind(name: str) -> str:
        derived = name in MEASURES and name not in recorded
        if derived and MEASURES[name].family == FAMILY:
            return f"the score {name}"
        if name in _SOURCES or not derived:
            return _SOURCES.get(name, name)
        return " and ".join(dict.fromkeys(map(behind, MEASURES[name].inputs)))

    return list(dict.fromkeys(map(behind, names)))


load_installed("pennyweight.metrics")
