"""Make text safe to show: what models write is hostile until proven otherwise."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from assay.text.safe import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def one_line(text: str, width: int = 60) -> str:
    """Clean a text, put it on one line and cut it."""
    flat = " ".join(clean(text).split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def csv_table(rows: Iterable[Sequence[Any]]) -> str:
    """Write CSV in which no text cell can be taken for a formula by a spreadsheet."""
    return "".join(",".join(map(_field, row)) + "\n" for row in rows)


def _field(cell: Any) -> str:
    """Write one cell; the csv module leaves a lone carriage return bare, which starts a row."""
    if isinstance(cell, list):
        text = json.dumps(cell, ensure_ascii=False)
    else:
        text = "" if cell is None else str(cell)
    if isinstance(cell, str) and cell.startswith(_FORMULA):
        text = f"'{text}"
    if any(sign in text for sign in ',"\r\n'):
        text = '"' + text.replace('"', '""') + '"'
    return text


def markdown_table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Write a Markdown table; the first row is its head, `right` the columns aligned right."""
    head, *body = [[markdown_text(c) for c in row] for row in rows]
    rule = ["--:" if i in right else "---" for i in range(len(head))]
    return "".join("| " + " | ".join(row) + " |\n" for row in (head, rule, *body))


def markdown_text(text: str) -> str:
    """Write a text so that Markdown shows it as it is."""
    flat = " ".join(clean(text).split())
    return re.sub(r"([|\\`*_<>\[\]])", r"\\\1", flat)
