r"""Find what no regular expression can: the content of `\boxed{…}`, and JSON within prose."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from pennyweight.errors import UsageError

Found = tuple[str, int]
"""An answer and where it starts."""

_BRACES = re.compile(r"\\boxed\s*\{|\\[{}\\]|[{}]")
_WRAPPED = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")


def last_boxed(text: str) -> Found | None:
    r"""Find the content of the last closed `\boxed{…}`.

    >>> last_boxed(r"\boxed{1}, or rather \boxed{\frac{1}{2}} and \boxed{")
    ('\\frac{1}{2}', 21)
    """
    opened: list[tuple[int, int] | None] = []
    best = (-1, 0, 0)
    for token in _BRACES.finditer(text):
        sign = token.group()
        if sign.startswith("\\boxed"):
            opened.append((token.start(), token.end()))
        elif sign == "{":
            opened.append(None)
        elif sign == "}" and opened and (box := opened.pop()):
            best = max(best, (*box, token.start()))
    start, inside, end = best
    if start < 0:
        return None
    inner = text[inside:end].strip()
    wrapped = _WRAPPED.fullmatch(inner)
    return (wrapped.group(1) if wrapped else inner), start


_STEP = re.compile(r"""\.?([^.\[\]"']+)|\[(-?\d{1,9})\]|\[(?:"([^"]*)"|'([^']*)')\]""")


def json_path(path: str, *, whole: bool = False) -> tuple[str | int, ...]:
    """Parse a path into JSON; a negative position counts from the end of a list.

    `$` alone, the whole value, is a path only if `whole` is set.

    >>> json_path("$.items[-1].value"), json_path("answer")
    (('items', -1, 'value'), ('answer',))
    """
    text, at = path.strip().removeprefix("$"), 0
    steps: list[str | int] = []
    while at < len(text):
        step = _STEP.match(text, at)
        if not step:
            raise UsageError(f"{path!r} is not a path into JSON; write it like $.answer or a.b[0].")
        name, index, double, single = step.groups()
        steps.append(int(index) if index else name or double or single or "")
        at = step.end()
    if not (steps or whole):
        raise UsageError("A path into JSON names at least one key, as in $.answer.")
    return tuple(steps)


def at_path(value: Any, steps: Iterable[str | int], missing: Any = None) -> Any:
    """Follow the steps of a path; return `missing` if it leads nowhere.

    >>> at_path({"items": [1, 2]}, json_path("items[-1]")), at_path({"a": None}, ("a", "b"))
    (2, None)
    """
    for step in steps:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return missing
    return value


class _Number(str):
    """A JSON number as it was written."""

    __slots__ = ()


_OPENING = re.compile(r"""\{(?=\s{0,99}["}])|\[(?=\s{0,99}["{\[\]\-0-9tfn])""")
_FENCE = re.compile(r"```\w{0,20}\s{0,20}$")
_DECODER = json.JSONDecoder(parse_float=_Number, parse_int=_Number)
_PLAIN = json.JSONDecoder()
_TRIES = 1_000


def json_values(text: str) -> Iterator[tuple[Any, int, int]]:
    """Yield the JSON objects and lists in a text, each with its start and end.

    Like `last_json` it gives up after a thousand starts of JSON that do not end.

    >>> list(json_values('Sure: {"a": 1}, as {you} asked.'))
    [({'a': 1}, 6, 14)]
    """
    at, tries = 0, 0
    while tries < _TRIES and (opening := _OPENING.search(text, at)):
        start = opening.start()
        try:
            value, at = _PLAIN.raw_decode(text, start)
        except (ValueError, RecursionError):
            at, tries = start + 1, tries + 1
        else:
            yield value, start, at


def last_json(text: str, steps: tuple[str | int, ...]) -> Found | None:
    """Find the last JSON value in a text that has something at this path.

    Prose, code fences and broken JSON around it are skipped. After a thousand starts of JSON that
    do not end, the search gives up, so that the work stays proportional to the text.

    >>> last_json('Sure: {"answer": {"value": 1.50}} as {you} asked.', ("answer", "value"))
    ('1.50', 6)
    """
    found: Found | None = None
    at, tries = 0, 0
    while tries < _TRIES and (opening := _OPENING.search(text, at)):
        start = opening.start()
        try:
            value, at = _DECODER.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError):
            at, tries = start + 1, tries + 1
        else:
            answer = _at_path(value, steps)
            found = found if answer is None else (answer, start)
    if found is None:
        return None
    answer, start = found
    fence = _FENCE.search(text, max(start - 60, 0), start)
    return answer, fence.start() if fence else start


def _at_path(value: Any, steps: tuple[str | int, ...]) -> str | None:
    for step in steps:
        try:
            value = value[int(step) if isinstance(value, list) else step]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    if value is None or isinstance(value, str):
        return value if value is None else str(value)
    return _write(value)


def _write(value: Any) -> str:
    """Write a value as JSON, with its numbers as they were."""
    if isinstance(value, dict):
        inside = (f"{json.dumps(k, ensure_ascii=False)}: {_write(v)}" for k, v in value.items())
        return f"{{{', '.join(inside)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_write, value))}]"
    return str(value) if isinstance(value, _Number) else json.dumps(value, ensure_ascii=False)
