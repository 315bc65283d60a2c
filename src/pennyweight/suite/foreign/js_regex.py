"""Regular expressions of JavaScript as those of suites, which run in linear time."""

from __future__ import annotations

import re

from pennyweight.errors import UsageError
from pennyweight.text.rules import check_regex

_QUANTIFIER = re.compile(r"\{\d+(?:,\d*)?\}")
_OUTSIDE = {"d": "[0-9]", "D": "[^0-9]", "w": "[A-Za-z0-9_]", "W": "[^A-Za-z0-9_]"}
_INSIDE = {"d": "0-9", "w": "A-Za-z0-9_"}
_BOUNDARIES = {"b": r"(?-u:\b)", "B": r"(?-u:\B)"}


def from_javascript(pattern: str) -> str:
    r"""Translate a pattern; raise UsageError if it cannot be expressed.

    In JavaScript \d and \w mean ASCII only, `{` and `[` need no backslash everywhere, and `[^]` is
    any character.

    >>> from_javascript(r'^\{"total": \d{2}[[\w]'), from_javascript("[^]")
    ('^\\{"total": [0-9]{2}[\\[A-Za-z0-9_]', '(?s:.)')
    """
    made: list[str] = []
    at, inside = 0, False
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\" and at + 1 < len(pattern):
            made.append(_escaped(pattern[at + 1], inside=inside))
            at += 2
            continue
        if not inside and pattern.startswith(("[^]", "[]"), at):
            whole = pattern.startswith("[^]", at)
            made.append("(?s:.)" if whole else r"[^\s\S]")
            at += 3 if whole else 2
            continue
        if inside:
            inside = sign != "]"
            doubled = sign in "&-~" and pattern[at + 1 : at + 2] == sign
            made.append("\\" + sign if sign == "[" or doubled else sign)
        elif sign == "{" and not _QUANTIFIER.match(pattern, at):
            made.append(r"\{")
        else:
            inside = sign == "["
            made.append(sign)
        at += 1
    written = "".join(made)
    check_regex(written)
    return written


def _escaped(sign: str, *, inside: bool) -> str:
    if inside and sign in "DW":
        raise UsageError(rf"\{sign} in a class cannot be expressed")
    known = _INSIDE if inside else {**_OUTSIDE, **_BOUNDARIES}
    if sign == "/":
        return "/"
    return known.get(sign, "\\" + sign)
