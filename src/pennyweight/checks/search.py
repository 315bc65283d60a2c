"""Search texts in linear time, with the positions of matches."""

from __future__ import annotations

import re
from functools import lru_cache

import polars as pl

from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.declaration import CheckResult, Excerpt


def search(pattern: str, text: str, of: str = "response") -> Excerpt | None:
    """Find the first match of a regular expression; positions count characters.

    >>> search("(?i)b+", "äBbc")
    Excerpt(of='response', text='Bb', start=1, end=3)
    """
    column = pl.Series([text], dtype=pl.String)
    at = column.str.find(pattern, literal=False).item()
    if at is None:
        return None
    matched: str = column.str.extract(pattern, 0).item()
    start = at if text.isascii() else len(text.encode("utf-8", "surrogatepass")[:at].decode())
    return Excerpt(of, matched, start, start + len(matched))


@lru_cache(maxsize=10_000)
def _literal(text: str, form: str, case: bool) -> re.Pattern[str]:
    return re.compile(form.format(re.escape(text)), re.NOFLAG if case else re.IGNORECASE)


def search_text(
    text: str, said: str, of: str = "response", *, case: bool = False, form: str = "{}"
) -> Excerpt | None:
    """Find a literal text; `form` may anchor it. The pattern cannot backtrack.

    >>> search_text("b.", "aB.c")
    Excerpt(of='response', text='B.', start=1, end=3)
    """
    found = _literal(text, form, case).search(said)
    return Excerpt(of, found[0], found.start(), found.end()) if found else None


def nothing_said(attempt: AttemptView) -> CheckResult:
    """Return the result for a text that is missing."""
    return CheckResult(holds=False, why=f"The attempt has no {attempt.of}.")
