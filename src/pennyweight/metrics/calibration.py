"""Metrics of calibration: whether stated probabilities match the share of correct answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pennyweight.define import metric
from pennyweight.errors import UsageError
from pennyweight.metrics.sums import add
from pennyweight.stats.interval import Floats, folded_excess, t_quantile, z_quantile
from pennyweight.stats.resample import (
    CLUSTER,
    Draws,
    Ends,
    Linearised,
    ResampledSums,
    Sample,
    smoothed_variance,
)


def _squares(prob_correct: pl.Expr, correct: pl.Expr) -> pl.Expr:
    return (prob_correct - correct.cast(pl.Float64)) ** 2


def _least_variance(prob_correct: pl.Expr, correct: pl.Expr) -> pl.Expr:
    """Return the lower bound of the variance, used when all answers are correct or none is."""
    square = _squares(prob_correct, correct)
    turned = pl.when(square.is_not_null()).then((1 - 2 * prob_correct) ** 2)
    hits = pl.when(square.is_not_null()).then(correct.cast(pl.Float64)).sum()
    return turned.mean() * smoothed_variance(hits, square.count()) / square.count()


@metric(
    title="Brier score",
    formula="(1/M) Σ (p_i − correct_i)²",
    range=(0, 1),
    better="lower",
    interval=Linearised(_squares, least=_least_variance, text="t, clustered by task"),
    spec="Zeta Reason 3.1",
)
def brier(prob_correct: pl.Expr, correct: pl.Expr) -> pl.Expr:
    """Brier score: the mean squared difference between the stated probability and the outcome.

    The outcome is 1 for a correct answer and 0 for a wrong one.

    >>> evaluate(brier, prob_correct=[1.0, 0.5, None], correct=[True, False, True])
    0.125
    """
    return _squares(prob_correct, correct).mean()


def sum_by_bin(prob_correct: pl.Expr, values: pl.Expr, bins: int) -> list[pl.Expr]:
    """Sum values within each bin."""
    edges = [k / bins for k in range(bins + 1)]
    return [
        pl.when((prob_correct >= low) & ((prob_correct < high) | (high == 1.0))).then(values).sum()
        for low, high in pairwise(edges)
    ]


def bin_values(prob_correct: pl.Expr, correct: pl.Expr, *, bins: int) -> list[pl.Expr]:  # noqa: ARG001
    """Return what is summed by bin: the gap, whether it counts, and whether it is a hit."""
    hit = correct.cast(pl.Float64)
    used = (prob_correct.is_not_null() & correct.is_not_null()).cast(pl.Float64)
    return [hit - prob_correct, used, pl.when(used > 0).then(hit)]


def bin_of(prob_correct: pl.Expr, correct: pl.Expr, *, bins: int) -> tuple[pl.Expr, int]:  # noqa: ARG001
    """Return the bin of each record, and the number of bins."""
    edges = [(prob_correct >= k / bins).cast(pl.UInt32) for k in range(1, bins)]
    return pl.sum_horizontal(pl.lit(0, dtype=pl.UInt32), *edges), bins


def _ece_ends(draws: Draws) -> Ends:
    """Return an interval that also holds for a well-calibrated model.

    The gaps of a sample are never all 0, so their sum is biased upwards, the more so the closer the
    true gaps are to 0. The lower end subtracts this bias, computed at gaps one standard error
    smaller than the observed ones. (Quantiles of resampled values always miss a calibration error
    of 0.) A bin whose records all agree gets the spread of one additional hit and one additional
    miss. The truth does not depend on the estimate: `ece_debiased` has the same interval.
    """
    gaps, sizes, hits = np.split(draws.totals, 3)
    drawn, counts, _ = np.split(draws.resampled, 3, axis=1)
    used = sizes.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = drawn / counts.sum(axis=1, keepdims=True)
    drawn = drawn[np.isfinite(drawn).all(axis=1)]
    rate = (hits + 1) / (sizes + 2)
    apart = np.minimum(draws.tasks / used, 1.0)
    least = np.sqrt(sizes * rate * (1 - rate) / apart) / used
    spread = np.maximum(drawn.std(axis=0), least)
    error = max(np.sqrt(np.square(spread).sum()), np.abs(drawn).sum(axis=1).std())
    half = t_quantile(np.array([draws.tasks]), draws.confidence).item() * error
    excess = folded_excess(np.maximum(0, np.abs(gaps / used) - spread), spread).sum()
    plain = np.abs(gaps).sum() / used
    return float(min(plain - excess - half, draws.value)), float(plain + half)


_BOOTSTRAP = ResampledSums(
    bin_values,
    _ece_ends,
    bin_of,
    text="bootstrap over tasks, resampling the sums of each bin; the lower end without bias",
)


@metric(
    title="calibration error",
    formula="Σ_k |S_k|/M · |acc_k − conf_k|",
    range=(0, 1),
    better="lower",
    interval=_BOOTSTRAP,
    spec="Zeta Reason 3.2",
)
def ece(prob_correct: pl.Expr, correct: pl.Expr, *, bins: int = 10) -> pl.Expr:
    """Expected calibration error: the mean gap between confidence and accuracy over bins.

    The bins are [k/K, (k+1)/K), the last one closed, each weighted by its share of the records.

    >>> evaluate(ece, prob_correct=[1.0, 1.0, 0.25, 0.25], correct=[True, True, True, False])
    0.125
    """
    check_bins(bins)
    used = (prob_correct.is_not_null() & correct.is_not_null()).sum()
    gap = correct.cast(pl.Float64) - prob_correct
    gaps = add(total.abs() for total in sum_by_bin(prob_correct, gap, bins))
    return pl.when(used > 0).then((gaps / used).round(15))  # what rounding leaves is 0


def check_bins(bins: int) -> None:
    """Raise UsageError for a number of bins that makes no sense."""
    if not 1 <= bins <= 10_000:
        raise UsageError(f"bins is {bins}; it must be between 1 and 10,000.")


def binned(columns: Sequence[pl.Series], bins: int) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Return the probability, the hit and the bin of each record that has a probability."""
    probability, hit = columns
    used = probability.is_not_null() & hit.is_not_null()
    stated, hits = (c.filter(used).cast(pl.Float64).to_numpy() for c in (probability, hit))
    edges = np.array([k / bins for k in range(1, bins)])
    return stated, hits, np.searchsorted(edges, stated, side="right")


