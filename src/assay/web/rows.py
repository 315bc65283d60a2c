"""The rows of a table of records, written directly: a template takes several times as long."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

from markupsafe import Markup, escape

from assay.report.page import visible
from assay.report.view import money, number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LONG = ("input", "response")
SHORT = ("answer", "target", "subject", "category", "capability", "finish", "tier")
TEXT = (*LONG, *SHORT)
_RIGHT = '<span class="good">✓ right</span>'
_WRONG = '<span class="bad">✗ wrong</span>'
_PASSED = '<span class="good">✓ passed</span>'
_FAILED = '<span class="bad">✗ not passed</span>'
_NONE = '<span class="quiet">—</span>'
_SPECIAL = re.compile("[&<>'\"]")
_PLAIN = re.compile(r"[\w.\-]*", re.ASCII)


def table_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], base: str) -> Markup:
    """Write table rows; `base` is the address of a record without its key."""
    start = f"{escape(base)}key="
    cells = [_cell(name) for name in columns]
    return Markup("".join([_row(row, cells, start) for row in rows]))  # noqa: S704


def _row(row: Mapping[str, Any], cells: Sequence[Callable[[Any], str]], start: str) -> str:
    at = f"{start}{_key(row['task_id'], row['subject'], row['tier'], row['attempt'])}"
    return (
        f'<tr data-href="{at}"><td class="short"><a href="{at}">{_text(row["task_id"], 60)}</a>'
        f"</td><td>{_result(row)}</td>{''.join([cell(row) for cell in cells])}</tr>\n"
    )


def _key(task: str, subject: str, tier: str, attempt: int) -> str:
    """Write a key as an address has it; most tasks need no escapes."""
    named = task if _PLAIN.fullmatch(task) else quote_plus(json.dumps(task)[1:-1])
    return f"%5B%22{named}%22{_side(subject, tier)}{attempt}%5D"


@lru_cache(1_024)
def _side(subject: str, tier: str) -> str:
    return quote_plus(f",{json.dumps(subject)},{json.dumps(tier)},")


def _result(row: Mapping[str, Any]) -> str:
    if row["status"] != "ok":
        return f'<span class="bad">{_text(row["status"], 20)}</span>'
    correct, passed = row["correct"], row["passed"]
    if correct is not None:
        return _RIGHT if correct else _WRONG
    return _NONE if passed is None else _PASSED if passed else _FAILED


def _cell(name: str) -> Callable[[Any], str]:
    """Give what writes the cells of a column."""
    if name in LONG:
        return lambda row: (
            f'<td class="text" dir="auto">{_text(row[name] or row["error"] or "", 120)}</td>'
        )
    if name in SHORT:
        return lambda row: (
            '<td class="short" dir="auto">—</td>'
            if row[name] is None
            else f'<td class="short" dir="auto">{_text(row[name], 60)}</td>'
        )
    written = money if name == "cost_usd" else number
    return lambda row: f'<td class="num">{written(row[name])}</td>'


def _text(text: str, width: int) -> str:
    """Escape a text and cut it; what is hidden in it is made visible before that."""
    shown = text[: width * 2]
    if not shown.isprintable():
        shown = visible(shown)
    if len(shown) > width:
        shown = shown[: width - 1] + "…"
    return str(escape(shown)) if _SPECIAL.search(shown) else shown
