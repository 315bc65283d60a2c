"""The order in which people list names: numbers in them count as numbers."""

from __future__ import annotations

import math
import re

import polars as pl

_ROW = "\0row"
_PARTS = re.compile(r"\d+|\D+", re.ASCII)


def natural(name: str) -> list[tuple[float, str]]:
    """Return a sort key that puts T2 before T10, and numbers before words.

    >>> sorted(["probe@100%", "probe@25%", "probe@0%"], key=natural)
    ['probe@0%', 'probe@25%', 'probe@100%']
    """
    return [
        (int(p) if len(p) < 19 and p[0] in "0123456789" else math.inf, p)
        for p in _PARTS.findall(name)
    ]


def in_natural_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows by their columns, the first of them first; missing values are last.

    >>> in_natural_order(pl.DataFrame({"tier": ["T10", None, "T2"]}))["tier"].to_list()
    ['T2', 'T10', None]
    """
    texts = [n for n, kind in rows.schema.items() if kind in (pl.String, pl.Categorical)]
    keys = [
        _ranked(rows[name].cast(pl.String)) if name in texts else rows[name]
        for name in rows.columns
    ]
    ordered = pl.DataFrame(keys).with_row_index(_ROW).sort(rows.columns, nulls_last=True)
    return rows[ordered[_ROW]]


def _ranked(names: pl.Series) -> pl.Series:
    known = sorted(names.drop_nulls().unique(), key=natural)
    return names.cast(pl.Enum(known))