@metric(
    title="calibration error beyond chance",
    formula="λ · ece, with Σ_k E|N(λ·g_k, s_k²)| = Σ_k |g_k|, 0 ≤ λ ≤ 1",
    range=(0, 1),
    better="lower",
    interval=_BOOTSTRAP,
    spec="Pennyweight; Zeta Reason 3.2",
)
def ece_debiased(prob_correct: pl.Expr, correct: pl.Expr, *, bins: int = 10) -> pl.Expr:
    """Expected calibration error without the part that chance alone adds.

    The gaps of a small sample are never all 0, so `ece` is too high: a perfectly calibrated model
    shows about 0.2 with 20 records. This is `ece` times the factor λ at which gaps of λ·g_k plus
    sampling noise would be expected to look like the gaps g_k that were observed; it is 0 if noise
    alone explains them. The variance of a bin is s_k² = n·r·(1 − r), where r is its share of
    correct answers with one additional hit and one additional miss.

    >>> round(evaluate(ece_debiased, prob_correct=[0.9] * 10, correct=[True] * 6 + [False] * 4), 3)
    0.297
    >>> evaluate(ece_debiased, prob_correct=[0.9] * 10, correct=[True] * 8 + [False] * 2)
    0.0
    """
    check_bins(bins)

    def debiased(columns: Sequence[pl.Series]) -> float | None:
        stated, hits, bin_ = binned(columns, bins)
        if not len(stated):
            return None
        gaps = np.abs(np.bincount(bin_, hits - stated, bins))
        sizes, right = np.bincount(bin_, minlength=bins), np.bincount(bin_, hits, bins)
        rate = (right + 1) / (sizes + 2)
        return _true_share(gaps, np.sqrt(sizes * rate * (1 - rate))) * float(gaps.sum()) / len(hits)

    columns = [prob_correct, correct]
    return pl.map_groups(columns, debiased, return_dtype=pl.Float64, returns_scalar=True)


