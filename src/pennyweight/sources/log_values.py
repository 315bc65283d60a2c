"""Values that several formats share: scores, verdicts, texts, times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

Row = dict[str, Any]


def number(value: Any) -> float | None:
    """Return a finite number, also one written as text; None for anything else.

    >>> number("0.5"), number(True), number(float("nan")), number("-")
    (0.5, 1.0, None, None)
    """
    if value is None or not isinstance(value, int | float | str):
        return None
    try:
        read = float(value)
    except (ValueError, OverflowError):
        return None
    return read if math.isfinite(read) else None


def count(value: Any) -> int | None:
    """Return a whole number that is not negative; None for anything else."""
    if type(value) is int and 0 <= value < 1 << 62:
        return value
    read = number(value)
    return int(read) if read is not None and read >= 0 and read == int(read) else None


def known(value: Any) -> Any:
    """Return a cost or a count of tokens; None for 0, where the tool writes 0 for unknown."""
    return number(value) or None


def verdict(score: Any, passed: Any = None) -> Row:
    """Return `passed` and `impl_rate` of a score: passed from 1 on, unless the tool decides.

    >>> verdict(0.5), verdict(0.75, True), verdict(-0.014, False)
    ({'impl_rate': 0.5, 'passed': False}, {'impl_rate': 0.75, 'passed': True}, {'passed': False})
    """
    value = number(score)
    decided = passed if isinstance(passed, bool) else None
    if value is None or not 0 <= value <= 1:
        return {} if decided is None else {"passed": decided}
    return {"impl_rate": value, "passed": value >= 1 if decided is None else decided}


def outside(name: str) -> str:
    """Return the note about scores that are no shares of 1."""
    return f"scores of {name} outside of 0 to 1 decide nothing; the column scores has them."


def text_of(content: Any) -> str | None:
    """Return the text of a message's content: text, or parts of which the texts are joined.

    >>> text_of([{"type": "reasoning", "reasoning": "…"}, {"type": "text", "text": "4"}])
    '4'
    """
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (p if isinstance(p, str) else p.get("text") for p in content if _is_text(p))
        return "\n".join(part for part in parts if isinstance(part, str))
    return None


def reasoning_of(content: Any) -> str | None:
    """Return the reasoning among the parts of a message's content."""
    if not isinstance(content, list):
        return None
    parts = [p.get("reasoning") for p in content if _is(p, "reasoning")]
    return "\n".join(p for p in parts if isinstance(p, str)) or None


def targets(value: Any) -> Any:
    """Return the target; several that are all right as a JSON list.

    >>> targets(["4"]), targets(["4", "four"]), targets("")
    ('4', '["4","four"]', None)
    """
    if isinstance(value, list):
        several = orjson.dumps([str(one) for one in value]).decode()
        return None if not value else value[0] if len(value) == 1 else several
    return None if value == "" else value


def message(role: Any, content: Any, **more: Any) -> Row:
    """Return one message as runs store it: role, content, and what else has a value."""
    rest = {name: value for name, value in more.items() if value}
    return {"role": str(role or ""), "content": text_of(content) or "", **rest}


def check(name: Any, holds: Any, why: Any = None, score: Any = None) -> Row:
    """Return one check as records store it."""
    made: Row = {"role": "check", "name": str(name)}
    made["holds"] = holds if isinstance(holds, bool) else None
    made |= {"why": "" if why is None else str(why), "evidence": []}
    return made if number(score) is None else {**made, "score": number(score)}


def first(values: Iterable[Any]) -> Any:
    """Return the first value that is not None."""
    return next((value for value in values if value is not None), None)


def mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping as it is, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """Return a list as it is, and an empty one for anything else."""
    return value if isinstance(value, list) else []


def _is(part: Any, kind: str) -> bool:
    return isinstance(part, dict) and part.get("type") == kind


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and part.get("type", "text") == "text")
