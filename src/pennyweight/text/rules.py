"""What the rules for finding and for matching answers have in common: how they are written."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import polars as pl

from pennyweight.errors import UsageError, unknown


def named(given: object, kinds: Mapping[str, str], noun: str) -> tuple[str, Any]:
    """Read `kind`, `kind=value` or `{kind: value}`; the value is None where there is none.

    >>> named("marker=X:", {"marker": ""}, "Rule"), named({"marker": "X:"}, {"marker": ""}, "Rule")
    (('marker', 'X:'), ('marker', 'X:'))
    """
    known = ", ".join(kinds)
    value: Any
    if isinstance(given, str):
        kind, equals, text = given.partition("=")
        kind, value = kind.strip(), text if equals else None
    elif isinstance(given, Mapping) and len(given) == 1:
        kind, value = next(iter(given.items()))
    else:
        raise UsageError(f"One of these is needed, alone or with its value: {known}.")
    if kind not in kinds:
        raise UsageError(unknown(noun, str(kind), kinds, f"There are: {known}."))
    return kind, value


def rule_schema(kinds: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
    """Describe what `named` reads as a JSON schema, given the schemas of the values."""
    alone = [{"const": kind, "description": meaning} for kind, meaning in kinds.items()]
    tables = [
        {
            "type": "object",
            "description": kinds[kind],
            "properties": {kind: schema},
            "required": [kind],
            "additionalProperties": False,
        }
        for kind, schema in values.items()
    ]
    with_value = {"type": "string", "pattern": f"^({'|'.join(values)})="}
    return {"anyOf": [*alone, *tables, with_value]}


@lru_cache(maxsize=10_000)
def regex_problem(pattern: str) -> str | None:
    """Say what is wrong with a regular expression; None if nothing is.

    Patterns run in linear time, which is why a few things (look-around, back references) that
    other engines know are refused.

    >>> regex_problem("(a"), regex_problem("(a+)+$")
    ('unclosed group', None)
    """
    try:
        pl.Series([""]).str.contains(pattern)
    except pl.exceptions.PolarsError as error:
        lines = str(error).split("\n\nThis error occurred")[0].strip().splitlines()
        return lines[-1].removeprefix("error: ").removeprefix("regex error: ").rstrip(".")
    return None


def check_regex(pattern: str) -> None:
    """Refuse a regular expression that cannot be used."""
    problem = regex_problem(pattern)
    if problem:
        raise UsageError(f"{pattern!r} is no regular expression that can be used: {problem}.")


@lru_cache
def groups(pattern: str) -> int:
    """Count the groups of a regular expression."""
    dtype = pl.Series([""]).str.extract_groups(pattern).dtype
    assert isinstance(dtype, pl.Struct)
    return len(dtype.fields)
