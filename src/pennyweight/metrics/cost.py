"""Metrics of repeated runs: pass rate, implementation rate, cost and grade."""

from __future__ import annotations

import math

import polars as pl

from pennyweight.define import amount, metric, share
from pennyweight.stats.ratio_of_sums import RatioOfSums
from pennyweight.stats.resample import Linearised, NoInterval

GRADES = {"A": 0.95, "B": 0.85, "C": 0.75, "D": 0.65}
"""The grades with the lowest score that earns each; below the last it is F."""


@share(formula="passed / records", spec="ProjectScylla, pass rate; Metrics Guide, pass rate")
def pass_rate(passed: pl.Expr) -> pl.Expr:
    """Share of attempts that passed.

    >>> evaluate(pass_rate, passed=[True] * 8 + [False] * 2)
    0.8
    """
    return passed.mean()


@share(
    title="requirements met",
    formula="(1/M) Σ impl_rate_i",
    spec="ProjectScylla, implementation rate",
    also=("impl_rate",),
)
def impl_rate_mean(impl_rate: pl.Expr) -> pl.Expr:
    """Mean implementation rate: the share of the requirements that are met.

    >>> evaluate(impl_rate_mean, impl_rate=[0.5, 1.0, None])
    0.75
    """
    return impl_rate.mean()


@amount(
    title="cost per attempt",
    formula="(1/M) Σ cost_usd_i",
    unit="US$",
    spec="ProjectScylla, cost",
    also=("cost_usd",),
)
def cost_usd_mean(cost_usd: pl.Expr) -> pl.Expr:
    """Mean cost of an attempt that ended without an error.

    Cheap errors do not make a subject look cheap. The money spent on them is in `cost_usd_total`
    and in `cost_of_pass`.

    >>> evaluate(cost_usd_mean, cost_usd=[0.25, 0.75])
    0.5
    """
    return cost_usd.mean()


OF_TOTAL = Linearised(
    lambda cost_usd: cost_usd * cost_usd.count(),  # the mean of these is the total
    amount=True,
    text="t, corrected for skewness, clustered by task; of the expected total of such a run",
)


@amount(
    title="total cost",
    formula="Σ cost_usd_i",
    unit="US$",
    over="all",
    interval=OF_TOTAL,
    spec="ProjectScylla, cost",
)
def cost_usd_total(cost_usd: pl.Expr) -> pl.Expr:
    """Total cost of all attempts, including those that ended in an error.

    The interval is of the expected total of a run of this size on tasks like these; a single run
    varies more.

    >>> evaluate(cost_usd_total, cost_usd=[0.25, 0.75, None])
    1.0
    """
    return pl.when(cost_usd.count() > 0).then(cost_usd.sum())


def cost_and_passes(cost_usd: pl.Expr, passed: pl.Expr, status: pl.Expr) -> list[pl.Expr]:
    """Sum the cost and the passes of the records that count; also count those with a verdict."""
    spent, passes = cost_against_passes(cost_usd, passed, status)
    decided = (cost_usd.is_not_null() & passed.is_not_null()).sum()
    return [spent.sum(), passes.sum(), decided]


def ratio_or_infinity(spent: pl.Expr, passes: pl.Expr, decided: pl.Expr) -> pl.Expr:
    """Divide cost by passes: infinity without a pass, null if no record has a verdict."""
    some = decided > 0
    return pl.when(some & (passes > 0)).then(spent / passes).when(some).then(math.inf)


def cost_against_passes(
    cost_usd: pl.Expr, passed: pl.Expr, status: pl.Expr
) -> tuple[pl.Expr, pl.Expr]:
    """Return the cost and the passes of the records that count.

    These are the records with a cost and a verdict, and errors with a cost: they passed nothing.
    """
    delivered = pl.when(status.eq_missing(pl.lit("error"))).then(statement=False).otherwise(passed)
    both = cost_usd.is_not_null() & delivered.is_not_null()
    return pl.when(both).then(cost_usd), pl.when(both).then(delivered)


COST_METHOD = (
    "t, corrected for skewness, of cost − ratio · passes, clustered by task; "
    "if none passed, from a lower bound to ∞"
)


@amount(
    title="cost per pass",
    formula="Σ cost_usd_i / Σ passed_i",
    unit="US$",
    over="all",
    needs=("cost_usd", "passed"),
    interval=RatioOfSums(cost_against_passes, "bottom", COST_METHOD),
    spec="ProjectScylla, cost of pass",
    also=("CoP",),
)
def cost_of_pass(cost_usd: pl.Expr, passed: pl.Expr, status: pl.Expr) -> pl.Expr:
    """Cost of one pass, including the cost of failed attempts; infinity if nothing passed.

    What attempts cost that ended in an error was spent too, so it counts.

    >>> evaluate(cost_of_pass, cost_usd=[0.25, 0.25, 0.5], passed=[True, True, False])
    0.5
    """
    return ratio_or_infinity(*cost_and_passes(cost_usd, passed, status))