def _ranked(prob_correct: pl.Expr, correct: pl.Expr) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """Return the confidence of correct and of wrong answers, and its rank among all of them."""
    right = pl.when(correct).then(prob_correct)
    wrong = pl.when(~correct).then(prob_correct)
    return right, wrong, pl.coalesce(right, wrong).rank("average")


def _area(prob_correct: pl.Expr, correct: pl.Expr) -> pl.Expr:
    """Return the area under the ROC curve, from the mean rank of correct answers."""
    right, wrong, rank = _ranked(prob_correct, correct)
    below = rank.filter(correct).mean() - (right.count() + 1) / 2
    return pl.when((right.count() > 0) & (wrong.count() > 0)).then(below / wrong.count())


def _auroc_terms(prob_correct: pl.Expr, correct: pl.Expr) -> pl.Expr:
    """Return how far each record moves the area away from its value.

    A record has the share of those of the other kind that are on its right side: for a correct
    answer these are wrong answers with a lower confidence, and the other way round; equal ones
    count half.
    """
    right, wrong, rank = _ranked(prob_correct, correct)
    below = rank - pl.coalesce(right.rank("average"), wrong.rank("average"))
    share = pl.when(correct).then(below / wrong.count()).otherwise(1 - below / right.count())
    rate = pl.when(prob_correct.is_not_null()).then(correct).mean()
    own = pl.when(correct).then(rate).otherwise(1 - rate)
    return (share - _area(prob_correct, correct)) / own


@dataclass(frozen=True, slots=True)
class AreaShare:
    """Interval of an area under the ROC curve: linearised, and at least Newcombe's.

    With few wrong answers, or few right ones, the linearised error is mostly too small. Newcombe's
    score interval (method 5, 2006) rests on the numbers of both; attempts at a task count once.
    """

    text: str = "Wilson, linearised, clustered by task; at least Newcombe's score interval"

    def __call__(self, sample: Sample) -> Ends:
        """Return both ends, or None with one task."""
        ends = Linearised(_auroc_terms, rate=True)(sample)
        if ends is None:
            return None
        stated, correct = sample.inputs
        rows = sample.frame.drop_nulls([stated, correct])
        tasks = rows.group_by(correct).agg(pl.col(CLUSTER).n_unique()).get_column(CLUSTER)
        few, many = sorted(float(n) for n in tasks)
        z = z_quantile(sample.confidence)
        low = _farthest(sample.value, 0.0, few, many, z)
        high = _farthest(sample.value, 1.0, few, many, z)
        return min(ends[0], low), max(ends[1], high)


def _farthest(area: float, end: float, few: float, many: float, z: float) -> float:
    """Return the area farthest from an observed one, towards an end, that it does not rule out."""
    inside, outside = area, end
    for _ in range(60):
        at = (inside + outside) / 2
        spread = 1 + ((few + many) / 2 - 1) * ((1 - at) / (2 - at) + at / (1 + at))
        if (area - at) ** 2 <= z**2 * at * (1 - at) * spread / (few * many):
            inside = at
        else:
            outside = at
    return inside


@metric(
    title="confidence tells right from wrong",
    formula="P(p_i > p_j) + P(p_i = p_j) / 2, i correct, j wrong",
    range=(0, 1),
    better="higher",
    interval=AreaShare(),
    spec="Pennyweight",
)
def confidence_auroc(prob_correct: pl.Expr, correct: pl.Expr) -> pl.Expr:
    """How well confidence tells correct answers from wrong ones: the area under the ROC curve.

    It is the probability that a correct answer has a higher confidence than a wrong one: 0.5 for
    confidence that says nothing. Null unless there are both correct and wrong answers.

    >>> evaluate(confidence_auroc, prob_correct=[0.9, 0.8, 0.8], correct=[True, True, False])
    0.75
    """
    return _area(prob_correct, correct)


def _true_share(gaps: Floats, spread: Floats) -> float:
    """Return λ: the share of the gaps that is not noise, found by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        part = middle * gaps
        if part.sum() + folded_excess(part, spread).sum() > gaps.sum():
            high = middle
        else:
            low = middle
    return low if low > 1e-12 else 0.0
