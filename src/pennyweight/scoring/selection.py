"""Which records are meant: those with given values in given columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import polars as pl

from pennyweight.define import MEASURES
from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.record import BY_NAME


def cell_key(column: str) -> pl.Expr:
    """Return the cells of a column as they are compared: without case and surrounding space."""
    return pl.col(column).cast(pl.String).str.strip_chars().str.to_lowercase()


def selects(column: str, value: str) -> pl.Expr:
    """Return whether a record has a value in a column.

    >>> pl.DataFrame({"tier": ["T0", " t0 ", "T1"]}).filter(selects("tier", "T0")).height
    2
    """
    return cell_key(column) == value.strip().lower()


def refuse_empty(where: Mapping[str, str], present: Collection[str]) -> None:
    """Raise an error for a selection without any record; `present` are the columns there are."""
    for column in where:
        if column not in present and column not in MEASURES:
            known = {*present, *BY_NAME, *MEASURES} - {column}
            raise UsageError(f"--where: {unknown('Column', column, known, 'No record has it.')}")
    values = ", ".join(f"{name}={value}" for name, value in where.items())
    raise InputError([f"There are no records with {values}."])
