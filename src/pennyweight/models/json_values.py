"""Readers of foreign JSON values, shared by the wire formats."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

MAX_TOKENS = 2**40
"""No call has more, and a store can sum millions of such counts."""
PIECE = 64
"""Bytes of memory that a piece of a streamed reply needs besides its text."""


def count(value: Any) -> int | None:
    """Return a number of tokens; None for anything else, never 0.

    >>> count(12), count(12.0), count("12"), count(-1), count(True), count(2**41)
    (12, 12, None, None, None, None)
    """
    if value is None or type(value) is int:  # nearly always
        return value if value is not None and 0 <= value <= MAX_TOKENS else None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= MAX_TOKENS:
        return None
    return int(value) if value == value // 1 else None


def known(values: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the values that are None."""
    return {name: value for name, value in values.items() if value is not None}


def object_of(value: Any) -> dict[str, Any]:
    """Return a JSON object; the empty one for anything else."""
    return value if isinstance(value, dict) else {}


def add(*values: int | None) -> int | None:
    """Add the known counts; None if none is known.

    >>> add(1, None, 2), add(None, None)
    (3, None)
    """
    counts = [v for v in values if v is not None]
    return sum(counts) if counts else None


def text_of(value: Any) -> str:
    """Return a text; null is the empty text. Raise TypeError for anything else."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"a text was expected, not {type(value).__name__}")
    return clean(value)


def word(value: Any) -> str | None:
    """Return an optional text; None for anything else.

    >>> word("stop"), word(7), word(None)
    ('stop', None, None)
    """
    return clean(value) if isinstance(value, str) else None


def clean(text: str) -> str:
    r"""Replace unpaired surrogates, which JSON can contain but UTF-8 cannot.

    >>> clean("a\ud83d")
    'a?'
    """
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def logprob(value: Any) -> float:
    """Return a log-probability; minus infinity becomes -9999, as servers write it."""
    number = float(value)
    if math.isnan(number) or number == math.inf:
        raise ValueError("a log-probability is not a number")
    return max(number, -9999.0)


def compact(value: Any) -> str:
    """Write JSON as a model does, for the arguments of tools."""
    return clean(json.dumps(value, ensure_ascii=False))


def split_thinking(text: str) -> tuple[str | None, str]:
    r"""Split a text into the chain of thought that a server left in it and the answer.

    The opening tag may be missing (some chat templates put it into the prompt), and so may the
    closing tag (the response was cut off while the model was thinking).

    >>> split_thinking("<think>2+2</think>\n4")
    ('2+2', '4')
    >>> split_thinking("2+2</think>4")
    ('2+2', '4')
    >>> split_thinking("<think>2+")
    ('2+', '')
    >>> split_thinking("write <think> in HTML")
    (None, 'write <think> in HTML')
    """
    if "think>" not in text:
        return None, text
    opened = text.lstrip().startswith("<think>")
    inside = text.lstrip().removeprefix("<think>")
    before, closed, after = inside.partition("</think>")
    if (opened or closed) and "<think>" not in before:
        return before.strip() or None, after.lstrip()
    return None, text
