"""Sums over columns that are the same every time."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl


def add(terms: Iterable[pl.Expr]) -> pl.Expr:
    """Add terms, always in the same order; null if one of them is null.

    The order of `pl.sum_horizontal` depends on how its threads run, and with it the last digit.

    >>> pl.select(add(pl.lit(value) for value in (0.5, 0.25, 4.0))).item()
    4.75
    """
    row = list(terms)
    while len(row) > 1:  # in pairs, so that thousands of terms are not nested deeply
        pairs = zip(row[::2], row[1::2], strict=False)
        row = [*(a + b for a, b in pairs), *row[len(row) // 2 * 2 :]]
    return row[0]
