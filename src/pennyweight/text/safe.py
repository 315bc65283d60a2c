"""Make foreign text safe to show: the output of models may be hostile."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


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
