"""Metrics of the reasoning's shape, over the records that have a chain of thought."""

from __future__ import annotations

import polars as pl

from pennyweight.define import metric


@metric(formula="(1/M) Σ cot_tokens_i", unit="tokens", range=(0, None), spec="Zeta Reason 5.1")
def cot_tokens_mean(cot_tokens: pl.Expr) -> pl.Expr:
    """Mean length of the chain of thought, in tokens.

    >>> evaluate(cot_tokens_mean, cot=["one two", None, "one two three four"])
    3.0
    """
    return cot_tokens.mean()


@metric(formula="(1/M) Σ cot_chars_i", unit="characters", range=(0, None), spec="Zeta Reason 5.2")
def cot_chars_mean(cot_chars: pl.Expr) -> pl.Expr:
    """Mean length of the chain of thought, in characters.

    >>> evaluate(cot_chars_mean, cot=["abc", "abcde"])
    4.0
    """
    return cot_chars.mean()


@metric(formula="(1/M) Σ step_count_i", unit="steps", range=(0, None), spec="Zeta Reason 5.3")
def step_count_mean(step_count: pl.Expr) -> pl.Expr:
    r"""Mean number of lines in the chain of thought that start like a step.

    >>> evaluate(step_count_mean, cot=["1. a\n2. b", "no steps"])
    1.0
    """
    return step_count.mean()


@metric(formula="(1/M) Σ ra_ratio_i", range=(0, None), spec="Zeta Reason 5.4")
def ra_ratio_mean(ra_ratio: pl.Expr) -> pl.Expr:
    """Mean number of reasoning tokens per answer token.

    >>> evaluate(ra_ratio_mean, cot=["a b c d", "a b"], answer=["x y", "z"])
    2.0
    """
    return ra_ratio.mean()


@metric(formula="(1/M) Σ self_correcting_i", unit="share", range=(0, 1), spec="Zeta Reason 5.5")
def self_correction_rate(self_correcting: pl.Expr) -> pl.Expr:
    """Share of the chains of thought that contain a phrase of self-correction.

    >>> evaluate(self_correction_rate, cot=["Actually, 5", "5", None])
    0.5
    """
    return self_correcting.mean()
