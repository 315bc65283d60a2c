"""JSON in the reply: its schema, and values at paths."""

from __future__ import annotations

import json as _json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Annotated, Any

import polars as pl

from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.declaration import CheckResult, Excerpt, check
from pennyweight.checks.parameters import Anything, Path, Schema, one_of
from pennyweight.errors import UsageError
from pennyweight.schema.tree import refuse_constant
from pennyweight.text.rules import regex_problem
from pennyweight.text.scanning import at_path, json_path, json_values

_FENCE = re.compile(r"```[a-zA-Z]*\n(.*?)```", re.DOTALL)
_NOTHING: Any = object()
_Where = Annotated[str, one_of("reply", "block", "anywhere")]


@check(of_text=True)
def json(
    attempt: AttemptView,
    path: Path | None = None,
    *,
    equals: Anything = _NOTHING,
    schema: Schema | None = None,
    where: _Where = "block",
) -> CheckResult:
    """The reply is JSON, fits a `schema`, or has a `path`, optionally with a given value.

    The JSON may be the whole reply or a single code block. `where: reply` allows only the whole
    reply, `where: anywhere` any JSON object or list in it. A path is written $.order.items[0].

    >>> json('{"order": {"status": "sent"}}', path="$.order.status", equals="sent").holds
    True
    >>> json("Not today.").why
    'It is not JSON.'
    """
    result = CheckResult(
        holds=False, why="It contains no JSON." if where == "anywhere" else "It is not JSON."
    )
    for found in _values(attempt.said, where):
        result = _decided(attempt, found, path, equals, schema)
        if result.holds:
            break
    return result


def _decided(
    attempt: AttemptView,
    given: tuple[Any, int, int],
    path: str | None,
    equals: Any,
    schema: Mapping[str, Any] | None,
) -> CheckResult:
    said = attempt.said
    value, start, end = given
    evidence = (Excerpt(attempt.of, said[start:end], start, end),)
    if schema is not None and (wrong := _wrong(schema, value)):
        return CheckResult(False, wrong, evidence)
    if path is None and equals is _NOTHING:
        return CheckResult(
            True, "It is JSON." if schema is None else "It fits the schema.", evidence
        )
    found = value if path is None else at_path(value, json_path(path), _NOTHING)
    if found is _NOTHING:
        return CheckResult(False, f"There is nothing at {path}.", evidence)
    shown = Excerpt(f"{attempt.of} at {path or '$'}", _json.dumps(found, ensure_ascii=False))
    same = equals is _NOTHING or same_value(found, equals)
    return CheckResult(same, f"{shown.text:.80} is at {path or '$'}.", (shown,))


def _values(text: str, where: str) -> Iterator[tuple[Any, int, int]]:
    """Yield the JSON in a text with its position: of the whole, else of the only code block."""
    if where == "anywhere":
        yield from json_values(text)
        return
    fence = _FENCE.findall(text) if where == "block" else []
    for part in (text, *(fence if len(fence) == 1 else ())):
        try:
            value = _json.loads(part, parse_constant=refuse_constant)
        except (ValueError, RecursionError):
            continue
        start = text.index(part)
        yield value, start, start + len(part)
        return


def same_value(found: Any, wanted: Any) -> bool:
    """Compare values as JSON does: 1 equals 1.0 but never true; texts must be identical.

    >>> same_value({"a": 1}, {"a": 1.0}), same_value(1, True)
    (True, False)
    """
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, Mapping) and isinstance(wanted, Mapping):
        return found.keys() == wanted.keys() and all(same_value(found[k], wanted[k]) for k in found)
    if isinstance(found, list | tuple) and isinstance(wanted, list | tuple):
        return len(found) == len(wanted) and all(map(same_value, found, wanted))
    return bool(found == wanted)


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse an invalid schema, or one with patterns that could hang a run."""
    jsonschema: Any = import_module("jsonschema")

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise UsageError(f"It is not a JSON schema: {error.message:.200}.") from None
    for key, value in _keywords(schema):
        if key == "patternProperties":
            raise UsageError("patternProperties cannot be used here; name the properties.")
        if key == "pattern" and isinstance(value, str) and (wrong := regex_problem(value)):
            raise UsageError(f"{value!r} is not a usable regular expression: {wrong}.")
        if key == "$ref" and not str(value).startswith("#"):
            raise UsageError(f"$ref {value!r} points outside of the schema; use $defs.")


def _keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            yield from one.items()
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _wrong(schema: Mapping[str, Any], value: Any) -> str | None:
    """Return how a value does not fit a schema; None if it does."""
    validator = _validator()(schema, registry=_registry())
    error = next(iter(sorted(validator.iter_errors(value), key=lambda e: len(e.path))), None)
    return f"At {error.json_path}: {error.message:.200}." if error else None


@lru_cache
def _registry() -> Any:
    """Return an empty registry, so that no schema is fetched."""
    return import_module("referencing").Registry()


@lru_cache
def _validator() -> Any:
    """Return a validator whose patterns run in linear time."""
    jsonschema: Any = import_module("jsonschema")

    def pattern(_: Any, wanted: str, instance: Any, __: Any) -> Iterator[Any]:
        if isinstance(instance, str) and not pl.Series([instance]).str.contains(wanted).item():
            yield jsonschema.ValidationError(f"{instance[:80]!r} does not match {wanted!r}")

    return jsonschema.validators.extend(jsonschema.Draft202012Validator, {"pattern": pattern})
