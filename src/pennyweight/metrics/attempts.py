"""Metrics of the attempts themselves: errors and truncation."""

from __future__ import annotations

import polars as pl

from pennyweight.define import share


@share(formula="errors / records", better="lower", needs=(), over="all", spec="Pennyweight")
def attempt_error_rate(status: pl.Expr) -> pl.Expr:
    """Share of attempts that failed: the model could not be reached or the harness failed.

    >>> evaluate(attempt_error_rate, status=["ok", "error", None, "timeout"])
    0.25
    """
    return (status.fill_null("ok") == "error").mean()


@share(formula="(1/M) Σ truncated_i", better="lower", spec="Pennyweight")
def truncated_rate(truncated: pl.Expr) -> pl.Expr:
    """Share of responses that were cut off at the token limit.

    >>> evaluate(truncated_rate, truncated=[True, False, None, False])
    0.3333333333333333
    """
    return truncated.mean()
