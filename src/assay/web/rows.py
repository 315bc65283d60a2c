"""The rows of a table of records, written directly: a template takes several times as long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

from markupsafe import Markup, escape

from assay.report.page import number, visible
from assay.report.view import money
from assay.web.site import write_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LONG = ("input", "response")
SHORT = ("answer", "target", "subject", "category", "capability", "finish", "tier")
TEXT = (*LONG, *SHORT)
_RIGHT = '<span class="good">✓ right</span>'
_WRONG = '<span class="bad">✗ wrong</span>'
_PASSED = '<span class="good">✓ passed</span>'
_FAILED = '<span class="bad">✗ not passed</span>'
_NONE = '<span class="quiet">—</span>'


def table_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], base: str) -> Markup:
    """Write table rows; `base` is the address of a record without its key."""
    return Markup("".join(_row(row, columns, str(escape(base))) for row in rows))  # noqa: S704


def _row(row: Mapping[str, Any], columns: Sequence[str], base: str) -> str:
    at = f"{base}key={quote_plus(write_key(row))}"
    head = f'<td class="short"><a href="{at}">{_text(row["task_id"], 60)}</a></td>'
    cells = "".join(_cell(row, name) for name in columns)
    return f'<tr data-href="{at}">{head}<td>{_result(row)}</td>{cells}</tr>\n'


def _result(row: Mapping[str, Any]) -> str:
    if row["status"] != "ok":
        return f'<span class="bad">{_text(row["status"], 20)}</span>'
    correct, passed = row["correct"], row["passed"]
    if correct is not None:
        return _RIGHT if correct else _WRONG
    return _NONE if passed is None else _PASSED if passed else _FAILED


def _cell(row: Mapping[str, Any], name: str) -> str:
    value = row[name]
    if name in LONG:
        return f'<td class="text" dir="auto">{_text(value or row["error"] or "", 120)}</td>'
    if name in SHORT:
        return f'<td class="short" dir="auto">{"—" if value is None else _text(value, 60)}</td>'
    return f'<td class="num">{money(value) if name == "cost_usd" else number(value)}</td>'


def _text(text: str, width: int) -> str:
    shown = visible(text[: width * 2])
    return str(escape(shown if len(shown) <= width else shown[: width - 1] + "…"))
