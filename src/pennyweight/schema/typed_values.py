"""Check values of unknown origin, such as JSON from a store, against declared types."""

from __future__ import annotations

import math
from functools import cache
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

_SIMPLE = {str: str, bool: bool, NoneType: NoneType}


def fits(value: Any, kind: Any) -> bool:
    """Whether a value has a type: of TypedDicts, lists, tuples, unions and plain values.

    Keys that a TypedDict does not declare are allowed. A number is finite.

    >>> fits({"a": [1, None]}, dict[str, list[int | None]]), fits({"a": ["1"]}, dict[str, list])
    (True, True)
    >>> fits({"a": ["1"]}, dict[str, list[int]])
    False
    >>> fits(1, float), fits(True, int), fits(1.5, int), fits(float("nan"), float)
    (True, False, False, False)
    """
    if kind is Any:
        return True
    if kind in _SIMPLE:
        return isinstance(value, _SIMPLE[kind])
    if kind is int or kind is float:
        is_number = isinstance(value, int | float if kind is float else int)
        return is_number and not isinstance(value, bool) and _is_finite(value)
    if is_typeddict(kind):
        return isinstance(value, dict) and all(
            fits(value[name], of) if name in value else not required
            for name, (of, required) in _declared(kind).items()
        )
    return _fits_composed(value, get_origin(kind) or kind, get_args(kind))


def _fits_composed(value: Any, origin: Any, inner: tuple[Any, ...]) -> bool:
    if origin in {Union, UnionType}:
        return any(fits(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if origin is tuple:  # JSON has only lists
        alike = isinstance(value, list | tuple) and len(value) == len(inner)
        return alike and all(map(fits, value, inner))
    if not isinstance(value, origin):
        return False
    if origin is dict and inner:
        return all(fits(k, inner[0]) and fits(v, inner[1]) for k, v in value.items())
    return all(fits(item, inner[0]) for item in value) if inner else True


@cache
def _declared(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Return the types of a TypedDict, and which keys it requires.

    `__required_keys__` is wrong where annotations are strings.
    """
    found = {}
    for name, of in get_type_hints(kind, include_extras=True).items():
        marked = get_origin(of) in {NotRequired, Required}
        required = get_origin(of) is Required if marked else kind.__total__
        found[name] = (get_args(of)[0] if marked else of, required)
    return found


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False
