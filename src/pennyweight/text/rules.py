"""The notation that rules for extracting and for matching answers share."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import polars as pl

from pennyweight.errors import UsageError, unknown


def named(given: object, kinds: Mapping[str, str], noun: str) -> tuple[str, Any]:
    """Read `kind`, `kind=value` or `{kind: value}`; the value is None if there is none.

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
    """Return the JSON schema of what `named` reads, given the schemas of the values."""
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
    """Return what is wrong with a regular expression; None if it is valid.

    Patterns run in linear time, so a few features of other engines (look-around, back references)
    are not supported.

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
    """Raise UsageError for a regular expression that cannot be used."""
    problem = regex_problem(pattern)
    if problem:
        raise UsageError(f"{pattern!r} is not a usable regular expression: {problem}.")


@lru_cache
def groups(pattern: str) -> int:
    """Count the groups of a regular expression."""
    dtype = pl.Series([""]).str.extract_groups(pattern).dtype
    assert isinstance(dtype, pl.Struct)
    return len(dtype.fields)
