"""The rows of a leaderboard, written without a template, which is several times slower."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from markupsafe import Markup, escape

from pennyweight.render.page import visible
from pennyweight.render.page.board import BoardRow, BoardVerdict, BoardView, Gap
from pennyweight.render.page.record_rows import shown_text
from pennyweight.render.plain import side_line
from pennyweight.text.format import count

MAX_VERDICTS = 6
_SIGNS = {"pass": ("✓", "good"), "fail": ("✗", "bad"), "inconclusive": ("?", "quiet")}
_NOTHING = '<span class="quiet">—</span>'


def board_rows(view: BoardView) -> Markup:
    """Write the rows of a board, with a line below those that may be the best."""
    columns = 1 + len(view.columns)
    columns += sum(map(bool, (view.ranked, view.baseline, view.errors, view.verdicts)))
    whole = f'<td colspan="{columns}"'
    written = ["".join(_row(view, row)) for row in view.rows]
    if 0 < view.leaders < len(written):
        best = "shown to be the best" if view.leaders == 1 else "may be the best"
        line = f"<span>{best} ↑ · ↓ another side is shown to be better</span>"
        apart = next((i for i, row in enumerate(view.rows) if not row.rank), len(written))
        if apart < len(written):
            without = f"<span>{escape(visible(view.unranked))}</span>"
            written.insert(apart, f"{_cut(view.rows[apart])}{whole}>{without}</td></tr>\n")
        if view.leaders < apart:
            place = view.leaders
            written.insert(place, f"{_cut(view.rows[place])}{whole}>{line}</td></tr>\n")
    none = f'<tr>{whole} class="quiet">No side has this in its name.</td></tr>\n'
    return Markup("".join(written) or none)  # noqa: S704


def _cut(below: BoardRow) -> str:
    """Begin a line between rows, which is folded with the row below it."""
    return f'<tr class="cut"{" hidden data-folded" if below.hidden else ""}>'


def _row(view: BoardView, row: BoardRow) -> Iterator[str]:
    lower, name, short = _names(row.name, row.brief)
    kind = "leads" if row.leads and view.ranked else ""
    kind += " base" if row.baseline and view.baseline else ""
    yield f'<tr class="{kind}"{" hidden data-folded" if row.hidden else ""} data-name="{lower}">'
    if view.ranked:
        yield f'<td class="rank" title="{row.rank_words}">{row.rank or "—"}</td>'
    shown = f'<a href="{_escaped(row.href)}">{name}</a>' if row.href else name
    yield f'<th scope="row" class="side"><span class="name">{shown}</span></th>'
    yield row.cells[0].written
    if view.baseline:
        yield f'<td class="num gap">{_gap(row, short)}</td>'
    for cell in row.cells[1:]:
        yield cell.written
    if view.errors:
        kind, errors = ("bad", count(row.errors)) if row.errors else ("quiet", "0")
        yield f'<td class="num {kind}">{errors}<small>of {count(row.records)}</small></td>'
    if view.verdicts:
        decided = "".join(map(_verdict, row.verdicts[:MAX_VERDICTS]))
        yield f'<td class="verdicts">{decided or _NOTHING}</td>'
    yield "</tr>\n"


def _gap(row: BoardRow, name: str) -> str:
    """Write the difference from the baseline; a click on it makes this side the baseline."""
    if row.baseline:
        return '<span class="tag">baseline</span>'
    link = f'<a class="choose" href="{escape(row.choose)}" data-swap="board"'
    whom = f"Compare all sides with {name}"
    if row.gap is None:
        return f'{link} aria-label="{whom}">—</a>' if row.choose else "—"
    words, value, said, interval = _gap_texts(row.gap)
    if not row.choose:
        return f'<span title="{words}">{value}</span>{interval}'
    more = "Select to compare all sides with this one."
    return f'{link} title="{words} {more}" aria-label="{said}. {whom}">{value}</a>{interval}'


@lru_cache(2_048)
def _gap_texts(gap: Gap) -> tuple[str, str, str, str]:
    """Return the words of a difference, the difference, the same as it is read out, its ends."""
    value = escape(gap.value)
    kind, about = ("sure", "") if gap.shown else ("unsure", '<span aria-hidden="true">≈ </span>')
    said = f"{value}, {'shown' if gap.shown else 'not shown'}"
    interval = f"<small>{escape(gap.interval)}</small>" if gap.interval else ""
    return (
        shown_text(gap.words, 1_000),
        f'<span class="{kind}">{about}{value}</span>',
        said,
        interval,
    )


def _verdict(one: BoardVerdict) -> str:
    sign, kind = _SIGNS[one.verdict]
    before = "" if one.current else ", before the run changed"
    shown = (
        f'<span aria-hidden="true">{sign}</span> {shown_text(one.policy, 22)}'
        f'<span class="unseen">: {one.verdict}{before}</span>'
    )
    if one.href:
        when = f", {one.when}" if one.when else ""
        said = f"{shown_text(one.policy, 40)}: {one.verdict}{when}{before}"
        shown = f'<a href="{escape(one.href)}" title="{said}">{shown}</a>'
    return f'<span class="kept {kind}{"" if one.current else " old"}">{shown}</span>'


@lru_cache(1_024)
def _names(name: str, brief: str) -> tuple[str, str, str]:
    """Return the name of a side for the search, as it is shown, and for a label."""
    lower, full = str(escape(visible(name).lower())), side_line(visible(name))
    shown = f"<bdi>{escape(full)}</bdi>"
    if brief != full:
        shown = f'<bdi class="wide-only">{escape(full)}</bdi>'
        shown += f'<bdi class="narrow-only">{escape(brief)}</bdi>'
    return lower, shown, str(escape(full))


@lru_cache(1_024)
def _escaped(address: str) -> str:
    return str(escape(address))
