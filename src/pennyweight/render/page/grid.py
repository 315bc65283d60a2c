"""What the template of the grid shows: tasks down, sides across, the share right in each cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Any, NamedTuple

from markupsafe import Markup

from pennyweight.render.charts.svg import short_names
from pennyweight.render.page import visible
from pennyweight.render.page.board import BoardTab
from pennyweight.render.page.record_rows import shown_text
from pennyweight.render.plain import middle, one_line
from pennyweight.text.format import count

CELLS = 800
"""About how many cells a page has before more of them are fetched."""
MIN_ROWS, MAX_ROWS = 8, 40
HEAD = 30
"""The most characters in the head of a column."""
TITLES = {
    "difficulty": "hardest first",
    "disagreement": "most disagreement",
    "category": "category",
    "task": "name",
}
"""The orders of tasks."""
FILTERS = {
    "differs": ("differs", "tasks on which the sides have different results"),
    "wrong": ("all wrong", "tasks that no side got right in any attempt"),
    "flaky": ("flaky", "tasks that a side got right in some attempts and wrong in others"),
}
PASSES = {
    **FILTERS,
    "wrong": ("none passed", "tasks that no side passed in any attempt"),
    "flaky": ("flaky", "tasks that a side passed in some attempts and not in others"),
}
"""The filters where something other than an answer decides, such as judges."""

Address = Callable[[Mapping[str, str]], str]


class GridCell(NamedTuple):
    """The attempts of a side at a task: the mean of those with a result, how many, and errors."""

    value: float | None
    attempts: int
    errors: int


@dataclass(frozen=True, slots=True)
class GridRow:
    """A task; a side that did not try it has no cell."""

    task: str
    category: str | None
    cells: tuple[GridCell | None, ...]


@dataclass(frozen=True, slots=True)
class GridSide:
    """A column; `query` selects its attempts at a task."""

    name: str
    query: str
    brief: str = "all attempts"
    """The name in the head of a narrow column."""


@dataclass(frozen=True, slots=True)
class GridView:
    """What the template of the grid shows."""

    sides: tuple[GridSide, ...]
    lines: tuple[Markup, ...]
    """The tasks as rows of a table."""
    orders: tuple[BoardTab, ...]
    filters: tuple[BoardTab, ...]
    tasks: int
    """Tasks that the filter leaves."""
    every: int
    start: int
    size: int
    columns: tuple[int, ...]
    """The place of each column in a task's cells: the columns are in the order of the board."""
    single: bool
    """Whether a side tried a task once at most, as far as the rows show."""
    api: str
    base: str
    earlier: str
    later: str
    alone: str = ""
    """The page of the grid alone."""
    sought: str = "tasks"
    """What the filter leaves."""
    passes: bool = False
    """Whether attempts pass or not; else they are right or wrong."""


def column_heads(names: Sequence[str]) -> dict[str, str]:
    """Return short names for the heads of narrow columns, told apart by what they do not share.

    >>> column_heads(["a-model-with-a-long-name-1 · T0", "a-model-with-a-long-name-2 · T0"])
    {'a-model-with-a-long-name-1 · T0': '…1 · T0', 'a-model-with-a-long-name-2 · T0': '…2 · T0'}
    """
    shown = {name: visible(name) for name in names}
    brief = short_names(list(shown.values()), HEAD)
    return {
        name: brief[told] if brief[told] == told or "…" in brief[told] else middle(told, HEAD)
        for name, told in shown.items()
    }


def rows_for(sides: int) -> int:
    """Return how many tasks a page shows, so that it stays small with many sides.

    >>> rows_for(1), rows_for(36), rows_for(200)
    (40, 22, 8)
    """
    return max(MIN_ROWS, min(MAX_ROWS, CELLS // sides))


def cell_words(cell: GridCell) -> tuple[str, str]:
    """Return the class and the text of a cell, readable without colour.

    >>> cell_words(GridCell(1.0, 1, 0)), cell_words(GridCell(0.667, 3, 0))
    (('g10', '✓'), ('g7', '67'))
    >>> cell_words(GridCell(None, 0, 2))
    ('gx', '!')
    """
    value, attempts, errors = cell
    if value is None:
        return ("gx", "!") if errors else ("gn", "–")
    kind = f"g{max(0, min(10, round(10 * value)))}"
    if attempts == 1 and value in {0.0, 1.0}:
        return kind, "✓" if value else "✗"
    return kind, f"{round(100 * value)}"


@lru_cache(4_096)
def _around(cell: GridCell, *, linked: bool) -> tuple[str, str]:
    """Return what is written before and after the address of a cell; few cells are different."""
    kind, text = cell_words(cell)
    link, end = ('<a href="', f'">{text}</a>') if linked else ("", text)
    return f'<td class="{kind}">{link}', f"{end}</td>"


def grid_lines(
    rows: Sequence[GridRow],
    sides: Sequence[GridSide],
    columns: Sequence[int],
    base: str,
    quote: Callable[[str], str],
) -> tuple[Markup, ...]:
    """Write the rows of a grid; each cell leads to the replies, if there are any to read."""
    made = []
    places = [(escape(side.query), place) for side, place in zip(sides, columns, strict=True)]
    for row in rows:
        at, cells = escape(base + quote(row.task)), row.cells
        name = f"<bdi>{shown_text(row.task, 60)}</bdi>"
        category = escape(one_line(row.category or "", 40))
        written = [
            '<tr><th scope="row" class="task">',
            f'<a href="{at}">{name}</a>' if at else name,
            f"<small>{category}</small></th>" if category else "</th>",
        ]
        for query, place in places:
            cell = cells[place]
            if cell is None:
                written.append('<td class="gn">·</td>')
            elif at:
                before, after = _around(cell, linked=True)
                written.append(f"{before}{at}{query}{after}")
            else:
                written += _around(cell, linked=False)
        made.append(Markup("".join([*written, "</tr>\n"])))  # noqa: S704
    return tuple(made)


@lru_cache(32)
def grid_heads(sides: tuple[GridSide, ...]) -> Markup:
    """Write the heads of the columns, which are the same above all rows."""
    heads = (
        f'<th scope="col" data-query="{escape(side.query)}" title="{shown_text(side.name, 120)}">'
        f"<span><bdi>{escape(side.brief)}</bdi></span></th>"
        for side in sides
    )
    return Markup("".join(heads))  # noqa: S704


def filter_tabs(
    grid: Mapping[str, Any], only: str, address: Address, *, passes: bool = False
) -> tuple[BoardTab, ...]:
    """Return the filters with how many tasks each leaves."""
    tabs = [BoardTab(f"all {count(grid['tasks'])}", address({"only": "", "from": ""}), not only)]
    for name, (title, _) in (PASSES if passes else FILTERS).items():
        if name == "differs" and len(grid["sides"]) < 2:
            continue
        href = address({"only": name, "from": ""})
        tabs.append(BoardTab(f"{title} {count(grid[name])}", href, only == name))
    return tuple(tabs)


def order_tabs(order: str, sides: int, address: Address) -> tuple[BoardTab, ...]:
    """Return the orders of tasks; one side has nothing to disagree with."""
    return tuple(
        BoardTab(title, address({"rows": "" if name == "difficulty" else name, "from": ""}),
                 order == name)
        for name, title in TITLES.items()
        if name != "disagreement" or sides > 1
    )  # fmt: skip