@metric(
    title="composite score",
    formula="median of composite_score_i",
    range=(0, 1),
    better="higher",
    spec="ProjectScylla, composite score",
    also=("composite",),
)
def composite_median(composite_score: pl.Expr) -> pl.Expr:
    """Median composite score of the attempts.

    >>> evaluate(composite_median, passed=[True, True, False], impl_rate=[0.8, 1.0, 0.4])
    0.9
    """
    return composite_score.median()


@metric(
    formula="A ≥ .95, B ≥ .85, C ≥ .75, D ≥ .65, else F",
    unit="letter",
    spec="ProjectScylla, letter grade assignment",
)
def grade(composite_median: pl.Expr, *, grades: dict[str, float] | None = None) -> pl.Expr:
    """Letter grade of the median composite score.

    `grades` replaces the letters and the lowest score that earns each. Scores are compared after
    rounding to nine digits, so that 0.6499999999999999, the floating-point form of 0.65, earns a D.

    >>> evaluate(grade, passed=[True], impl_rate=[0.85])
    'B'
    """
    letter = pl.lit("F")
    for name, least in sorted((grades or GRADES).items(), key=lambda item: item[1]):
        letter = pl.when(composite_median.round(9) >= least).then(pl.lit(name)).otherwise(letter)
    return pl.when(composite_median.is_not_null()).then(letter)


BASELINE = "T0"
"""The tier that others are compared with."""


def _of_tiers(value: pl.Expr, tier: pl.Expr) -> pl.Expr:
    """Return the median of each tier, in the first of its records."""
    return pl.when(tier.is_not_null() & tier.is_first_distinct()).then(value.median().over(tier))


def _of_several(medians: pl.Expr, found: pl.Expr) -> pl.Expr:
    return pl.when(medians.count() > 1).then(found)


@metric(
    formula="(max over tiers t ≠ T0 of median_t − median_T0) / median_T0, of composite_score",
    unit="share",
    better="higher",
    needs=("composite_score", "tier"),
    across="tier",
    interval=NoInterval("a quotient of medians"),
    spec="ProjectScylla, tier uplift",
)
def tier_uplift(composite_score: pl.Expr, tier: pl.Expr) -> pl.Expr:
    """By how much the best other tier's median composite score exceeds that of T0, relative to it.

    `compare` shows the uplift of each tier. It needs T0 and another tier in one group, so score by
    subject; null if the score of T0 is 0.

    >>> evaluate(tier_uplift, tier=["T0", "T1"], passed=[True] * 2, impl_rate=[0.0, 0.25])
    0.25
    """
    medians = _of_tiers(composite_score, tier)
    base = medians.filter(tier == BASELINE).max()
    best = medians.filter(tier != BASELINE).max()
    return pl.when(base != 0).then((best - base) / base)


@metric(
    formula="(1/T) Σ_t (median_t − mean of medians)², of passed over T tiers",
    range=(0, 1),
    better="lower",
    needs=("passed", "tier"),
    across="tier",
    interval=NoInterval("a variance of medians"),
    spec="ProjectScylla, pass rate variance",
)
def pass_rate_variance(passed: pl.Expr, tier: pl.Expr) -> pl.Expr:
    """Population variance of the tiers' median pass rates: how far passing depends on the tier.

    >>> evaluate(pass_rate_variance, tier=["T0", "T1"], passed=[False, True])
    0.25
    """
    medians = _of_tiers(passed.cast(pl.Float64), tier)
    return _of_several(medians, medians.var(ddof=0))


@metric(
    formula="(1/T) Σ_t (median_t − mean of medians)², of cost_usd over T tiers",
    range=(0, None),
    better="lower",
    needs=("cost_usd", "tier"),
    across="tier",
    interval=NoInterval("a variance of medians"),
    spec="ProjectScylla, cost variance",
)
def cost_variance(cost_usd: pl.Expr, tier: pl.Expr) -> pl.Expr:
    """Population variance of the tiers' median costs, in squared dollars.

    >>> evaluate(cost_variance, tier=["T0", "T1"], cost_usd=[0.5, 1.5])
    0.25
    """
    medians = _of_tiers(cost_usd, tier)
    return _of_several(medians, medians.var(ddof=0))


@amount(
    formula="max_t median_t − min_t median_t, of cost_usd",
    unit="US$",
    needs=("cost_usd", "tier"),
    across="tier",
    interval=NoInterval("a difference of medians"),
    spec="ProjectScylla, cost delta",
)
def cost_delta(cost_usd: pl.Expr, tier: pl.Expr) -> pl.Expr:
    """Difference between the median costs of the most and the least expensive tier.

    >>> evaluate(cost_delta, tier=["T0", "T1", "T2"], cost_usd=[0.5, 1.5, 0.75])
    1.0
    """
    medians = _of_tiers(cost_usd, tier)
    return _of_several(medians, medians.max() - medians.min())
