"""Code and diffs as HTML, coloured by classes. All of it is escaped text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from pennyweight.render.transcript.folds import Block, lines_of

if TYPE_CHECKING:
    from pygments.lexer import Lexer

MAX_CHARACTERS, MAX_COLOURED_LINE, MAX_BLANK = 2_000, 200, 0.6
"""Larger code is coloured in parts; parts with longer lines or mostly blank ones are not.

The patterns of lexers may take a time that grows with the square of the length, or worse.
"""
MAX_LINE = 1_000
"""Longer lines are split where they are folded."""
PAGE_CHARACTERS = 20_000
"""Characters of code on one page that are coloured."""
_left: ContextVar[int | None] = ContextVar("left_to_colour", default=None)
_GAP = re.compile(r"\s{80}")
_NAMES = re.compile(r"[a-z0-9+#_.-]{1,24}")
_KINDS = {
    "Keyword": "kw", "Comment": "co", "Literal.String": "st", "Literal.Number": "nu",
    "Name.Function": "fn", "Name.Class": "fn", "Name.Builtin": "fn", "Name.Decorator": "fn",
    "Name.Tag": "kw", "Name.Attribute": "fn", "Generic.Inserted": "add", "Generic.Deleted": "del",
    "Generic.Heading": "co", "Generic.Subheading": "co",
}  # fmt: skip
_LANGUAGES = frozenset((
    "bash", "sh", "shell", "console", "css", "diff", "docker", "dockerfile", "go", "haskell",
    "html", "ini", "javascript", "js", "json", "jsx", "julia", "kotlin", "latex", "tex", "lua",
    "perl", "php", "powershell", "py", "python", "python3", "ruby", "rust", "rs", "sql", "swift",
    "toml", "ts", "typescript", "xml", "yaml", "yml", "zsh",
))  # fmt: skip
"""Lexers that hostile code of the largest size keeps busy for less than 0.1 s."""


def code_blocks(text: str, language: str = "", most: int = PAGE_CHARACTERS) -> list[Block]:
    r"""Return the lines of code as blocks; parts of very long lines are blocks of their own.

    Of long code, the beginning is coloured: what takes about `most` characters of HTML.

    >>> [str(block.html) for block in code_blocks("x = 1", "python")]
    ['x = <span class="nu">1</span>\n']
    """
    name = language.strip().lower()
    if name == "diff":
        return [Block(_diff_line(line) + "\n", 1) for line in text.split("\n")]
    if _lexer(name) is None:
        return _plain_blocks(text)
    blocks: list[Block] = []
    for part in _parts(text):
        coloured = _coloured(part, name) if most > 0 else None
        most -= sum(len(block.html) for block in coloured or ())
        blocks += _plain_blocks(part) if coloured is None else coloured
    return blocks


def _plain_blocks(text: str) -> list[Block]:
    blocks = []
    for line in text.split("\n"):
        for at in range(0, len(line) or 1, MAX_LINE):
            part = line[at : at + MAX_LINE]
            end = "" if at + MAX_LINE < len(line) else "\n"
            blocks.append(Block(escape(part) + end, lines_of(part)))
    return blocks


def _parts(text: str) -> Iterator[str]:
    """Split code into parts that are small enough to be coloured, if possible at empty lines."""
    while len(text) > MAX_CHARACTERS:
        empty = text.rfind("\n\n", MAX_CHARACTERS // 2, MAX_CHARACTERS)
        at = empty + 1 if empty >= 0 else text.rfind("\n", 0, MAX_CHARACTERS)
        at = at if at >= 0 else text.find("\n", MAX_CHARACTERS)
        if at < 0:
            break
        yield text[:at]
        text = text[at + 1 :]
    yield text


def new_page() -> None:
    """Begin a page: of all code on it, at most `PAGE_CHARACTERS` are coloured."""
    _left.set(PAGE_CHARACTERS)


def _coloured(text: str, name: str) -> list[Block] | None:
    """Return the lines of code in colours; None where it has none."""
    left = _left.get()
    lexer = _lexer(name)
    if lexer is None or (left is not None and len(text) > left) or not is_plain(text):
        return None
    _left.set(None if left is None else left - len(text))
    found = [Markup("")]
    for kind, piece in lexer.get_tokens(text):
        first, *more = piece.split("\n")
        found[-1] += _token(kind, first)
        found += [_token(kind, line) for line in more]
    return [Block(line + "\n", 1) for line in found]


def is_plain(text: str) -> bool:
    """Whether code is small and has no shape that takes a lexer long."""
    long = len(text) > MAX_CHARACTERS or max(map(len, text.split("\n"))) > MAX_COLOURED_LINE
    if long or _GAP.search(text):
        return False
    return sum(map(str.isspace, text)) <= MAX_BLANK * len(text)


@lru_cache(64)
def _lexer(name: str) -> Lexer | None:
    if name not in _LANGUAGES:
        return None
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415
    from pygments.util import ClassNotFound  # noqa: PLC0415

    try:
        return get_lexer_by_name(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _token(kind: Any, piece: str) -> Markup:
    css = _css(str(kind)) if piece else ""
    return Markup('<span class="{}">{}</span>').format(css, piece) if css else escape(piece)


@lru_cache(512)
def _css(kind: str) -> str:
    """Return the class of a kind of token."""
    name = kind.removeprefix("Token.")
    return next((css for start, css in _KINDS.items() if name.startswith(start)), "")


def _diff_line(line: str) -> Markup:
    """Put a line of a diff into a class: added, removed, heading."""
    kind = ""
    if line.startswith(("+++", "---", "diff ", "index ")):
        kind = "file"
    elif line.startswith("@@"):
        kind = "co"
    elif line.startswith(("+", "-")):
        kind = "add" if line[0] == "+" else "del"
    return Markup('<span class="{}">{}</span>').format(kind, line) if kind else escape(line)


def arguments(value: Any) -> tuple[str, str]:
    r"""Return the arguments of a tool call as a person reads them, and their language.

    >>> arguments({"command": "ls -l"})
    ('ls -l', 'bash')
    >>> arguments('{"id": 1, "text": "a\\nb"}')
    ('id: 1\ntext: |\n  a\n  b', 'yaml')
    >>> arguments({"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"})
    ('file_path: a.py\n-x = 1\n+x = 2', 'diff')
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return value, ""
    if not isinstance(value, dict):
        return (value if isinstance(value, str) else _json(value)), "json"
    if len(value) == 1 and (alone := next(iter(value))) in _COMMANDS:
        command = value[alone]
        if isinstance(command, list) and all(isinstance(part, str) for part in command):
            command = " ".join(command)
        if isinstance(command, str):
            return command, _COMMANDS[alone]
    if edit := next((e for e in _EDITS if all(isinstance(value.get(n), str) for n in e)), None):
        rest = (_field(str(name), one) for name, one in value.items() if name not in edit)
        signed = (f"{sign}{line}" for sign, name in zip("-+", edit, strict=True) if value[name]
                  for line in value[name].split("\n"))  # fmt: skip
        return "\n".join((*rest, *signed)), "diff"
    return "\n".join(_field(str(name), one) for name, one in value.items()), "yaml"


_COMMANDS = {"command": "bash", "cmd": "bash", "code": "python", "sql": "sql", "query": ""}
"""Arguments that are shown alone, and their languages."""
_EDITS = (("old_string", "new_string"), ("old_str", "new_str"))
"""Arguments of tools that replace a text by another: shown as a diff."""


def _field(name: str, value: Any) -> str:
    if isinstance(value, str) and "\n" in value:
        return f"{name}: |\n" + "\n".join(f"  {line}" for line in value.split("\n"))
    return f"{name}: {value if isinstance(value, str) else _json(value)}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
