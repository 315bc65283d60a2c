"""Agreement of judges: Krippendorff's alpha and the mean absolute difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pennyweight.stats.interval import Floats

DRAWS = 1_000
SAME = 1e-12
"""A narrower interval has no width: resampling changed nothing, which is not certainty."""


def alpha(ratings: NDArray[np.float64]) -> float | None:
    """Return Krippendorff's alpha of interval data: units × judges, NaN where a judge did not rate.

    1 is agreement, 0 is agreement by chance; below 0 judges contradict each other. None if no unit
    was rated by two judges, or if all ratings are equal: then nothing could have been
    distinguished.

    >>> alpha(np.array([[1.0, 1.0], [2.0, 2.0], [3.0, np.nan]]))
    1.0
    """
    return _alpha(_pairable(ratings))


def alpha_interval(
    ratings: NDArray[np.float64], confidence: float = 0.95, seed: int = 0
) -> tuple[float, float] | None:
    """Return an interval of alpha by resampling units; None if alpha is None or never changes."""
    return _resampled(_pairable(ratings), _alpha, confidence, seed)


def mean_absolute_difference(ratings: NDArray[np.float64]) -> float | None:
    """Return the mean distance between two judges of the same unit, over units and pairs.

    >>> mean_absolute_difference(np.array([[0.5, 0.75], [1.0, 1.0], [0.25, np.nan]]))
    0.125
    """
    return _distance(_pairable(ratings))


def mean_absolute_difference_interval(
    ratings: NDArray[np.float64], confidence: float = 0.95, seed: int = 0
) -> tuple[float, float] | None:
    """Return an interval of the mean distance by resampling units."""
    return _resampled(_pairable(ratings), _distance, confidence, seed)


def _pairable(ratings: NDArray[np.float64]) -> Floats:
    """Keep the units that at least two judges rated."""
    table = np.asarray(ratings, dtype=np.float64)
    kept: Floats = table[(~np.isnan(table)).sum(axis=1) >= 2]
    return kept


def _alpha(table: Floats) -> float | None:
    there = ~np.isnan(table)
    values = np.where(there, table, 0.0)
    judges = there.sum(axis=1)
    total = float(judges.sum())
    if not total:
        return None
    shift = values.sum() / total  # squares of centred values lose no digits
    values = np.where(there, values - shift, 0.0)
    sums, squares = values.sum(axis=1), np.square(values).sum(axis=1)
    within = float(((judges * squares - np.square(sums)) / (judges - 1)).sum()) / total
    expected = float(total * squares.sum() - sums.sum() ** 2) / (total * (total - 1))
    if expected <= 1e-15 * max(1.0, shift**2):
        return None
    return 1 - within / expected


def _distance(table: Floats) -> float | None:
    if not len(table):
        return None
    first, second = np.triu_indices(table.shape[1], k=1)
    apart = np.abs(table[:, first] - table[:, second])
    return float(np.nanmean(apart, axis=1).mean())


def _resampled(
    table: Floats, value: Callable[[Floats], float | None], confidence: float, seed: int
) -> tuple[float, float] | None:
    centre = value(table)
    if centre is None or len(table) < 2:
        return None
    rng = np.random.default_rng(seed)
    picks = rng.integers(0, len(table), (DRAWS, len(table)))
    drawn = [x for pick in picks if (x := value(table[pick])) is not None]
    low, high = np.quantile(drawn or [centre], [(1 - confidence) / 2, (1 + confidence) / 2])
    low, high = min(float(low), centre), max(float(high), centre)
    return (low, high) if high - low > SAME else None
