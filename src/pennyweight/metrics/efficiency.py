"""Metrics of tokens and time, over the records that have the value."""

from __future__ import annotations

import polars as pl

from pennyweight.define import amount, metric
from pennyweight.stats.ratio_of_sums import RatioOfSums


def _used(quality: pl.Expr, total_tokens: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    both = quality.is_not_null() & total_tokens.is_not_null()
    return pl.when(both).then(quality), pl.when(both).then(total_tokens)


@amount(formula="(1/M) Σ prompt_tokens_i", unit="tokens", spec="Zeta Reason 6.1")
def prompt_tokens_mean(prompt_tokens: pl.Expr) -> pl.Expr:
    """Mean number of input tokens per attempt.

    >>> evaluate(prompt_tokens_mean, prompt_tokens=[10, 20, None])
    15.0
    """
    return prompt_tokens.mean()


@amount(formula="(1/M) Σ completion_tokens_i", unit="tokens", spec="Zeta Reason 6.1")
def completion_tokens_mean(completion_tokens: pl.Expr) -> pl.Expr:
    """Mean number of output tokens per attempt.

    >>> evaluate(completion_tokens_mean, completion_tokens=[10, 20])
    15.0
    """
    return completion_tokens.mean()


@amount(
    formula="(1/M) Σ (prompt_tokens_i + completion_tokens_i)", unit="tokens", spec="Zeta Reason 6.1"
)
def total_tokens_mean(total_tokens: pl.Expr) -> pl.Expr:
    """Mean number of input and output tokens per attempt, over the records that have both.

    >>> evaluate(total_tokens_mean, prompt_tokens=[10, 20], completion_tokens=[5, None])
    15.0
    """
    return total_tokens.mean()


@amount(formula="(1/M) Σ latency_ms_i", unit="ms", spec="Zeta Reason 6.2")
def latency_mean_ms(latency_ms: pl.Expr) -> pl.Expr:
    """Mean latency of a call.

    >>> evaluate(latency_mean_ms, latency_ms=[100.0, 300.0])
    200.0
    """
    return latency_ms.mean()


@amount(formula="L_(⌈0.5·M⌉), the nearest rank", unit="ms", spec="Pennyweight")
def latency_p50_ms(latency_ms: pl.Expr) -> pl.Expr:
    """50th percentile of the latency (nearest rank): half of the calls took at most this long.

    >>> evaluate(latency_p50_ms, latency_ms=[100.0, 200.0, 900.0])
    200.0
    """
    return latency_ms.quantile(0.5, interpolation="equiprobable")


@amount(
    formula="L_(⌈0.95·M⌉), the nearest rank",
    unit="ms",
    spec="Zeta Reason 6.2; Metrics Guide, latency",
)
def latency_p95_ms(latency_ms: pl.Expr) -> pl.Expr:
    """95th percentile of the latency (nearest rank): 95 % of the calls took at most this long.

    >>> evaluate(latency_p95_ms, latency_ms=[float(i) for i in range(1, 21)])
    19.0
    """
    return latency_ms.quantile(0.95, interpolation="equiprobable")


@amount(formula="L_(⌈0.99·M⌉), the nearest rank", unit="ms", spec="Pennyweight")
def latency_p99_ms(latency_ms: pl.Expr) -> pl.Expr:
    """99th percentile of the latency (nearest rank): 99 % of the calls took at most this long.

    >>> evaluate(latency_p99_ms, latency_ms=[float(i) for i in range(1, 201)])
    198.0
    """
    return latency_ms.quantile(0.99, interpolation="equiprobable")


@metric(
    formula="Σ quality_i / Σ total_tokens_i",
    unit="per token",
    range=(0, None),
    better="higher",
    interval=RatioOfSums(_used, "top"),
    spec="Metrics Guide, token efficiency",
)
def token_efficiency(quality: pl.Expr, total_tokens: pl.Expr) -> pl.Expr:
    """Quality per token: the sum of quality divided by the sum of tokens.

    Quality is the scenario score, else the implementation rate, else correctness.

    >>> evaluate(token_efficiency, correct=[True, False], prompt_tokens=[60, 60],
    ...          completion_tokens=[40, 40])
    0.005
    """
    gained, spent = _used(quality, total_tokens)
    return gained.sum() / pl.when(spent.sum() > 0).then(spent.sum())
