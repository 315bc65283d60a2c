"""Find a pattern in a text, in linear time, and say where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from assay.checks.declare import Found, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.checks.seen import Seen


def search(pattern: str, text: str, of: str = "response") -> Found | None:
    """Find the first match of a regular expression; places count characters.

    >>> search("(?i)b+", "äBbc")
    Found(of='response', text='Bb', start=1, end=3)
    """
    column = pl.Series([text], dtype=pl.String)
    at = column.str.find(pattern, literal=False).item()
    if at is None:
        return None
    matched: str = column.str.extract(pattern, 0).item()
    start = at if text.isascii() else len(text.encode("utf-8", "surrogatepass")[:at].decode())
    return Found(of, matched, start, start + len(matched))


def literal(text: str, *, case: bool) -> str:
    """Write the pattern that matches a text as it is."""
    return pl.escape_regex(text) if case else f"(?i:{pl.escape_regex(text)})"


def every(pattern: str, text: str, of: str) -> Iterator[Found]:
    """Find all matches, one after the other."""
    at = 0
    for matched in pl.Series([text], dtype=pl.String).str.extract_all(pattern).item():
        start = text.index(matched, at)
        at = start + len(matched)
        yield Found(of, matched, start, at)


def nothing_said(seen: Seen) -> Verdict:
    """Give the verdict about a text that is not there: nothing stands in it."""
    return Verdict(holds=False, why=f"There is no {seen.of} to look at.")
