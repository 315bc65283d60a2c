"""Regular expressions of JavaScript and Python as those of suites, which run in linear time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pennyweight.errors import UsageError
from pennyweight.text.rules import check_regex

_QUANTIFIER = re.compile(r"\{\d+(?:,\d*)?\}")


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What a language writes after a backslash, outside and inside of a class."""

    outside: Mapping[str, str]
    inside: Mapping[str, str]
    empty_classes: bool
    """Whether `[]` and `[^]` are whole classes."""


_JAVASCRIPT = _Dialect(
    {
        "d": "[0-9]",
        "D": "[^0-9]",
        "w": "[A-Za-z0-9_]",
        "W": "[^A-Za-z0-9_]",
        "b": r"(?-u:\b)",
        "B": r"(?-u:\B)",
    },
    {"d": "0-9", "w": "A-Za-z0-9_"},
    empty_classes=True,
)
_PYTHON = _Dialect({"Z": r"\z"}, {}, empty_classes=False)


def from_javascript(pattern: str) -> str:
    r"""Translate a pattern; raise UsageError if it cannot be expressed.

    In JavaScript \d and \w mean ASCII only, `{` and `[` need no backslash everywhere, and `[^]` is
    any character.

    >>> from_javascript(r'^\{"total": \d{2}[[\w]'), from_javascript("[^]")
    ('^\\{"total": [0-9]{2}[\\[A-Za-z0-9_]', '(?s:.)')
    """
    return _translated(pattern, _JAVASCRIPT)


def from_python(pattern: str) -> str:
    r"""Translate a pattern; raise UsageError if it cannot be expressed.

    >>> from_python(r"boxed{(\d+)}\Z"), from_python(r"(?s).*#### ")
    ('boxed\\{(\\d+)}\\z', '(?s).*#### ')
    """
    return _translated(pattern, _PYTHON)


def _translated(pattern: str, dialect: _Dialect) -> str:
    made: list[str] = []
    at, inside = 0, False
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\" and at + 1 < len(pattern):
            made.append(_escaped(pattern[at + 1], dialect, inside=inside))
            at += 2
            continue
        if dialect.empty_classes and not inside and pattern.startswith(("[^]", "[]"), at):
            whole = pattern.startswith("[^]", at)
            made.append("(?s:.)" if whole else r"[^\s\S]")
            at += 3 if whole else 2
            continue
        if inside:
            first = pattern[at - 1] == "[" or pattern[at - 2 : at] == "[^"
            inside = sign != "]" or (first and not dialect.empty_classes)
            doubled = sign in "&-~" and pattern[at + 1 : at + 2] == sign
            literal = sign == "[" or doubled or (sign == "]" and inside)
            made.append("\\" + sign if literal else sign)
        elif sign == "{" and not _QUANTIFIER.match(pattern, at):
            made.append(r"\{")
        else:
            inside = sign == "["
            made.append(sign)
        at += 1
    written = "".join(made)
    check_regex(written)
    return written


def _escaped(sign: str, dialect: _Dialect, *, inside: bool) -> str:
    known = dialect.inside if inside else dialect.outside
    if inside and sign in "DW" and dialect.inside:
        raise UsageError(rf"\{sign} in a class cannot be expressed")
    if sign in "/<>":
        return sign
    return known.get(sign, "\\" + sign)
