"""Whether stated probabilities match how often the answer is right."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from assay.define import metric
from assay.errors import UsageError
from assay.stats.interval import folded_excess, z_quantile
from assay.stats.resample import ResampledSums

if TYPE_CHECKING:
    from assay.stats.resample import Draws, Ends


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


def _ece_ends(draws: Draws) -> Ends:
    """Give an interval that also holds for a model that is well calibrated.

    A sample's gaps are never all 0, so their sum is too large on average, the more so the nearer
    the true gaps are to 0. The lower end takes that out, at gaps one standard error smaller than
    those seen. (Quantiles of resampled values miss a calibration error of 0 every time.)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = draws.resampled[:, 1:] / draws.resampled[:, :1]
        seen = np.abs(draws.totals[1:] / draws.totals[0])
    gaps = gaps[np.isfinite(gaps).all(axis=1)]
    spread = gaps.std(axis=0)
    error = max(np.sqrt(np.square(spread).sum()), np.abs(gaps).sum(axis=1).std())
    half = z_quantile(draws.confidence) * error
    excess = folded_excess(np.maximum(0, seen - spread), spread).sum()
    return draws.value - excess - half, draws.value + half


@metric(
    formula="Σ_k |S_k|/M · |acc_k − conf_k|",
    range=(0, 1),
    better="lower",
    interval=ResampledSums(
        _ece_sums,
        _ece_ends,
        text="bootstrap over tasks, resampling the sums of each bin; bias taken out below",
    ),
    spec="Zeta Reason 3.2",
)
def ece(prob_correct: pl.Expr, correct: pl.Expr, *, bins: int = 10) -> pl.Expr:
    """Expected calibration error: the mean gap between confidence and accuracy, bin by bin.

    The bins are [k/K, (k+1)/K), the last one closed.

    >>> evaluate(ece, prob_correct=[1.0, 1.0, 0.25, 0.25], correct=[True, True, True, False])
    0.125
    """
    if not 1 <= bins <= 10_000:
        raise UsageError(f"bins is {bins}; there must be at least 1, and at most 10,000.")
    used = (prob_correct.is_not_null() & correct.is_not_null()).sum()
    gaps = pl.sum_horizontal(gap.abs() for gap in _gaps(prob_correct, correct, bins))
    return pl.when(used > 0).then(gaps / used)
