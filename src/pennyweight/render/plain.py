"""Make text safe to show: what models write is hostile until proven otherwise."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pennyweight.text.format import money
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.store.store import Spending

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[-+]\$?(?:[0-9][0-9,]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?%?")
"""What begins like a formula and is none: a spreadsheet reads it as the number that it is."""
_LIVE = re.compile(r"(@(?=\w)|#(?=\d)|\bGH-(?=\d)|\b[A-Za-z]+:(?=//)|\bwww(?=\.))")
"""What GitHub makes a mention, a reference or a link of."""


def one_line(text: str, width: int = 60) -> str:
    """Clean a text, put it on one line and cut it."""
    flat = " ".join(clean(text).split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def cost_text(spent: Spending) -> str:
    """Write what a run cost, as far as it is known; an empty text if nothing is known.

    >>> cost_text({"usd": 45.0, "unpriced": 3})
    'at least $45'
    """
    if spent["usd"] is None:
        return ""
    return f"{'at least ' if spent['unpriced'] else ''}{money(spent['usd'])}"


def csv_table(rows: Iterable[Sequence[Any]]) -> str:
    """Write CSV in which no text cell can be taken for a formula by a spreadsheet."""
    return "".join(",".join(map(_field, row)) + "\n" for row in rows)


def _field(cell: Any) -> str:
    """Write one cell; the csv module leaves a lone carriage return bare, which starts a row."""
    if isinstance(cell, list):
        text = json.dumps(cell, ensure_ascii=False)
    else:
        text = "" if cell is None else str(cell)
    if isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell):
        text = f"'{text}"
    if any(sign in text for sign in ',"\r\n'):
        text = '"' + text.replace('"', '""') + '"'
    return text


def markdown_table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Write a Markdown table; the first row is its head, `right` the columns aligned right."""
    head, *body = [[c if isinstance(c, Ready) else markdown_text(c) for c in row] for row in rows]
    rule = ["--:" if i in right else "---" for i in range(len(head))]
    return "".join("| " + " | ".join(row) + " |\n" for row in (head, rule, *body))


def markdown_text(text: str) -> str:
    r"""Write a text so that Markdown shows it as it is, and calls nobody and links to nothing.

    What GitHub would make alive (`@name`, `#1`, an address) is broken by an empty comment, which
    nobody sees.

    >>> markdown_text("~a~ for @you, see #1")
    '\\~a\\~ for @<!-- -->you, see #<!-- -->1'
    """
    flat = " ".join(clean(text).split())
    return _LIVE.sub(r"\1<!-- -->", re.sub(r"([|\\`*_<>\[\]~])", r"\\\1", flat))


class Ready(str):
    """A piece of Markdown that is not to be escaped."""

    __slots__ = ()


def markdown_code(text: str, *, table: bool = False) -> Ready:
    """Write a name as code, in which nothing is alive.

    >>> markdown_code("a`b@c")
    '``a`b@c``'
    """
    flat = " ".join(clean(text).split()) or " "
    if table:
        flat = flat.replace("|", r"\|")
    fence = "`" * (max((len(run) for run in re.findall("`+", flat)), default=0) + 1)
    space = " " if flat.startswith("`") or flat.endswith("`") else ""
    return Ready(f"{fence}{space}{flat}{space}{fence}")


def unheard(text: str) -> str:
    r"""Break what a CI runner would take for a command: `::` where a line begins, and `##[`.

    >>> unheard("  ::error::no\n##[group]x")
    '  : :error::no\n# #[group]x'
    """
    return re.sub(r"(?m)^(\s*):(?=:)", r"\1: ", text).replace("##[", "# #[")
