"""Versions of what is evaluated, and the threshold that applies to each."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pennyweight.errors import UsageError

_FORM = re.compile(r"[vV]?([0-9]+(?:\.[0-9]+)*)(?:[-+.]?([A-Za-z].*))?")

Key = tuple[tuple[int, ...], bool]


def version_key(text: str) -> Key | None:
    """Return a sort key for a version; None for a word such as `Target`.

    >>> version_key("v2") == version_key("2.0.0"), version_key("2.0-rc1") < version_key("2.0")
    (True, True)
    """
    found = _FORM.fullmatch(text.strip())
    if not found:
        return None
    parts = [int(part) for part in found[1].split(".")]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts), found[2] is None


def in_force(versions: Iterable[str], evaluated: str) -> str | None:
    """Return the highest version that is not above the evaluated one; None if all are above it.

    >>> in_force(["v1.0", "v2.0", "v3.0", "Target"], "2.4")
    'v2.0'
    """
    known = list(versions)
    for name in known:
        if name.strip().lower() == evaluated.strip().lower():
            return name
    wanted = version_key(evaluated)
    if wanted is None:
        words = ", ".join(known)
        raise UsageError(f"--version {evaluated!r} is not a version such as v2.0. Known: {words}.")
    below = [(key, name) for name in known if (key := version_key(name)) and key <= wanted]
    return max(below)[1] if below else None
