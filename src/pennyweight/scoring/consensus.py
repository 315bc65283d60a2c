"""The formulas of judging: one weighted score from items, one consensus from several judges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pennyweight.suite.rubric import Rubric

_SLACK = 1e-9
"""Tolerance for rounding errors in sums of fractions."""
CLOSE = 0.005
"""A claimed score that differs by less than this is the score, rounded."""


def weighted_score(rubric: Rubric, scores: Mapping[str, float | None]) -> float | None:
    """Weigh the categories: Σ weight · (points earned / points possible) / Σ weight.

    An item that does not apply (null) counts neither as earned nor as possible. A category without
    applicable items is left out; if nothing applies there is no score.

    >>> from pennyweight.suite.rubric import Category, Item, Rubric
    >>> three = [Category(n, w, (Item(n, n),)) for n, w in (("a", 2), ("b", 2), ("c", 1))]
    >>> weighted_score(Rubric("r", tuple(three)), {"a": 1.0, "b": 0.75, "c": 0.0})
    0.7
    """
    total = weight = 0.0
    for category in rubric.categories:
        apply = [item for item in category.items if scores[item.id] is not None]
        if apply:
            earned = math.fsum(scores[item.id] or 0.0 for item in apply)
            total += category.weight * earned / math.fsum(item.points for item in apply)
            weight += category.weight
    return total / weight if weight else None


def passes(score: float | None, mark: float) -> bool | None:
    """Return whether a score passes; None without a score."""
    return None if score is None else score >= mark - _SLACK


def consensus(
    scores: Sequence[float],
    confidences: Sequence[float | None] = (),
    rule: Literal["mean", "confidence"] = "mean",
) -> float | None:
    """Combine scores: their mean, or their mean weighted by confidence.

    A judge without a stated confidence has weight 1. If all confidences are 0, the plain mean is
    used.

    >>> round(consensus((0.8, 0.85, 0.75), (0.9, 0.7, 0.8), "confidence"), 6)
    0.797917
    """
    if not scores:
        return None
    weights = [1.0 if c is None else c for c in confidences] or [1.0] * len(scores)
    if rule == "mean" or not math.fsum(weights):
        weights = [1.0] * len(scores)
    products = (s * w for s, w in zip(scores, weights, strict=True))
    return math.fsum(products) / math.fsum(weights)


def disagree(scores: Sequence[float], most: float) -> bool:
    """Whether the range of the scores exceeds `most`."""
    return len(scores) > 1 and max(scores) - min(scores) > most + _SLACK


def differs(
    score: float | None,
    passed: bool | None,
    claimed_score: float | None,
    claimed_passed: bool | None,
) -> bool:
    """Whether the score that a judge claims differs from the score of its items."""
    if claimed_score is not None and (score is None or abs(claimed_score - score) > CLOSE + _SLACK):
        return True
    return claimed_passed is not None and claimed_passed != passed
