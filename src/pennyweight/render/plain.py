"""Text, CSV, Markdown and JSON that are safe to show: the output of models may be hostile."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pennyweight.text.format import money, plural
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.store.store import Spending

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[-+]\$?(?:[0-9][0-9,]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?%?")
"""Text that begins like a formula, but that a spreadsheet reads as a number."""
_LIVE = re.compile(r"(@(?=\w)|#(?=\d)|\bGH-(?=\d)|\b[A-Za-z]+:(?=//)|\bwww(?=\.))")
"""Text that GitHub turns into a mention, a reference or a link."""


MAX_LISTED_NAMES = 6
_BETWEEN = (" / ", " · ")
"""What is between the columns of a side: in tables of text, and on pages."""


def one_line(text: str, width: int = 60) -> str:
    """Clean a text, put it on one line and cut it."""
    flat = _flat(text)
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def middle(text: object, width: int) -> str:
    """Cut a label in its middle, since names often differ at their ends.

    >>> middle("20261115-150951-9bfe", 11)
    '20261…-9bfe'
    """
    whole = _flat(str(text)) or "—"
    if len(whole) <= width:
        return whole
    head = (width - 1) // 2
    return f"{whole[:head]}…{whole[len(whole) - (width - 1 - head) :]}"


def side_line(name: str, width: int = 60) -> str:
    """Put the name of a side on one line; its last column is not cut if there is room.

    What is cut is cut in its middle, so that names that begin alike stay apart.

    >>> side_line("vendor/model-large-2026 / T1", 24), side_line("T1", 24)
    ('vendor/mo…arge-2026 / T1', 'T1')
    >>> side_line("vendor/model-large-2026 · T1", 24)
    'vendor/mo…arge-2026 · T1'
    """
    whole = _flat(name)
    between = max(_BETWEEN, key=whole.rfind)
    first, between, last = whole.rpartition(between)
    room = width - len(between) - len(last)
    if not first or room <= width // 2:
        return middle(whole, width)
    return f"{middle(first, room)}{between}{last}"


def errors_line(errors: str, *, some: bool) -> list[str]:
    """Say what errors count as, where there are some or where it is not the usual."""
    if errors == "failures":
        return ["Errors count as failures (--errors failures)."]
    return ["Errors are left out; --errors failures counts them as failures."] if some else []


def joined(parts: Sequence[str]) -> str:
    """Join parts of a sentence with commas and "and"."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def listed(names: Sequence[str]) -> str:
    """Join names, each on one line; a long list is cut.

    >>> listed(["T0", "T1", "T2"]), listed([f"T{i}" for i in range(9)])
    ('T0, T1 and T2', 'T0, T1, T2, T3, T4, T5 and 3 others')
    """
    shown = [side_line(name) for name in names[:MAX_LISTED_NAMES]]
    if len(names) > MAX_LISTED_NAMES:
        return f"{', '.join(shown)} and {plural(len(names) - MAX_LISTED_NAMES, 'other')}"
    return joined(shown)


def _flat(text: str) -> str:
    return " ".join(clean(text).split())


def unbroken(text: str) -> str:
    r"""Join numbers to their units with no-break spaces.

    >>> unbroken("86.0 % of 3 records in 12 ms")
    '86.0\xa0% of 3 records in 12\xa0ms'
    """
    return re.sub(r"(?<=\d) (?=(?:%|points?|ms|s|min|h)(?!\w))", "\N{NO-BREAK SPACE}", text)


def wrapped(text: str, indent: str = "", width: int = 80) -> list[str]:
    """Clean a text and wrap it into lines, none of which begins with a unit."""
    lines = textwrap.wrap(
        unbroken(_flat(text)),
        width,
        initial_indent=indent,
        subsequent_indent=" " * len(indent),
        break_on_hyphens=False,
    )
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines] or [indent.rstrip()]


def json_text(value: Any) -> str:
    """Write strict JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def cost_text(spent: Spending) -> str:
    """Write what a run cost, as far as that is known; an empty text if nothing is known.

    >>> cost_text({"usd": 45.0, "unpriced": 3})
    'at least $45'
    """
    if spent["usd"] is None:
        return ""
    more = spent["unpriced"] or spent.get("held_usd")
    return f"{'at least ' if more else ''}{money(spent['usd'])}"


def csv_table(rows: Iterable[Sequence[Any]], *, nulls: bool = False) -> str:
    r"""Write CSV in which a spreadsheet takes no text for a formula.

    With `nulls`, an empty text is quoted, and only what is missing is nothing at all.

    >>> csv_table([["", None, "=1"]], nulls=True)
    '"",,\'=1\n'
    """
    if nulls:
        return "".join(",".join(_field(c) or _EMPTY[c is None] for c in row) + "\n" for row in rows)
    return "".join(",".join(map(_field, row)) + "\n" for row in rows)


_EMPTY = ('""', "")


def _field(cell: Any) -> str:
    """Write one cell. The csv module does not quote a lone carriage return, which starts a row."""
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
    head, *body = [[markdown_text(cell) for cell in row] for row in rows]
    rule = ["--:" if i in right else "---" for i in range(len(head))]
    return "".join("| " + " | ".join(row) + " |\n" for row in (head, rule, *body))


def markdown_text(text: str) -> str:
    r"""Escape a text so that Markdown shows it unchanged, without mentions and links.

    An invisible comment breaks what GitHub would turn into one (`@name`, `#1`, an address).

    >>> markdown_text("~a~ for @you, see #1")
    '\\~a\\~ for @<!-- -->you, see #<!-- -->1'
    """
    if isinstance(text, EscapedMarkdown):
        return text
    return _LIVE.sub(r"\1<!-- -->", re.sub(r"([|\\`*_<>\[\]~])", r"\\\1", _flat(text)))


class EscapedMarkdown(str):
    """Markdown in which foreign text is escaped already."""

    __slots__ = ()


def markdown_code(text: str, *, table: bool = False) -> EscapedMarkdown:
    """Write a name as code, in which nothing is a link.

    >>> markdown_code("a`b@c")
    '``a`b@c``'
    """
    flat = _flat(text) or " "
    if table:
        flat = flat.replace("|", r"\|")
    fence = "`" * (max((len(run) for run in re.findall("`+", flat)), default=0) + 1)
    space = " " if flat.startswith("`") or flat.endswith("`") else ""
    return EscapedMarkdown(f"{fence}{space}{flat}{space}{fence}")


def without_ci_commands(text: str) -> str:
    r"""Break what a CI runner would take for a command: `::` at the start of a line, and `##[`.

    >>> without_ci_commands("  ::error::no\n##[group]x")
    '  : :error::no\n# #[group]x'
    """
    return re.sub(r"(?m)^(\s*):(?=:)", r"\1: ", text).replace("##[", "# #[")
