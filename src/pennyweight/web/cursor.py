"""Where in a list of records a page stands: its address tells it, so that nobody has to count."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SIZE = 50
"""Records on a page."""


def first_shown(
    query: Mapping[str, str], many: int, total: int | None, *, newer: bool, older: bool
) -> int | None:
    """Give the number of a page's first record in the list, where that is known.

    >>> first_shown({"after": "…", "start": "51"}, 50, None, newer=True, older=True)
    51
    """
    if not newer:
        return 1
    if not older and total is not None:
        return total - many + 1
    told = query.get("start", "")
    return int(told) if told.isdecimal() and len(told) < 12 else None


def texts(written: str) -> list[str | None]:
    """Read a list of texts as an address has it; none where it makes no sense."""
    try:
        found = json.loads(written)
    except (ValueError, RecursionError):
        return []
    return [v for v in found if v is None or isinstance(v, str)] if isinstance(found, list) else []
