"""Calibration in detail: the parts of the Brier score, calibration without bins, selective risk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl

from pennyweight.define import metric
from pennyweight.metrics.calibration import bin_of, bin_values, check_bins, sum_by_bin
from pennyweight.metrics.sums import add
from pennyweight.stats.interval import Floats, t_quantile
from pennyweight.stats.resample import Draws, Ends, Linearised, ResampledSums, Sample
from pennyweight.stats.risk_coverage import RiskCoverage
from pennyweight.stats.smooth_calibration import SmoothCalibration, smooth_error


def _quadratic(value: Callable[[Floats, Floats, Floats], Floats], draws: Draws) -> Ends:
    """Return an interval of a mean of squares over bins, which chance makes larger.

    The lower end subtracts what resampling adds to the value.
    """
    drawn = value(*np.split(draws.resampled, 3, axis=1))
    drawn = drawn[np.isfinite(drawn)]
    plain = value(*(part[None] for part in np.split(draws.totals, 3))).item()
    half = t_quantile(np.array([draws.tasks]), draws.confidence).item() * drawn.std()
    excess = max(0.0, drawn.mean() - plain)
    return float(max(0.0, plain - excess - half)), float(plain + half)


def _reliability(gaps: Floats, sizes: Floats, _: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = np.where(sizes > 0, gaps**2 / sizes, 0.0)
        reliability: Floats = squares.sum(axis=-1) / sizes.sum(axis=-1)
    return reliability


def _resolution(_: Floats, sizes: Floats, hits: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        used = sizes.sum(axis=-1)
        rate = hits.sum(axis=-1) / used
        squares = np.where(sizes > 0, hits**2 / sizes, 0.0)
        resolution: Floats = squares.sum(axis=-1) / used - rate**2
    return resolution


def _squared_over_bins(prob_correct: pl.Expr, value: pl.Expr, bins: int, used: pl.Expr) -> pl.Expr:
    """Sum over bins the square of a sum divided by the number of records, over all records."""
    sums = sum_by_bin(prob_correct, pl.when(used).then(value), bins)
    sizes = sum_by_bin(prob_correct, used.cast(pl.Float64), bins)
    parts = (
        pl.when(n > 0).then(total**2 / n).otherwise(0.0)
        for total, n in zip(sums, sizes, strict=True)
    )
    return pl.when(used.sum() > 0).then(add(parts) / used.sum())


@metric(
    title="Brier score: miscalibration",
    formula="Σ_k n_k/M · (conf_k − acc_k)²",
    range=(0, 1),
    better="lower",
    interval=ResampledSums(
        bin_values,
        partial(_quadratic, _reliability),
        bin_of,
        text="bootstrap over tasks, resampling the sums of each bin; the lower end without bias",
    ),
    spec="Murphy 1973; Zeta Reason 8",
)
def brier_reliability(prob_correct: pl.Expr, correct: pl.Expr, *, bins: int = 10) -> pl.Expr:
    """The part of the Brier score that comes from confidence unlike the accuracy; 0 is best.

    The Brier score is about reliability − resolution + uncertainty, exactly so if the confidence is
    the same within each bin.

    >>> round(evaluate(brier_reliability, prob_correct=[0.9] * 4,
    ...                correct=[True, True, False, True]), 4)
    0.0225
    """
    check_bins(bins)
    used = prob_correct.is_not_null() & correct.is_not_null()
    gap = correct.cast(pl.Float64) - prob_correct
    return _squared_over_bins(prob_correct, gap, bins, used)


@metric(
    title="Brier score: resolution",
    formula="Σ_k n_k/M · (acc_k − acc)²",
    range=(0, 1),
    better="higher",
    interval=ResampledSums(
        bin_values,
        partial(_quadratic, _resolution),
        bin_of,
        text="bootstrap over tasks, resampling the sums of each bin; the lower end without bias",
    ),
    spec="Murphy 1973; Zeta Reason 8",
)
def brier_resolution(prob_correct: pl.Expr, correct: pl.Expr, *, bins: int = 10) -> pl.Expr:
    """The part of the Brier score that confidence takes off by telling answers apart.

    0 if the accuracy is the same at every confidence; at most the uncertainty.

    >>> evaluate(brier_resolution, prob_correct=[0.9, 0.9, 0.1, 0.1],
    ...          correct=[True, True, False, False])
    0.25
    """
    check_bins(bins)
    used = prob_correct.is_not_null() & correct.is_not_null()
    hit = correct.cast(pl.Float64)
    rate = hit.filter(used).mean()
    squares = _squared_over_bins(prob_correct, hit, bins, used)
    return (squares - rate**2).clip(lower_bound=0.0)


def _hits(prob_correct: pl.Expr, correct: pl.Expr) -> pl.Expr:
    return pl.when(prob_correct.is_not_null()).then(correct)


@dataclass(frozen=True, slots=True)
class RateVariance:
    """Interval of acc · (1 − acc): its values over the binomial interval of acc."""

    text: str = "acc · (1 − acc) over the binomial interval of acc, clustered by task"

    def __call__(self, sample: Sample) -> Ends:
        """Return both ends, or None with one task."""
        stated, correct = map(pl.col, sample.inputs)
        rate = sample.frame.select(_hits(stated, correct).mean()).item()
        ends = Linearised(_hits, rate=True)(replace(sample, value=rate))
        if ends is None:
            return None
        outer = [end * (1 - end) for end in ends]
        return min(outer), 0.25 if ends[0] <= 0.5 <= ends[1] else max(outer)


@metric(
    title="Brier score: uncertainty",
    formula="acc · (1 − acc)",
    range=(0, 0.25),
    interval=RateVariance(),
    spec="Murphy 1973; Zeta Reason 8",
)
def brier_uncertainty(prob_correct: pl.Expr, correct: pl.Expr) -> pl.Expr:
    """The part of the Brier score that comes from the tasks: the variance of being correct.

    >>> evaluate(brier_uncertainty, prob_correct=[0.9, 0.1], correct=[True, False])
    0.25
    """
    rate = correct.cast(pl.Float64).filter(prob_correct.is_not_null()).mean()
    return rate * (1 - rate)


@metric(
    title="smooth calibration error",
    formula="σ with ∫ |smoothed residuals| = σ, the width of the kernel",
    range=(0, 1),
    better="lower",
    interval=SmoothCalibration(),
    spec="Błasiok and Nakkiran 2023; Zeta Reason 8",
)
def ece_smooth(prob_correct: pl.Expr, correct: pl.Expr) -> pl.Expr:
    """Smooth calibration error: like `ece`, with a kernel of its own width instead of bins.

    >>> confidence, right = [0.9] * 100, [True] * 50 + [False] * 50
    >>> round(evaluate(ece_smooth, prob_correct=confidence, correct=right), 3)
    0.4
    """
    return pl.map_groups(
        [prob_correct, correct], _smooth, return_dtype=pl.Float64, returns_scalar=True
    )


def _smooth(columns: Sequence[pl.Series]) -> float | None:
    stated, hits = _known(columns)
    return smooth_error(stated, hits) if len(stated) else None


def _known(columns: Sequence[pl.Series]) -> tuple[Floats, Floats]:
    """Return the probabilities and outcomes of the records that have both."""
    used = columns[0].is_not_null() & columns[1].is_not_null()
    stated, hits = (c.filter(used).cast(pl.Float64).to_numpy() for c in columns)
    return stated, hits


def _aurc(columns: Sequence[pl.Series]) -> float | None:
    stated, hits = _known(columns)
    return RiskCoverage.of(stated, hits).area() if len(stated) else None


def _aurc_terms(prob_correct: pl.Expr, correct: pl.Expr) -> pl.Expr:
    """Return how far each record moves the area."""

    def terms(rows: pl.Series) -> pl.Series:
        columns = [rows.struct.field(name) for name in ("p", "y")]
        stated, hits = _known(columns)
        moved = RiskCoverage.of(stated, hits).moved(stated, hits)
        if len(moved) == len(rows):
            return pl.Series(moved)
        used = (columns[0].is_not_null() & columns[1].is_not_null()).to_numpy()
        found = np.full(len(rows), np.nan)
        found[used] = moved
        return pl.Series(found).fill_nan(None)

    both = pl.struct(prob_correct.alias("p"), correct.alias("y"))
    return both.map_batches(terms, return_dtype=pl.Float64)


@metric(
    title="risk over coverage",
    formula="(1/M) Σ_k errors among the k most confident / k",
    range=(0, 1),
    better="lower",
    interval=Linearised(_aurc_terms, rate=True, text="Wilson, linearised, clustered by task"),
    spec="Geifman and El-Yaniv 2017; Zeta Reason 8",
)
def aurc(prob_correct: pl.Expr, correct: pl.Expr) -> pl.Expr:
    """Area under the risk–coverage curve: the error rate if only the most confident are answered.

    It is the mean of the error rates at every coverage. Records of equal confidence share their
    errors.

    >>> evaluate(aurc, prob_correct=[0.9, 0.5], correct=[True, False])
    0.25
    """
    return pl.map_groups(
        [prob_correct, correct], _aurc, return_dtype=pl.Float64, returns_scalar=True
    )
