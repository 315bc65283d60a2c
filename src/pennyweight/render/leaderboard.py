"""Scores of many groups as a leaderboard: one row for each side, the best first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.table import Table
from rich.text import Text

from pennyweight.render.format import estimate_cells
from pennyweight.render.plain import markdown_table, markdown_text, one_line, side_line
from pennyweight.render.scores import (
    EXPLAINED,
    caution_lines,
    estimand_line,
    intervals_lines,
    missing_lines,
    repeats_of,
)
from pennyweight.render.scores_table import MAX_WIDTH
from pennyweight.render.terminal import GAP, Terminal, borderless
from pennyweight.scoring.estimands import USUAL
from pennyweight.scoring.overview import best_first, is_choice, is_curve
from pennyweight.scoring.pooling import pooled_words
from pennyweight.scoring.scores import Group, Scores
from pennyweight.scoring.sides import side_name
from pennyweight.text.format import MISSING, count, plural

MAX_SIDES = 20
"""The most sides of a default table."""
_MAX_NAME_WIDTH = 32
_LEADING = 2
"""The columns before those of metrics: the name of a side, and how many records it has."""


def render(
    scores: Scores,
    format: str,  # noqa: A002
    names: Sequence[str],
    more: Sequence[str],
    sort: str | None,
    *,
    every: bool,
    rest: str,
) -> str:
    """Write a leaderboard as a table of the terminal or in Markdown.

    The metric by which it is sorted is its first column, by default the headline. `more` says how
    many metrics are not shown, `rest` how to see the other sides.
    """
    named = not is_choice(scores.groups[0].estimates)
    known = [n for n in names if named or any(g[n].value is not None for g in scores.groups)]
    first = sort or known[0]
    curve = sort is None and is_curve(scores.groups)
    ordered = scores.groups if curve else best_first(scores.groups, first)
    ranked = replace(scores, groups=tuple(ordered))
    columns = tuple(dict.fromkeys((first, *known)))
    board = Leaderboard(ranked, columns, every, split=every or named)
    hidden = len(scores.groups) - len(board.sides)
    order = "In the order of the cuts" if curve else f"Sorted by {first}, the best first"
    lines = [f"{order}. --sort METRIC sorts by {'a metric' if curve else 'another'}."]
    lines += missing_lines(scores.groups) if named else []
    if scores.estimand != USUAL:
        lines.append(estimand_line(scores.estimand))
    lines += [*caution_lines(scores, columns), *repeats_of(scores, columns)]
    lines += [f"{plural(hidden, 'more group')}: {rest} shows them all."] if hidden else []
    if format == "markdown":
        text = [f"{markdown_text(line)}\n" for line in (*lines, *more)]
        return "\n".join([board.markdown(), *text])
    terminal = Terminal(MAX_WIDTH)
    tables, dropped = board.tables(terminal.width)
    for table in tables:
        terminal.print(table)
    lines = [*intervals_lines(scores, columns), *lines]
    if dropped:
        lines.append(f"No room for {', '.join(dropped)}: a wider terminal or --metric shows them.")
    for line in (*lines, *more, EXPLAINED):
        terminal.print(line, style="dim")
    return terminal.text()


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Sides in their order, and the metrics that are their columns.

    Metrics that have no room are dropped and named, or get a table of their own.
    """

    scores: Scores
    names: tuple[str, ...]
    every: bool = False
    """Whether all sides are shown."""
    split: bool = False
    """Whether metrics without room get a table of their own."""

    @property
    def sides(self) -> tuple[Group, ...]:
        """The sides that are shown."""
        return self.scores.groups if self.every else self.scores.groups[:MAX_SIDES]

    def markdown(self) -> str:
        """Write one Markdown table; each interval is in brackets."""
        head, *body = self._cells(narrow=False)
        rows = [[_in_one_line(cell) for cell in row] for row in body]
        return markdown_table([head, *rows], right=range(1, len(head)))

    def tables(self, width: int) -> tuple[list[Table], list[str]]:
        """Make the tables that fit into a terminal, and name the metrics that are not shown."""
        head, *body = self._cells(narrow=True)
        columns = list(zip(*body, strict=True))
        widths = [_width(column) for column in columns]
        titles = [_folded(name, room) for name, room in zip(head, widths, strict=True)]
        widths = [max(room, _width([t])) for room, t in zip(widths, titles, strict=True)]
        lead = sum(widths[:_LEADING]) + GAP * (_LEADING - 1)
        shown, dropped = _fitting(widths[_LEADING:], width - lead, split=self.split)
        tables = []
        for part in shown:
            chosen = [*range(_LEADING), *(index + _LEADING for index in part)]
            tables.append(_table([titles[i] for i in chosen], [columns[i] for i in chosen]))
        return tables, [self.names[index] for index in dropped]

    def _cells(self, *, narrow: bool) -> list[list[str]]:
        """Make the head and one row for each side; an interval is on a second line of its cell."""
        sides = self.sides
        rows = [[one_line(", ".join(sides[0].group)), "records", *self.names]]
        for side in sides:
            errors = plural(side.errors, "error") if side.errors else ""
            parts = count(side.records), errors, *pooled_words(side.pooled).split(", ")
            rows.append([_side_name(side), "\n".join(filter(None, parts))])
            for name in self.names:
                others = [other[name] for other in sides]
                cells = estimate_cells(name, side[name], narrow=narrow, others=others)
                rows[-1].append("\n".join(filter(None, cells)))
        return rows


def _in_one_line(cell: str) -> str:
    first, *more = cell.split("\n")
    return f"{first} ({', '.join(more)})" if more else first


def _side_name(group: Group) -> str:
    """Write the values of a group's columns."""
    values = [MISSING if v is None else str(v) for v in group.group.values()]
    return side_line(side_name(values), _MAX_NAME_WIDTH)


def _width(cells: Sequence[str]) -> int:
    return max(len(line) for cell in cells for line in cell.split("\n"))


def _folded(name: str, width: int) -> str:
    r"""Fold a metric's name between its words.

    >>> _folded("attempt_error_rate", 12)
    'attempt_\nerror_rate'
    """
    lines = [""]
    for word in re.findall("[^_]*_|[^_]+", name):
        if lines[-1] and len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += word
    return "\n".join(lines)


def _fitting(widths: Sequence[int], room: int, *, split: bool) -> tuple[list[list[int]], list[int]]:
    """Choose the columns of each table, and those that no table has.

    >>> _fitting([10, 10, 30, 10], 40, split=False)
    ([[0, 1, 3]], [2])
    >>> _fitting([10, 10, 30, 10], 40, split=True)
    ([[0, 1], [2], [3]], [])
    """
    tables: list[list[int]] = [[]]
    used, dropped = 0, []
    for index, width in enumerate(widths):
        if used + GAP + width > room and tables[-1]:
            if not split:
                dropped.append(index)
                continue
            tables.append([])
            used = 0
        tables[-1].append(index)
        used += GAP + width
    return tables, dropped


def _table(titles: Sequence[str], columns: Sequence[Sequence[str]]) -> Table:
    """Align numbers on the right; the second line of a cell, an interval, is dim."""
    table = borderless()
    for index, title in enumerate(titles):
        table.add_column(title, justify="right" if index else "left", no_wrap=True)
    for row in zip(*columns, strict=True):
        parts = (cell.partition("\n") for cell in row)
        table.add_row(*(Text.assemble(first, (line + rest, "dim")) for first, line, rest in parts))
    return table
