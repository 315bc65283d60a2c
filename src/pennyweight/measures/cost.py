"""Cost, duration and composite score of one attempt."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from pennyweight.define import measure
from pennyweight.errors import UsageError


@measure(unit="US$", spec="ProjectScylla, cost")
def cost_usd(
    cost_usd: pl.Expr,
    prompt_tokens: pl.Expr,
    completion_tokens: pl.Expr,
    cached_tokens: pl.Expr,
    cache_write_tokens: pl.Expr,
    input_price: pl.Expr,
    output_price: pl.Expr,
    cached_input_price: pl.Expr,
    cache_write_price: pl.Expr,
) -> pl.Expr:
    """The cost of the attempt: as given, else computed from the tokens and the record's prices.

    Prices are in US dollars per million tokens. Input that was read from the cache or written to it
    costs `input_price` if the record has no price for it.

    >>> evaluate(cost_usd, prompt_tokens=[1000], completion_tokens=[200], input_price=[3],
    ...          output_price=[15])
    [0.006]
    """
    priced = cost_of_tokens(
        (prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens),
        (input_price, output_price, cached_input_price, cache_write_price),
    )
    return pl.coalesce(cost_usd, priced)


def cost_of_tokens(tokens: Sequence[pl.Expr], prices: Sequence[pl.Expr]) -> pl.Expr:
    """Price tokens; null if a count that matters is missing, or the parts exceed the whole.

    Both are input, output, cached input, cache writes, in this order.
    """
    prompt, output, cached, written = tokens
    input_price, output_price, *cache_prices = prices
    read_price, write_price = (price.fill_null(0) for price in cache_prices)
    read, stored = (
        pl.when(price.is_not_null()).then(count.fill_null(0)).otherwise(0)
        for count, price in zip((cached, written), cache_prices, strict=True)
    )
    fresh = prompt - read - stored
    whole = fresh * input_price + read * read_price + stored * write_price
    free = (input_price == 0) & (read_price + write_price == 0)
    into = pl.when(free).then(0.0).when(fresh >= 0).then(whole)
    out = pl.when(output_price == 0).then(0.0).otherwise(output * output_price)
    return (into + out) / 1_000_000


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
