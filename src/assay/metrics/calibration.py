"""Whether stated probabilities match how often the answer is right."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from assay.define import metric
from assay.stats.resample import ResampledSums

if TYPE_CHECKING:
    from numpy.typing import NDArray


@metric(formula="(1/M) Σ (p_i − correct_i)²", range=(0, 1), better="lower", spec="Zeta Reason 3.1")
def brier(prob_correct: pl.Expr, correct: pl.Expr) -> pl.Expr:
    """Mean squared difference between the stated probability and being right.

    >>> evaluate(brier, prob_correct=[1.0, 0.5, None], correct=[True, False, True])
    0.125
    """
    return ((prob_correct - correct.cast(pl.Float64)) ** 2).mean()


def _gaps(prob_correct: pl.Expr, correct: pl.Expr, bins: int) -> list[pl.Expr]:
    """For each bin the sum of correct − p over its records."""
    edges = [k / bins for k in range(bins + 1)]
    gap = correct.cast(pl.Float64) - prob_correct
    return [
        gap.filter((prob_correct >= low) & ((prob_correct < high) | (high == 1.0))).sum()
        for low, high in pairwise(edges)
    ]


def _ece_sums(prob_correct: pl.Expr, correct: pl.Expr, *, bins: int) -> list[pl.Expr]:
    used = (prob_correct.is_not_null() & correct.is_not_null()).sum()
    return [used, *_gaps(prob_correct, correct, bins)]


def _ece_of(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        value: NDArray[np.float64] = np.abs(sums[:, 1:]).sum(axis=1) / sums[:, 0]
    return value


@metric(
    formula="Σ_k |S_k|/M · |acc_k − conf_k|",
    range=(0, 1),
    better="lower",
    interval=ResampledSums(
        _ece_sums,
        _ece_of,
        method="basic",
        text="bootstrap over tasks (basic), resampling the sums of each bin",
    ),
    spec="Zeta Reason 3.2",
)
def ece(prob_correct: pl.Expr, correct: pl.Expr, *, bins: int = 10) -> pl.Expr:
    """Expected calibration error: the mean gap between confidence and accuracy, bin by bin.

    The bins are [k/K, (k+1)/K), the last one closed.

    >>> evaluate(ece, prob_correct=[1.0, 1.0, 0.25, 0.25], correct=[True, True, True, False])
    0.125
    """
    used = (prob_correct.is_not_null() & correct.is_not_null()).sum()
    gaps = pl.sum_horizontal(gap.abs() for gap in _gaps(prob_correct, correct, bins))
    return pl.when(used > 0).then(gaps / used)
