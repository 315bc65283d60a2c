"""Write YAML as a person would: short things on one line, long texts in blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from pennyweight.schema.tree import Written, scalar

WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z_$/][\w$./+@-]*(?: [\w$./+@(][\w$./+@()'-]*)*[.!]?")
_FLOW_DEPTH = 4


def yaml_text(value: Any) -> str:
    """Return a value as YAML that the reader of suites reads back as it was."""
    return "\n".join(_block(value, 0)) + "\n"


def inline(value: Any) -> str:
    """Return a value on one line.

    >>> inline({"contains": {"text": "42", "case": True}, "weight": 2})
    '{contains: {text: "42", case: true}, weight: 2}'
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(str(k))}: {inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(inline, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Written):
        return str(value)
    return repr(value) if isinstance(value, int | float) else _text(str(value))


def _text(text: str) -> str:
    if _PLAIN.fullmatch(text) and scalar(text) == text and len(text) <= WIDTH:
        return text
    written = yaml.dump(text, default_style='"', allow_unicode=True, width=float("inf"))
    return written.rstrip("\n").removesuffix("\n...")


def _block(value: Any, indent: int) -> list[str]:
    """Return the lines of a mapping or list."""
    space = " " * indent
    lines: list[str] = []
    if isinstance(value, Mapping):
        for key, below in value.items():
            lines += _entry(f"{space}{_text(str(key))}:", below, indent)
    elif isinstance(value, list | tuple):
        for below in value:
            lines += _item(below, indent)
    else:
        lines.append(space + _scalar(value))
    return lines


def _entry(head: str, value: Any, indent: int) -> list[str]:
    if isinstance(value, str) and "\n" in value:
        return _after(head, _long(value, indent))
    short = f"{head} {inline(value)}"
    if not isinstance(value, Mapping | list | tuple) or not value or _is_short(value, short):
        return [short]
    return [head, *_block(value, indent + 2)]


def _item(value: Any, indent: int) -> list[str]:
    space = " " * indent
    short = f"{space}- {inline(value)}"
    if isinstance(value, Mapping) and value and not _is_short(value, short):
        first, *rest = _block(value, indent + 2)
        return [f"{space}- {first.lstrip()}", *rest]
    if isinstance(value, str) and "\n" in value:
        return _after(f"{space}-", _long(value, indent))
    return [short]


def _after(head: str, lines: list[str]) -> list[str]:
    return [f"{head} {lines[0]}", *lines[1:]]


def _is_short(value: Any, line: str) -> bool:
    return len(line) <= WIDTH and _depth(value) <= _FLOW_DEPTH and not _has_lines(value)


def _depth(value: Any) -> int:
    below = value.values() if isinstance(value, Mapping) else value
    if isinstance(value, Mapping | list | tuple):
        return 1 + max((_depth(one) for one in below), default=0)
    return 0


def _has_lines(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_lines, value.values()))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return any(map(_has_lines, value))
    return isinstance(value, str) and "\n" in value


def _long(text: str, indent: int) -> list[str]:
    """Return a text of several lines: as a block if YAML keeps it as it is, else quoted."""
    lines = text.removesuffix("\n").split("\n")
    fits = all(line == line.rstrip() and line.isprintable() for line in lines)
    if not fits or not lines[0] or lines[0].startswith(" ") or not lines[-1]:
        return [_text(text)]
    space = " " * (indent + 2)
    return ["|" if text.endswith("\n") else "|-", *((space + line).rstrip() for line in lines)]
