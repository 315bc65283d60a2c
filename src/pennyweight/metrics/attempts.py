"""Metrics of the attempts themselves: errors and truncation."""

from __future__ import annotations

import polars as pl

from pennyweight.define import share
from pennyweight.record import FAILED


@share(
    title="attempts with errors",
    formula="errors / records",
    better="lower",
    needs=(),
    over="all",
    spec="Pennyweight",
)
def attempt_error_rate(status: pl.Expr) -> pl.Expr:
    """Share of attempts that failed: the model could not be reached or the harness failed.

    >>> evaluate(attempt_error_rate, status=["ok", "error", None, "timeout"])
    0.25
    """
    return status.fill_null("ok").cast(pl.String).is_in(["error", FAILED]).mean()


@share(
    title="failures reported by agents",
    formula="reported / records",
    better="lower",
    needs=(),
    over="all",
    spec="Pennyweight",
)
def reported_failure_rate(status: pl.Expr, error_kind: pl.Expr) -> pl.Expr:
    """Share of attempts in which an agent itself reported that it could not work.

    That an API was overloaded, or a key refused, is known only from the agent's output. Such an
    attempt is retried, and left out of the quality metrics if every try ends like that. This rate
    counts both, so that no agent can hide its failures in this way.

    >>> kinds = ["reported_server", None, "workspace", None]
    >>> evaluate(reported_failure_rate, status=["ok", "ok", "error", "ok"], error_kind=kinds)
    0.25
    """
    reported = error_kind.fill_null("").str.starts_with("reported_")
    return (status.is_not_null() & reported).mean()


@share(
    title="cut off at the limit", formula="(1/M) Σ truncated_i", better="lower", spec="Pennyweight"
)
def truncated_rate(truncated: pl.Expr) -> pl.Expr:
    """Share of responses that were cut off at the token limit.

    >>> evaluate(truncated_rate, truncated=[True, False, None, False])
    0.3333333333333333
    """
    return truncated.mean()
