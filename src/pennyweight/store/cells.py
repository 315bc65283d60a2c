"""Check the cells of a store. Others may write to it, so a value may have any type."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from types import FunctionType
from typing import Any, TypeVar

import polars as pl
from sqlalchemy import Column, Table

from pennyweight.errors import DamagedError, PennyweightError
from pennyweight.text.extraction import AnswerRule
from pennyweight.text.rules import regex_problem

T = TypeVar("T")
MAX_TIME = 253_402_300_800.0
"""The year 10000 in Unix seconds; no date can be shown after it."""
TIMES = ("created", "ended", "at")
_TYPES: dict[type, Any] = {str: pl.String, int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


class Whole(dict[str, Any]):
    """The shape of a mapping that has all of these keys."""


def _is_decimal(value: Any) -> bool:
    try:
        return isinstance(value, str) and Decimal(value).is_finite()
    except InvalidOperation:
        return False


def _is_rule(value: Any) -> bool:
    try:
        kind, detail = value["kind"], value["value"]
        return AnswerRule.parse({kind: detail} if detail else kind) == AnswerRule(kind, detail)
    except (PennyweightError, TypeError, KeyError):
        return False


def _is_match(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    texts, flags = ("kind", "separator", "each"), ("case", "punctuation", "digits")
    return all(
        isinstance(v, str)
        if n in texts
        else isinstance(v, bool)
        if n in flags
        else _are_patterns(v)
        if n == "ignore"
        else _has_shape(v, [str])
        if n == "labels"
        else n in ("absolute", "relative") and _is_decimal(v)
        for n, v in value.items()
    )


def _are_patterns(value: Any) -> bool:
    texts = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return texts and all(regex_problem(one) is None for one in value)


def _is_range(value: Any) -> bool:
    ends = value or [None, None]
    return isinstance(ends, list) and len(ends) == 2 and _has_shape(ends, [int | float | None])


def _is_planned_task(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and isinstance(value[0], str)


_SCORE = Whole(kind=str, labels=[str], range=_is_range, unit=str, summary=str, better=str | None)


def _are_scores(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _has_shape(one, _SCORE)
        and one["kind"] in {"number", "flag", "label"}
        and one["better"] in {None, "higher", "lower"}
        for one in value.values()
    )


_RUBRIC_ITEM = Whole(id=str, points=int | float)
SETTINGS: dict[str, Any] = {
    "subjects": [str],
    "tiers": [str],
    "runs": int,
    "tasks": int,
    "limits": dict,
    "answer": _is_rule,
    "match": _is_match,
    "confidence": str | None,
    "judge": Whole(
        judges=[str],
        more=[str],
        mark=str,
        consensus=str,
        rubric=Whole(pass_mark=int | float, categories=[Whole(items=[_RUBRIC_ITEM])]),
    ),
    "log": Whole(tools=[str], files=[str]),
    "until_decided": Whole(tasks=[_is_planned_task], runs=int),
    "narrowing": {
        **{name: [str] for name in ("tasks", "subjects", "tiers", "models")},
        **dict.fromkeys(("limit", "sample", "seed", "of_tasks", "of_runs"), int),
        "changes": dict,
    },
    "partial": [str],
    "scores": _are_scores,
    "scored": int | float,
}
"""The shape of a run's settings, as far as code relies on it."""


@dataclass(frozen=True, slots=True)
class DamagedRun:
    """A run with a value that no version of Pennyweight has written."""

    id: str
    problem: str

    @property
    def advice(self) -> str:
        """What to do about it."""
        command = f"pennyweight rm {shlex.quote(self.id)}"
        return f"Delete it with {command!r}, or restore the store from a backup."


def sound(
    items: Iterable[T], run_of: Callable[[T], Any], check: Callable[[T], object]
) -> tuple[tuple[T, ...], tuple[DamagedRun, ...]]:
    """Separate what can be read from the runs whose part of it is damaged."""
    good, bad = [], []
    for item in items:
        try:
            check(item)
            good.append(item)
        except DamagedError as error:
            bad.append(DamagedRun(str(run_of(item)), error.problem))
    return tuple(good), tuple(bad)


def damaged(what: str) -> DamagedError:
    """Return the error for a value that no version of Pennyweight has written."""
    advice = "Restore the store from a backup, or delete the run with 'pennyweight rm RUN'."
    return DamagedError(f"The store is damaged: {what}.", advice)


def checked(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row whose cells have the types of their columns; SQLite's numbers become flags."""
    for name, value in row.items():
        column = table.c[name]
        if not _fits(column, value):
            raise _wrong(table, column, value)
    flags = [c.name for c in table.c if c.name in row and c.type.python_type is bool]
    return {**row, **{n: None if row[n] is None else bool(row[n]) for n in flags}}


def check_column(table: Table, name: str, values: Sequence[Any]) -> None:
    """Raise an error unless all values have the type of their column, or are null."""
    if {*map(type, values)} <= _types_of(table, name):
        return
    column = table.c[name]
    bad = (value for value in values if value is not None and not _fits(column, value))
    raise _wrong(table, column, next(bad, None))


@cache
def _types_of(table: Table, name: str) -> frozenset[type]:
    kind = table.c[name].type.python_type
    return frozenset({kind, type(None)} | ({int} if kind is float else set()))


def frame(table: Table, columns: Sequence[Column[Any]], rows: Sequence[Any]) -> pl.DataFrame:
    """Return rows as a table, each column with its type."""
    cells = zip(*rows, strict=True) if rows else [()] * len(columns)
    return pl.DataFrame([_series(table, c, held) for c, held in zip(columns, cells, strict=True)])


def _series(table: Table, column: Column[Any], held: Sequence[Any]) -> pl.Series:
    kind = column.type.python_type
    try:
        if kind is bool:  # SQLite stores booleans as numbers
            held = [None if value is None else bool(value) for value in held]
        return pl.Series(column.name, held, dtype=_TYPES[kind])
    except (TypeError, OverflowError, pl.exceptions.PolarsError) as error:
        bad = (value for value in held if not _fits(column, value))
        raise _wrong(table, column, next(bad, None)) from error


def _fits(column: Column[Any], value: Any) -> bool:
    if value is None:
        return bool(column.nullable)
    kind = column.type.python_type
    if column.name in TIMES and isinstance(value, int | float):
        return 0 <= value < MAX_TIME
    return isinstance(value, int | float if kind is float else int if kind is bool else kind)


def _wrong(table: Table, column: Column[Any], value: Any) -> DamagedError:
    kind = _NAMES[column.type.python_type]
    what = table.name.removeprefix("pennyweight_")
    return damaged(f"{column.name} of a {what} is {value!r:.60}, which is not {kind}")


def json_cell(text: Any, shape: Any, what: str) -> Any:
    """Read a cell of JSON; `shape` gives the types of its values, as far as they are relied on."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise damaged(f"{what} is {text!r:.60}, which is not JSON") from None
    if not _has_shape(value, shape):
        raise damaged(f"{what} is {text!r:.60}, which has another form than it should")
    return value


def _has_shape(value: Any, shape: Any) -> bool:
    """Whether a value has a type, fits a rule, or is a list or mapping of such values."""
    match shape:
        case dict():
            return isinstance(value, dict) and all(
                _has_shape(value[name], inner) if name in value else not isinstance(shape, Whole)
                for name, inner in shape.items()
            )
        case FunctionType():
            return bool(shape(value))
        case [inner]:
            return isinstance(value, list) and all(_has_shape(item, inner) for item in value)
        case _:
            return isinstance(value, shape)
