"""Check what a person's function, or a recording, gave as the fields of a reply."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from pennyweight.errors import UsageError, unknown
from pennyweight.models.json_values import count

if TYPE_CHECKING:
    from collections.abc import Callable

STATUSES = ("ok", "timeout", "budget")
_TOOL_CALL = ("id", "name", "arguments")
_USAGE = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")


def checked(name: str, value: Any) -> Any:
    """Check one field of a reply; what it is not is an error that names it."""
    return _FIELDS[name](name, value)


def refused(name: str, wanted: str, value: Any) -> UsageError:
    """Say that a field is not what it must be."""
    return UsageError(f"{name!r} of a reply must be {wanted}, not {value!r:.60}.")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise refused(name, "a text", value)
    return value


def _optional_text(name: str, value: Any) -> str | None:
    return None if value is None else _text(name, value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise refused(name, "true or false", value)
    return value


def _optional_flag(name: str, value: Any) -> bool | None:
    return None if value is None else _flag(name, value)


def _amount(name: str, value: Any) -> float | None:
    if value is None:
        return None
    number = _finite(value)
    if number is None or number < 0:
        raise refused(name, "a number of at least 0", value)
    return number


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _tokens(name: str, value: Any) -> int | None:
    if value is None:
        return None
    number = _finite(value)
    read = count(int(value)) if number is not None and number == int(number) else None
    if read is None:
        raise refused(name, "a whole number of tokens", value)
    return read


def _usage(name: str, value: Any) -> dict[str, int | None]:
    given = _mapping(name, value, _USAGE)
    return {n: _tokens(f"{name}.{n}", v) for n, v in given.items()}


def _tool_calls(name: str, value: Any) -> tuple[dict[str, str], ...]:
    calls = [_mapping(name, call, _TOOL_CALL) for call in _list(name, value)]
    return tuple(_tool_call(name, call, number) for number, call in enumerate(calls, 1))


def _tool_call(name: str, call: Mapping[str, Any], number: int) -> dict[str, str]:
    """Read one call: its arguments as a mapping or as JSON text, its number for want of an id."""
    given = call.get("arguments")
    if given is None or isinstance(given, Mapping):
        try:
            given = json.dumps(dict(given or {}), ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise refused(f"{name}.arguments", "a mapping that JSON can hold", given) from None
    own = call.get("id")
    return {
        "id": str(number) if own is None else _text(f"{name}.id", own),
        "name": _text(f"{name}.name", call.get("name")),
        "arguments": _text(f"{name}.arguments", given),
    }


def _logprobs(name: str, value: Any) -> tuple[tuple[str, float], ...] | None:
    if value is None:
        return None
    pairs = []
    for pair in _list(name, value):
        number = _finite(pair[1]) if isinstance(pair, Sequence) and len(pair) == 2 else None
        if number is None or not isinstance(pair[0], str):
            raise refused(name, "a list of pairs (token, log-probability)", pair)
        pairs.append((pair[0], number))
    return tuple(pairs)


def _status(name: str, value: Any) -> str:
    if value not in STATUSES:
        raise refused(name, " or ".join(map(repr, STATUSES)), value)
    return str(value)


def _work(name: str, value: Any) -> Mapping[str, Any] | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            pass
        else:
            return value
    raise refused(name, "a mapping that JSON can hold", value)


def _list(name: str, value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise refused(name, "a list", value)
    return value


def _mapping(name: str, value: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Take an object of a few known names: a mapping, or the value that has them."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        if not all(hasattr(value, n) for n in names):
            raise refused(name, f"a mapping with {', '.join(names)}", value)
        return {n: getattr(value, n) for n in names}
    for key in value:
        if key not in names:
            raise UsageError(unknown(f"{name!r} of a reply:", str(key), names))
    return dict(value)


_FIELDS: dict[str, Callable[[str, Any], Any]] = {
    "text": _text,
    "reasoning": _optional_text,
    "tool_calls": _tool_calls,
    "usage": _usage,
    "truncated": _flag,
    "refused": _flag,
    "finish": _optional_text,
    "logprobs": _logprobs,
    "model": _optional_text,
    "latency_ms": _amount,
    "status": _status,
    "passed": _optional_flag,
    "cost_usd": _amount,
    "work": _work,
}
