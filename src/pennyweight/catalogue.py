"""All measures and metrics. Importing this module declares them."""

from __future__ import annotations

from pennyweight import measures as _measures  # noqa: F401
from pennyweight import metrics as _metrics  # noqa: F401
from pennyweight.define import MEASURES, METRICS, Metric, metric_named

__all__ = ["FAMILIES", "MEASURES", "METRICS", "chosen", "metric_named"]

FAMILIES = {
    "answer": "Answers",
    "calibration": "Calibration",
    "diversity": "Diversity",
    "reasoning": "Reasoning",
    "efficiency": "Efficiency",
    "cost": "Runs and cost",
    "scenario": "Scenarios",
    "judge": "Judges",
    "attempts": "Attempts",
}
"""The families in display order, with their titles."""


def chosen(names: list[str] | None) -> list[Metric]:
    """Return metrics by name, in the order of the families; all of them if none is named."""
    picked = [metric_named(n) for n in names] if names else list(METRICS.values())
    order = list(FAMILIES)
    return sorted(picked, key=lambda m: order.index(m.family) if m.family in order else len(order))
