"""Tell a misspelt name from one that means something else."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONG = 8
"""From so many letters on two of them may be wrong."""


def near_miss(given: str, names: Iterable[str]) -> str | None:
    """Find the name that is meant by one that is nearly it; None where it is one of its own.

    >>> near_miss("mustnot", ["must_not", "checks"]), near_miss("height", ["weight"])
    ('must_not', None)
    """
    said = _bare(given)
    for name in names:
        wanted = _bare(name)
        most = 2 if len(wanted) >= LONG else 1
        if said[:1] == wanted[:1] and _distance(said, wanted, most) <= most:
            return name
    return None


def _bare(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


def _distance(a: str, b: str, most: int) -> int:
    """Count the letters to add, drop, change or swap; more than `most` is just more."""
    if abs(len(a) - len(b)) > most:
        return most + 1
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
