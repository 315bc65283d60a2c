"""Descriptive statistics of one column, as the specification of repeated runs defines them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class Statistics:
    """Median, mean, mode, range and population standard deviation of values."""

    median: float
    mean: float
    mode: float
    min: float
    max: float
    std_dev: float | None
    """None where a value is infinite."""
    count: int


def describe(column: str) -> pl.Expr:
    """Describe a column as a struct with the fields of `Statistics`; the smallest mode on ties."""
    values = pl.col(column).cast(pl.Float64).drop_nulls()
    spread = pl.when(values.is_finite().all()).then(values.std(ddof=0))
    return pl.struct(
        values.median().alias("median"),
        values.mean().alias("mean"),
        values.mode().min().alias("mode"),
        values.min().alias("min"),
        values.max().alias("max"),
        spread.alias("std_dev"),
        values.len().alias("count"),
    ).alias(column)


def statistics(values: list[float]) -> Statistics | None:
    """Describe a list of numbers; None if it is empty.

    >>> statistics([1, 1, 0, 1, 1, 1, 0, 1, 1, 1]).std_dev
    0.4
    """
    row = pl.DataFrame({"x": values}, schema={"x": pl.Float64}).select(describe("x")).item()
    return from_row(row)


def from_row(row: dict[str, float]) -> Statistics | None:
    """Make `Statistics` from the struct that `describe` computes."""
    return Statistics(**row) if row["count"] else None  # type: ignore[arg-type]
