"""Detect misspelled names."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONG_NAME = 8
"""Names of this length or longer may have two typing errors; shorter ones only one."""


def near_miss(given: str, names: Iterable[str]) -> str | None:
    """Return the name that is probably meant; None if no name is similar enough.

    >>> near_miss("mustnot", ["must_not", "checks"]), near_miss("height", ["weight"])
    ('must_not', None)
    """
    misspelled = bare(given)
    for name in names:
        other = bare(name)
        limit = 2 if len(other) >= LONG_NAME else 1
        if misspelled[:1] == other[:1] and _distance(misspelled, other, limit) <= limit:
            return name
    return None


def bare(name: str) -> str:
    """Return a name without case, blanks, underscores and hyphens."""
    return re.sub(r"[\s_-]", "", name).lower()


def _distance(a: str, b: str, limit: int) -> int:
    """Count insertions, deletions, substitutions and swaps; stop early beyond `limit`."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row, older = row, [i], before
        for j, y in enumerate(b, 1):
            best = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                best = min(best, older[j - 2] + 1)
            row.append(best)
        before = last
    return row[-1]
