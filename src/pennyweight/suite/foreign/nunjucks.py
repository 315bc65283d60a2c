"""Templates of promptfoo (Nunjucks) as templates of suites (Jinja)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import jinja2

from pennyweight.schema.tree import Written
from pennyweight.suite.templates import render, variables_of

_TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
_ENV = re.compile(r"\{\{-?\s*env\.(\w+)[^}]*\}\}")
_WORDS: tuple[tuple[str, str], ...] = (
    (r"===", "=="),
    (r"!==", "!="),
    (r"&&", " and "),
    (r"\|\|", " or "),
    (r"\b(?:null|undefined)\b", "none"),
    (r"\|\s*dump\b(?:\(\s*\d*\s*\))?", "| tojson"),
    (r"\|\s*(?:safe|string)\b", ""),
    (r"(\w)\.length\b", r"\1 | length"),
    (r"\{%(-?)\s*elseif\b", r"{%\1 elif"),
    (r"\.toUpperCase\(\)", ".upper()"),
    (r"\.toLowerCase\(\)", ".lower()"),
    (r"\.trim\(\)", ".strip()"),
)
_LEXER = jinja2.Environment(autoescape=True)  # it only splits texts into tokens


def to_jinja(text: str) -> str:
    """Translate what the two languages write differently.

    >>> to_jinja("{% if a === 1 %}x{% elseif b.length %}{{ c | dump }}{% endif %}")
    '{% if a == 1 %}x{% elif b | length %}{{ c | tojson }}{% endif %}'
    """
    return _TAG.sub(lambda tag: _translated(tag[0]), text)


def _translated(tag: str) -> str:
    parts = _QUOTED.split(tag)
    for at in range(0, len(parts), 2):
        for pattern, other in _WORDS:
            parts[at] = re.sub(pattern, other, parts[at])
    return "".join(parts)


def without_env(text: str, tell: Callable[[str], None]) -> str:
    """Replace environment variables by their names: a suite never contains their values.

    >>> without_env("Hello {{ env.USER }}", print)
    USER
    'Hello [USER]'
    """

    def named(found: re.Match[str]) -> str:
        tell(found[1])
        return f"[{found[1]}]"

    return _ENV.sub(named, text)


def names_of(text: str) -> frozenset[str]:
    """Return the variables of a template; raise TemplateError if it cannot be read."""
    return variables_of(text)


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Rename variables of a template, and nothing that merely looks like one.

    >>> renamed("{{ topic }} topic {{ x.topic | topic }}", {"topic": "input"})
    '{{ input }} topic {{ x.topic | topic }}'
    """
    if not names or "{" not in text:
        return text
    pieces: list[str] = []
    before = ""
    for _, kind, value in _LEXER.lex(text):
        if kind == "name" and before not in {".", "|", "is"} and value in names:
            pieces.append(names[value])
        else:
            pieces.append(value)
        before = value if kind != "whitespace" else before
    made = "".join(pieces)
    return made + "\n" if text.endswith("\n") and not made.endswith("\n") else made


def filled(text: str, values: Mapping[str, Any]) -> str:
    """Fill in a template as promptfoo does: what is missing is empty. It may raise TemplateError.

    >>> filled("{{ a }} {{ b }}!", {"a": True})
    'true !'
    """
    if "{{" not in text and "{%" not in text:
        return text
    source = to_jinja(text)
    names = variables_of(source)
    known = {name: spoken(values.get(name, "")) for name in names}
    made = render(source, known)
    return made + "\n" if text.endswith("\n") and not made.endswith("\n") else made


def spoken(value: Any) -> Any:
    """Return a value as JavaScript writes it: true and not True."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    return str(value) if isinstance(value, Written) else value
