"""Cost, duration and composite score of one attempt."""

from __future__ import annotations

import math

import polars as pl

from pennyweight.define import measure
from pennyweight.errors import UsageError


@measure(unit="US$", spec="ProjectScylla, cost")
def cost_usd(
    cost_usd: pl.Expr,
    prompt_tokens: pl.Expr,
    completion_tokens: pl.Expr,
    input_price: pl.Expr,
    output_price: pl.Expr,
) -> pl.Expr:
    """The cost of the attempt: as given, else computed from the tokens and the record's prices.

    Prices are in US dollars per million tokens.

    >>> evaluate(cost_usd, prompt_tokens=[1000], completion_tokens=[200], input_price=[3],
    ...          output_price=[15])
    [0.006]
    """
    priced = (prompt_tokens * input_price + completion_tokens * output_price) / 1_000_000
    return pl.coalesce(cost_usd, priced)


@measure(unit="seconds", spec="ProjectScylla, duration")
def duration_seconds(duration_seconds: pl.Expr, start_time: pl.Expr, end_time: pl.Expr) -> pl.Expr:
    """Seconds from start to completion.

    >>> evaluate(duration_seconds, start_time=[100.0], end_time=[112.5])
    [12.5]
    """
    return pl.coalesce(duration_seconds, end_time - start_time)


@measure(unit="US$", spec="ProjectScylla, cost of pass")
def cost_of_pass(cost_usd: pl.Expr, passed: pl.Expr) -> pl.Expr:
    """The cost per pass of this attempt alone: its cost if it passed, infinity if it failed.

    >>> evaluate(cost_of_pass, cost_usd=[0.5, 0.5], passed=[True, False])
    [0.5, inf]
    """
    return pl.when(passed).then(cost_usd).when(~passed & cost_usd.is_not_null()).then(math.inf)


@measure(spec="ProjectScylla, composite score")
def composite_score(
    passed: pl.Expr, impl_rate: pl.Expr, *, pass_weight: float = 0.5, impl_weight: float = 0.5
) -> pl.Expr:
    """Weighted mean of passing (0 or 1) and the implementation rate.

    >>> evaluate(composite_score, passed=[True], impl_rate=[0.85])
    [0.925]
    """
    total = pass_weight + impl_weight
    if total == 0:
        raise UsageError("pass_weight and impl_weight add up to 0; make one of them positive.")
    if pass_weight < 0 or impl_weight < 0:
        raise UsageError("pass_weight and impl_weight must not be negative.")
    return (passed.cast(pl.Float64) * pass_weight + impl_rate * impl_weight) / total
