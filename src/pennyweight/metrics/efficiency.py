"""Metrics of tokens and time, over the records that have the value."""

from __future__ import annotations

import polars as pl

from pennyweight.define import amount, metric, share
from pennyweight.stats.ratio_of_sums import RatioOfSums
from pennyweight.stats.resample import Linearised, ratio_terms


def _used(quality: pl.Expr, total_tokens: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    both = quality.is_not_null() & total_tokens.is_not_null()
    return pl.when(both).then(quality), pl.when(both).then(total_tokens)


@amount(
    title="input tokens", formula="(1/M) Σ prompt_tokens_i", unit="tokens", spec="Zeta Reason 6.1"
)
def prompt_tokens_mean(prompt_tokens: pl.Expr) -> pl.Expr:
    """Mean number of input tokens per attempt.

    >>> evaluate(prompt_tokens_mean, prompt_tokens=[10, 20, None])
    15.0
    """
    return prompt_tokens.mean()


@amount(
    title="output tokens",
    formula="(1/M) Σ completion_tokens_i",
    unit="tokens",
    spec="Zeta Reason 6.1",
)
def completion_tokens_mean(completion_tokens: pl.Expr) -> pl.Expr:
    """Mean number of output tokens per attempt.

    >>> evaluate(completion_tokens_mean, completion_tokens=[10, 20])
    15.0
    """
    return completion_tokens.mean()


@amount(
    title="tokens per attempt",
    formula="(1/M) Σ (prompt_tokens_i + completion_tokens_i)",
    unit="tokens",
    spec="Zeta Reason 6.1",
    also=("TOKENS_MEAN",),
)
def total_tokens_mean(total_tokens: pl.Expr) -> pl.Expr:
    """Mean number of input and output tokens per attempt, over the records that have both.

    >>> evaluate(total_tokens_mean, prompt_tokens=[10, 20], completion_tokens=[5, None])
    15.0
    """
    return total_tokens.mean()


@amount(
    title="mean latency",
    formula="(1/M) Σ latency_ms_i",
    unit="ms",
    spec="Zeta Reason 6.2",
    also=("LATENCY_MEAN",),
)
def latency_mean_ms(latency_ms: pl.Expr) -> pl.Expr:
    """Mean latency of a call.

    >>> evaluate(latency_mean_ms, latency_ms=[100.0, 300.0])
    200.0
    """
    return latency_ms.mean()


@amount(
    title="median latency", formula="L_(⌈0.5·M⌉), the nearest rank", unit="ms", spec="Pennyweight"
)
def latency_p50_ms(latency_ms: pl.Expr) -> pl.Expr:
    """50th percentile of the latency (nearest rank): half of the calls took at most this long.

    >>> evaluate(latency_p50_ms, latency_ms=[100.0, 200.0, 900.0])
    200.0
    """
    return latency_ms.quantile(0.5, interpolation="equiprobable")


@amount(
    title="latency, P95",
    formula="L_(⌈0.95·M⌉), the nearest rank",
    unit="ms",
    spec="Zeta Reason 6.2; Metrics Guide, latency",
    also=("LATENCY_P95", "latency"),
)
def latency_p95_ms(latency_ms: pl.Expr) -> pl.Expr:
    """95th percentile of the latency (nearest rank): 95 % of the calls took at most this long.

    >>> evaluate(latency_p95_ms, latency_ms=[float(i) for i in range(1, 21)])
    19.0
    """
    return latency_ms.quantile(0.95, interpolation="equiprobable")


@amount(
    title="latency, P99", formula="L_(⌈0.99·M⌉), the nearest rank", unit="ms", spec="Pennyweight"
)
def latency_p99_ms(latency_ms: pl.Expr) -> pl.Expr:
    """99th percentile of the latency (nearest rank): 99 % of the calls took at most this long.

    >>> evaluate(latency_p99_ms, latency_ms=[float(i) for i in range(1, 201)])
    198.0
    """
    return latency_ms.quantile(0.99, interpolation="equiprobable")


@amount(
    title="time to first token, median",
    formula="F_(⌈0.5·M⌉), the nearest rank",
    unit="ms",
    spec="Pennyweight",
)
def ttft_p50_ms(ttft_ms: pl.Expr) -> pl.Expr:
    """50th percentile of the time to the first token of streamed replies (nearest rank).

    >>> evaluate(ttft_p50_ms, ttft_ms=[80.0, 120.0, None, 300.0])
    120.0
    """
    return ttft_ms.quantile(0.5, interpolation="equiprobable")


@amount(
    title="time to first token, P95",
    formula="F_(⌈0.95·M⌉), the nearest rank",
    unit="ms",
    spec="Pennyweight",
)
def ttft_p95_ms(ttft_ms: pl.Expr) -> pl.Expr:
    """95th percentile of the time to the first token of streamed replies (nearest rank).

    >>> evaluate(ttft_p95_ms, ttft_ms=[float(i) for i in range(1, 21)])
    19.0
    """
    return ttft_ms.quantile(0.95, interpolation="equiprobable")


@metric(
    title="quality per token",
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


def _both(part: pl.Expr, whole: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    known = part.is_not_null() & whole.is_not_null()
    return pl.when(known).then(part), pl.when(known).then(whole)


@metric(
    formula="Σ reasoning_tokens_i / Σ completion_tokens_i",
    unit="share",
    range=(0, 1),
    interval=Linearised(
        lambda thought, written: ratio_terms(*_thought(thought, written)),
        rate=True,
        text="Wilson, linearised, clustered by task",
    ),
    spec="Pennyweight",
)
def thinking_share(reasoning_tokens: pl.Expr, completion_tokens: pl.Expr) -> pl.Expr:
    """Share of the output tokens that were spent on reasoning.

    >>> evaluate(thinking_share, reasoning_tokens=[30, 50, None], completion_tokens=[40, 60, 9])
    0.8
    """
    thought, written = _thought(reasoning_tokens, completion_tokens)
    return thought.sum() / pl.when(written.sum() > 0).then(written.sum())


def _thought(reasoning_tokens: pl.Expr, completion_tokens: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Return both counts; providers that count reasoning apart never make it more than all."""
    thought, written = _both(reasoning_tokens, completion_tokens)
    return pl.min_horizontal(thought, written), written


@amount(
    formula="Σ completion_tokens_i / Σ correct_i",
    unit="tokens",
    interval=RatioOfSums(_both, "bottom"),
    spec="Pennyweight",
)
def tokens_per_correct(completion_tokens: pl.Expr, correct: pl.Expr) -> pl.Expr:
    """Output tokens for each correct answer; infinite if none is correct.

    >>> evaluate(tokens_per_correct, completion_tokens=[100, 300], correct=[True, False])
    400.0
    """
    spent, right = _both(completion_tokens, correct.cast(pl.Float64))
    return pl.when(spent.count() > 0).then(spent.sum() / right.sum())


@share(formula="(1/M) Σ cut_in_thought_i", better="lower", spec="Pennyweight")
def cut_in_thought_rate(cut_in_thought: pl.Expr) -> pl.Expr:
    """Share of the attempts that the token limit cut while they were still thinking.

    >>> evaluate(cut_in_thought_rate, truncated=[True, False], response=["", "4"],
    ...          reasoning=["Let me see", "2 and 2"])
    0.5
    """
    return cut_in_thought.mean()


@amount(
    formula="mean over correct attempts of t_i − min t over the subject's correct attempts at it",
    unit="tokens",
    needs=("completion_tokens", "correct", "task_id"),
    across="tier",
    spec="Pennyweight",
)
def overthinking_tokens(
    completion_tokens: pl.Expr, correct: pl.Expr, subject: pl.Expr, task_id: pl.Expr
) -> pl.Expr:
    """Output tokens beyond the fewest with which the subject answered the same task correctly.

    Where tiers are thinking budgets, score by subject: then a correct answer is compared with the
    least budget that was enough. Tasks with one correct attempt are left out.

    >>> evaluate(overthinking_tokens, task_id=["a"] * 3, completion_tokens=[100, 300, 50],
    ...          correct=[True, True, False])
    100.0
    """
    spent = pl.when(correct & task_id.is_not_null()).then(completion_tokens)
    several = spent.count().over(subject, task_id) > 1
    return pl.when(several).then(spent - spent.min().over(subject, task_id)).mean()
