"""What a check may be given: each kind of parameter reads a value and has a JSON schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl

from pennyweight.errors import UsageError
from pennyweight.schema.user_code import load_function
from pennyweight.text.matching import MatchRule
from pennyweight.text.rules import check_regex
from pennyweight.text.scanning import json_path

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind of value: what it is called, how it is read, and how editors see it."""

    words: str
    read: Callable[[Any], Any]
    """Gives the value, or raises ValueError (it is not of this kind) or UsageError (says why)."""
    schema: Mapping[str, Any]


_ANY = ("", "x", "7 – §?", "\n \n")
"""Texts that have nothing in common: what matches all of them says nothing."""
_SCALAR = {"type": ["string", "number", "boolean"]}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise ValueError
    return str(value)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError
    return tuple(map(_text, value))


def _part(value: Any) -> str:
    text = _text(value)
    if not text:
        raise UsageError("It is empty: it stands in any text.")
    return text


def _edge(value: Any) -> str:
    text = _text(value)
    if not text.strip():
        raise UsageError("It is empty: any text begins and ends with it.")
    return text


def _each(read: Callable[[Any], str]) -> Callable[[Any], tuple[str, ...]]:
    return lambda value: tuple(map(read, _texts(value)))


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError
    try:
        number = Decimal(str(value).replace(",", ""))
    except DecimalException:
        raise ValueError from None
    if not number.is_finite():
        raise ValueError
    return number


def _positive(value: Any) -> float:
    number = float(_number(value))
    if number < 0:
        raise ValueError
    return number


def _share(value: Any) -> float:
    number = _positive(value)
    if number > 1:
        raise ValueError
    return number


def _count(value: Any) -> int:
    number = _number(value)
    if number < 0 or number != int(number):
        raise ValueError
    return int(number)


def _pattern(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    check_regex(value)
    if pl.Series(_ANY).str.contains(value).all():
        raise UsageError(f"{value!r} matches any text.")
    return value


def _patterns(value: Any) -> tuple[str, ...]:
    return tuple(map(_pattern, _texts(value)))


def _tolerance(value: Any) -> str:
    MatchRule.parse({"numeric": value})
    return str(value)


def _path(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    json_path(value)
    return value


_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(ms|s|min)?\s*")
_UNITS = {"ms": 1.0, "s": 1000.0, "min": 60_000.0, None: 1.0}


def _duration(value: Any) -> float:
    found = _DURATION.fullmatch(str(value)) if not isinstance(value, bool) else None
    if not found:
        raise ValueError
    return float(found[1]) * _UNITS[found[2]]


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError
    return dict(value)


def _meaning(value: Any) -> str:
    from pennyweight.checks.embedding import model_folder  # noqa: PLC0415

    model_folder()
    return _text(value)


def _command(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) and value.strip():
        return ("sh", "-c", value)
    return _texts(value)


def _schema(value: Any) -> dict[str, Any]:
    table = _mapping(value)
    from pennyweight.checks.json_values import check_schema  # noqa: PLC0415

    check_schema(table)
    return table


def _function(value: Any) -> str:
    if not isinstance(value, str) or not value.rpartition(":")[0]:
        raise UsageError("It names a function as module:function.")
    load_function(value)
    return value


def one_of(*words: str) -> Kind:
    """Make a kind of a few words."""

    def read(value: Any) -> str:
        if value not in words:
            raise ValueError
        return str(value)

    return Kind(" or ".join(map(repr, words)), read, {"enum": list(words)})


_MANY = {"type": "array", "items": _SCALAR, "minItems": 1}

Text = Annotated[str, Kind("text", _text, _SCALAR)]
Texts = Annotated[tuple[str, ...], Kind("a list of texts", _texts, _MANY)]
Part = Annotated[str, Kind("text that is not empty", _part, _SCALAR)]
Parts = Annotated[tuple[str, ...], Kind("a list of texts", _each(_part), _MANY)]
Edge = Annotated[str, Kind("text that is not empty", _edge, _SCALAR)]
Edges = Annotated[tuple[str, ...], Kind("a list of texts", _each(_edge), _MANY)]
Flag = Annotated[bool, Kind("true or false", _flag, {"type": "boolean"})]
Number = Annotated[Decimal, Kind("a number", _number, {"type": ["number", "string"]})]
Positive = Annotated[
    float, Kind("a number of at least 0", _positive, {"type": "number", "minimum": 0})
]
Count = Annotated[
    int, Kind("a whole number of at least 0", _count, {"type": "integer", "minimum": 0})
]
Pattern = Annotated[str, Kind("a regular expression", _pattern, {"type": "string"})]
Patterns = Annotated[
    tuple[str, ...],
    Kind("a list of regular expressions", _patterns, {**_MANY, "items": {"type": "string"}}),
]
Tolerance = Annotated[
    str, Kind("a tolerance, such as 0.5 or 1%", _tolerance, {"type": ["number", "string"]})
]
Path = Annotated[str, Kind("a path, such as $.order.id", _path, {"type": "string"})]
Duration = Annotated[
    float, Kind("milliseconds, or a time such as 2s", _duration, {"type": ["number", "string"]})
]
Meaning = Annotated[str, Kind("text", _meaning, _SCALAR)]
Share = Annotated[
    float, Kind("a number from 0 to 1", _share, {"type": "number", "minimum": 0, "maximum": 1})
]
Table = Annotated[dict[str, Any], Kind("a mapping", _mapping, {"type": "object"})]
Schema = Annotated[dict[str, Any], Kind("a JSON schema", _schema, {"type": "object"})]
Function = Annotated[str, Kind("a function, as module:function", _function, {"type": "string"})]
Command = Annotated[
    tuple[str, ...],
    Kind("a line for the shell or a list of words", _command, {"type": ["string", "array"]}),
]
Anything = Annotated[Any, Kind("any value", lambda value: value, {})]
