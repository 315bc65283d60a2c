"""Tokens of one attempt."""

from __future__ import annotations

import polars as pl

from pennyweight.define import measure


@measure(unit="tokens", spec="Zeta Reason 6.1")
def total_tokens(prompt_tokens: pl.Expr, completion_tokens: pl.Expr) -> pl.Expr:
    """The sum of input and output tokens; null if either is missing.

    >>> evaluate(total_tokens, prompt_tokens=[10, 10], completion_tokens=[5, None])
    [15, None]
    """
    return prompt_tokens + completion_tokens
