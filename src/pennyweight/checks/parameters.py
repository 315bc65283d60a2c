"""The kinds of values that checks take, as annotations of their parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, DecimalException
from typing import Annotated, Any

import polars as pl

from pennyweight.errors import UsageError
from pennyweight.schema import kinds
from pennyweight.schema.kinds import ListOf, MapOf, OneOf, ParsedBy
from pennyweight.schema.user_code import load_function
from pennyweight.text.matching import MatchRule
from pennyweight.text.rules import check_regex
from pennyweight.text.scanning import json_path

_UNRELATED = ("", "x", "7 – §?", "\n \n")
"""Texts with nothing in common: a pattern that matches all of them is useless."""
_STRING = {"type": "string"}
_NUMBER_OR_TEXT = {"type": ["number", "string"]}
_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(ms|s|min)?\s*")
_MILLISECONDS = {"ms": 1.0, "s": 1000.0, "min": 60_000.0, None: 1.0}


def _part(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError
    try:
        number = Decimal(str(value).replace(",", ""))
    except DecimalException:
        raise ValueError from None
    if not number.is_finite():
        raise ValueError
    return number


def _pattern(pattern: str) -> str:
    check_regex(pattern)
    if pl.Series(_UNRELATED).str.contains(pattern).all():
        raise UsageError(f"{pattern!r} matches any text.")
    return pattern


def _tolerance(value: Any) -> str:
    MatchRule.parse({"numeric": value})
    return str(value)


def _path(path: str) -> str:
    json_path(path)
    return path


def _duration(text: str) -> float:
    found = _DURATION.fullmatch(text)
    if not found:
        raise ValueError
    return float(found[1]) * _MILLISECONDS[found[2]]


def _meaning(text: str) -> str:
    from pennyweight.checks.embedding import model_folder  # noqa: PLC0415

    model_folder()
    return text


def _command(value: Any) -> tuple[str, ...]:
    return ("sh", "-c", value) if isinstance(value, str) else tuple(value)


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    from pennyweight.checks.json_values import check_schema  # noqa: PLC0415

    check_schema(schema)
    return schema


def _function(path: str) -> str:
    if not path.rpartition(":")[0]:
        raise ValueError
    load_function(path)
    return path


def one_of(*words: str) -> OneOf:
    """Return a kind for a few words."""
    return OneOf(words)


def _many(kind: kinds.Kind, expected: str = "a list of texts") -> ListOf:
    return ListOf(kind, expected, some=True)


_TEXT = kinds.Text()
_STRICT = kinds.Text(strict=True)
_PART = ParsedBy(_part, _TEXT.schema(), "text that is not empty", _TEXT)
_EDGE = kinds.Text("text that is not empty", filled=True)
_PATTERN = ParsedBy(_pattern, _STRING, "a regular expression", _STRICT)
_WORDS = kinds.AnyOf((kinds.Text("a shell command", strict=True, filled=True), _many(_TEXT)))

Text = Annotated[str, _TEXT]
Texts = Annotated[Sequence[str], _many(_TEXT)]
Part = Annotated[str, _PART]
Parts = Annotated[Sequence[str], _many(_PART)]
Edge = Annotated[str, _EDGE]
Edges = Annotated[Sequence[str], _many(_EDGE)]
Flag = Annotated[bool, kinds.Flag()]
Number = Annotated[Decimal, ParsedBy(_decimal, _NUMBER_OR_TEXT, "a number")]
Positive = Annotated[float, kinds.Number(0, loose=True)]
Count = Annotated[int, kinds.Number(0, whole=True, loose=True)]
Share = Annotated[float, kinds.Number(0, 1, loose=True)]
Pattern = Annotated[str, _PATTERN]
Patterns = Annotated[Sequence[str], _many(_PATTERN, "a list of regular expressions")]
Tolerance = Annotated[str, ParsedBy(_tolerance, _NUMBER_OR_TEXT, "a tolerance, such as 0.5 or 1%")]
Path = Annotated[str, ParsedBy(_path, _STRING, "a path, such as $.order.id", _STRICT)]
Duration = Annotated[
    float, ParsedBy(_duration, _NUMBER_OR_TEXT, "milliseconds, or a time such as 2s", _TEXT)
]
Meaning = Annotated[str, ParsedBy(_meaning, _TEXT.schema(), "text", _TEXT)]
Table = Annotated[dict[str, Any], MapOf(kinds.Anything())]
Schema = Annotated[
    dict[str, Any], ParsedBy(_schema, {"type": "object"}, "a JSON schema", MapOf(kinds.Anything()))
]
Function = Annotated[str, ParsedBy(_function, _STRING, "a function, as module:function", _STRICT)]
Command = Annotated[
    tuple[str, ...],
    ParsedBy(_command, {"type": ["string", "array"]}, "a shell command or a list of words", _WORDS),
]
Anything = Annotated[Any, kinds.Anything()]
Behaviours = Annotated[
    Sequence[Any],
    _many(kinds.AnyOf((kinds.Text(filled=True), MapOf(kinds.Anything()))), "a list of behaviours"),
]
