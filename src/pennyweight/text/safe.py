"""Make foreign text safe to show: the output of models may be hostile."""

from __future__ import annotations

import json
import re
from typing import Any

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_ESCAPED_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


def clean(text: str) -> str:
    r"""Remove control sequences, so that a text cannot control a terminal or reverse its direction.

    >>> clean("a\x1b[31mred\x1b[0m\x07 b\u202ec")
    'ared bc'
    """
    return _ESCAPES.sub("", text)


def storable(text: str | None) -> str | None:
    r"""Replace what no database accepts in a text: NUL and unpaired surrogates.

    >>> storable("a\0b\ud83d")
    'a\ufffdb?'
    """
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def storable_value(value: Any) -> Any:
    r"""Make every text in a value storable, so that equal texts stay equal.

    That includes lists and mappings, also where a text has them as JSON, with NUL as an escape.

    >>> storable_value({"a\0": ["b\0", 1], "c": '["b\\u0000"]', "d": "as \\u0000"})
    {'a\ufffd': ['b\ufffd', 1], 'c': '["b\\ufffd"]', 'd': 'as \\u0000'}
    """
    if isinstance(value, str):
        escaped = "\\u0000" in value and _is_nested(value)
        return storable(_ESCAPED_NUL.sub(r"\1\\ufffd", value) if escaped else value)
    if isinstance(value, dict):
        return {storable_value(name): storable_value(one) for name, one in value.items()}
    return [storable_value(one) for one in value] if isinstance(value, list) else value


def _is_nested(text: str) -> bool:
    """Whether a text is a list or a mapping as JSON."""
    try:
        return isinstance(json.loads(text), list | dict)
    except (ValueError, RecursionError):
        return False
