"""The rows of the table of records, written without a template, which is several times slower."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from markupsafe import Markup, escape

from pennyweight.record import verdict_word
from pennyweight.render.format import cell, unit_of
from pennyweight.render.page import visible

LONG = ("input", "response")
SHORT = ("answer", "target", "subject", "category", "capability", "finish", "tier", "error_kind",
         "person_verdict")  # fmt: skip
TEXT = (*LONG, *SHORT)
_NONE = '<span class="quiet">—</span>'
_SPECIAL = "&<>'\""


def table_rows(
    held: Mapping[str, Sequence[Any]],
    columns: Sequence[str],
    hrefs: Iterable[str],
    *,
    opens: bool = False,
) -> Markup:
    """Write table rows, a column at a time; each leads to its record, at an escaped address.

    With `opens`, a script can open a row.
    """
    row = '<tr data-href="{0}">' if opens else "<tr>"
    first = [
        f'{row.format(href)}<td class="short"><a href="{href}">{task}</a></td><td>'
        for href, task in zip(hrefs, _texts(held["task_id"], 60), strict=True)
    ]
    results = zip(*(held[n] for n in ("status", "correct", "passed", "impl_rate")), strict=True)
    result = [_result(*one) for one in results]
    lines = zip(first, result, *(_cells(name, held) for name in columns), strict=True)
    return Markup("".join([f"{''.join(line)}</tr>\n" for line in lines]))  # noqa: S704


@lru_cache(64)
def _result(status: str, correct: bool | None, passed: bool | None, impl_rate: float | None) -> str:
    if status != "ok":
        return f'<span class="bad">{shown_text(status, 20)}</span></td>'
    row = {"correct": correct, "passed": passed, "impl_rate": impl_rate}
    return f"{verdict(row)}</td>"


def verdict(row: Mapping[str, Any]) -> Markup:
    """Write the verdict on a measured record, with a sign."""
    word = verdict_word(row)
    good = word in {"right", "passed"}
    kind, sign = ("good", "✓") if good else ("bad", "✗")
    return Markup(f'<span class="{kind}">{sign} {word}</span>' if word else _NONE)  # noqa: S704


def _cells(name: str, held: Mapping[str, Sequence[Any]]) -> Iterable[str]:
    """Write the cells of a column."""
    values = held[name]
    if name in LONG:
        texts = [value or error or "" for value, error in zip(values, held["error"], strict=True)]
        return [f'<td class="text" dir="auto">{text}</td>' for text in _texts(texts, 120)]
    if name in SHORT:
        texts = ["—" if value is None else value for value in values]
        return [f'<td class="short" dir="auto">{text}</td>' for text in _texts(texts, 60)]
    unit = unit_of(name)
    return [f'<td class="num">{cell(value, unit)}</td>' for value in values]


def _texts(texts: Sequence[str], width: int) -> Sequence[str]:
    """Escape and cut texts; one search tells whether any of them needs escapes."""
    whole = "".join([text[:width] for text in texts])
    if not whole.isprintable() or any(sign in whole for sign in _SPECIAL):
        return [shown_text(text, width) for text in texts]
    return [text if len(text) <= width else f"{text[: width - 1]}…" for text in texts]


def shown_text(text: str, width: int) -> str:
    """Make hidden characters of a text visible, then cut and escape it."""
    shown = text[: width * 2]
    if not shown.isprintable():
        shown = visible(shown)
    if len(shown) > width:
        shown = shown[: width - 1] + "…"
    return str(escape(shown))
