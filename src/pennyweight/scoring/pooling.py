"""Pooled records: which sides, data sets or tools a number is over that nobody would add up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import polars as pl

from pennyweight.text.format import plural

_NOUNS = {
    "subject": "subject",
    "tier": "tier",
    "suite": "data set",
    "dataset": "data set",
    "benchmark": "data set",
    "split": "split",
    "tool": "tool",
}
COLUMNS = tuple(_NOUNS)
"""The columns whose values are counted: an average over several of them is of none of them."""
FOREIGN = ("suite", "dataset", "benchmark", "split")
"""Those that are no columns of the record, but of runs, logs and tables."""
MAX_APART = 20
"""Up to this many groups are shown apart by themselves."""


def pooled_words(pooled: Mapping[str, int]) -> str:
    """Say what is pooled; nothing if nothing is.

    >>> pooled_words({"subject": 2, "suite": 3, "dataset": 3})
    '2 subjects, 3 data sets pooled'
    """
    counts: dict[str, int] = {}
    for column, number in pooled.items():
        noun = _NOUNS[column]
        counts[noun] = max(number, counts.get(noun, 0))
    return f"{', '.join(plural(n, noun) for noun, n in counts.items())} pooled" if counts else ""


def several(counts: Mapping[str, int]) -> dict[str, int]:
    """Keep the columns that have several values.

    >>> several({"subject": 2, "tier": 1, "suite": 0})
    {'subject': 2}
    """
    return {column: number for column, number in counts.items() if number > 1}


def most_pooled(sides: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the most values of each column that one of some sides averages over."""
    most: dict[str, int] = {}
    for side in sides:
        most |= {column: max(number, most.get(column, 0)) for column, number in side.items()}
    return most


def apart(values: Callable[[Sequence[str]], pl.DataFrame]) -> list[str]:
    """Choose the columns that show each side by itself, as far as there are not too many.

    `values` returns the distinct values of some columns. A column that tells nothing further apart
    is left out, such as the tool where each subject has its own.
    """
    chosen: list[str] = []
    groups = 1
    for column in COLUMNS:
        found = values([*chosen, column])
        if found[column].drop_nulls().n_unique() > 1 and groups < found.height <= MAX_APART:
            chosen.append(column)
            groups = found.height
    return chosen
