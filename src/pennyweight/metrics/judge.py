"""Metrics of the judges: how well they agree and what they cost."""

from __future__ import annotations

import numpy as np
import polars as pl

from pennyweight.define import amount, metric, share
from pennyweight.metrics.cost import (
    COST_METHOD,
    OF_TOTAL,
    cost_against_passes,
    cost_and_passes,
    ratio_or_infinity,
)
from pennyweight.stats.labels import CorrectedByLabels
from pennyweight.stats.ratio_of_sums import RatioOfSums
from pennyweight.stats.resample import Floats, JackknifedSums

_SAME = 1e-12
"""A spread below this is rounding: then all scores are one number."""


def _ratings(judges: pl.Expr, judge_mean: pl.Expr, judge_variance: pl.Expr) -> list[pl.Expr]:
    """Return what alpha is computed from the sums of.

    These are the number of ratings, their sum, the sum of their squares, and the disagreement
    within attempts.
    """
    n = pl.when(judge_variance.is_not_null()).then(judges.cast(pl.Float64))
    centred = judge_mean - 0.5  # squares of what lies around 0 lose fewer digits
    squares = n * (judge_variance + centred * centred)
    return [n, n * centred, squares, n * n * judge_variance / (n - 1)]


def _disagreement(sums: Floats) -> Floats:
    """Return 1 − alpha from rows of sums; NaN if all scores are equal."""
    ratings, total, squares, within = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = (ratings * squares - total * total) / (ratings - 1)
        found: Floats = np.where(expected > _SAME * ratings, within / expected, np.nan)
    return found


@metric(
    title="agreement of judges",
    formula="1 − D_observed / D_expected, with squared differences",
    range=(None, 1),
    better="higher",
    needs=("judge_variance",),
    interval=JackknifedSums(_ratings, _disagreement),
    spec="Krippendorff, alpha for interval data",
)
def judge_alpha(judges: pl.Expr, judge_mean: pl.Expr, judge_variance: pl.Expr) -> pl.Expr:
    """Krippendorff's alpha of the judges' scores: 1 is perfect agreement, 0 agreement by chance.

    Computed over the attempts that at least two judges scored. Null if all scores are equal,
    because then nothing shows that the judges can tell attempts apart. There is no interval if
    every resample of the tasks gives the same alpha, as with two tasks.

    >>> evaluate(judge_alpha, judge_scores=[[0.0, 0.0], [1.0, 1.0], [0.5]])
    1.0
    """
    values = _ratings(judges, judge_mean, judge_variance)
    ratings, total, squares, within = (value.sum() for value in values)
    expected = (ratings * squares - total * total) / (ratings - 1)
    return pl.when(expected > _SAME * ratings).then(1 - within / expected)


@share(
    title="pass rate corrected by labels",
    formula="ȳ + λ (v̄ of the others − v̄ of the labelled), with labels y and verdicts v",
    needs=("passed",),
    interval=CorrectedByLabels(),
    spec="Angelopoulos, Duchi and Zrnic 2023, PPI++",
)
def judge_pass_rate_corrected(passed: pl.Expr, person_right: pl.Expr) -> pl.Expr:
    """Share of attempts that people would pass, from labels of some and the verdicts on all.

    The labels must be of records drawn at random: `pennyweight review RUN --queue random`. λ is
    tuned: near 1 where verdicts follow the labels, 0 where they say nothing about them. Null with
    fewer than two labels.

    >>> labels = [True, True, False, None, None, None]
    >>> verdicts = [True, False, False, True, False, False]
    >>> round(evaluate(judge_pass_rate_corrected, passed=verdicts, person_right=labels), 4)
    0.6667
    """
    both = passed.is_not_null() & person_right.is_not_null()
    label, judged = (one.filter(both).cast(pl.Float64) for one in (person_right, passed))
    together = ((label - label.mean()) * (judged - judged.mean())).mean()
    spread = passed.cast(pl.Float64).var()
    power = pl.when(spread > 0).then((together / spread).clip(0, 1)).otherwise(0.0)
    value = label.mean() + power * (passed.cast(pl.Float64).mean() - judged.mean())
    return pl.when(both.sum() > 1).then(value.clip(0, 1))


@metric(
    title="difference between judges",
    formula="(1/M) Σ mean of |score_j − score_k| over pairs of judges",
    range=(0, 1),
    better="lower",
    spec="Pennyweight",
)
def judge_mean_absolute_difference(judge_difference: pl.Expr) -> pl.Expr:
    """Mean absolute difference between the scores of two judges of the same attempt.

    >>> evaluate(judge_mean_absolute_difference, judge_scores=[[0.5, 0.75], [1.0, 1.0], [0.2]])
    0.125
    """
    return judge_difference.mean()


@amount(
    title="cost of judging",
    formula="Σ judge_cost_usd_i",
    unit="US$",
    over="all",
    interval=OF_TOTAL,
    spec="Pennyweight",
)
def judge_cost_usd_total(judge_cost_usd: pl.Expr) -> pl.Expr:
    """Total cost of judging all attempts; not part of `cost_usd_total`.

    >>> evaluate(judge_cost_usd_total, judge_cost_usd=[0.25, None, 0.5])
    0.75
    """
    return pl.when(judge_cost_usd.count() > 0).then(judge_cost_usd.sum())


def _with_judges(
    cost_usd: pl.Expr, judge_cost_usd: pl.Expr, passed: pl.Expr, status: pl.Expr
) -> list[pl.Expr]:
    return cost_and_passes(_both_costs(cost_usd, judge_cost_usd, status), passed, status)


def _against_judges(
    cost_usd: pl.Expr, judge_cost_usd: pl.Expr, passed: pl.Expr, status: pl.Expr
) -> tuple[pl.Expr, pl.Expr]:
    return cost_against_passes(_both_costs(cost_usd, judge_cost_usd, status), passed, status)


def _both_costs(cost_usd: pl.Expr, judge_cost_usd: pl.Expr, status: pl.Expr) -> pl.Expr:
    """Add both costs up; judges are not asked about an attempt that ended in an error."""
    unasked = status.eq_missing(pl.lit("error")) & judge_cost_usd.is_null()
    return cost_usd + pl.when(unasked).then(0.0).otherwise(judge_cost_usd)


@amount(
    title="cost per pass with judges",
    formula="Σ (cost_usd_i + judge_cost_usd_i) / Σ passed_i",
    unit="US$",
    over="all",
    needs=("cost_usd", "judge_cost_usd", "passed"),
    interval=RatioOfSums(_against_judges, "bottom", COST_METHOD),
    spec="Pennyweight; ProjectScylla, cost of pass",
)
def cost_of_pass_with_judges(
    cost_usd: pl.Expr, judge_cost_usd: pl.Expr, passed: pl.Expr, status: pl.Expr
) -> pl.Expr:
    """Cost of one pass including the cost of its judges; infinity if nothing passed.

    >>> evaluate(cost_of_pass_with_judges, cost_usd=[0.25, 0.25], judge_cost_usd=[0.25, 0.25],
    ...          passed=[True, False])
    1.0
    """
    return ratio_or_infinity(*_with_judges(cost_usd, judge_cost_usd, passed, status))
