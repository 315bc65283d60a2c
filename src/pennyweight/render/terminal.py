"""Tables in the terminal."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from rich.console import Console
from rich.table import Table
from rich.text import Text

MIN_WIDTH, MAX_WIDTH = 60, 100
GAP = 2
"""Spaces between two columns."""


@dataclass(slots=True)
class Terminal:
    """Collects output as wide as the terminal, in colour if standard output shows colours."""

    max_width: int = MAX_WIDTH
    console: Console = field(init=False)
    _out: io.StringIO = field(init=False, default_factory=io.StringIO)

    def __post_init__(self) -> None:
        """Open the console."""
        columns = shutil.get_terminal_size().columns
        self.console = Console(
            file=self._out,
            width=max(MIN_WIDTH, min(columns, self.max_width)),
            highlight=False,
            markup=False,
            emoji=False,
            force_terminal=sys.stdout.isatty(),
        )

    @property
    def width(self) -> int:
        """Columns that a line may have."""
        return self.console.width

    def print(self, what: str | Text | Table = "", style: str | None = None) -> None:
        """Add text or a table."""
        self.console.print(what, style=style)

    def line(self, text: str, style: str = "") -> None:
        """Add a line that is not wrapped."""
        self.console.print(Text(text, style), soft_wrap=True)

    def text(self) -> str:
        """Return what was printed, without spaces at the ends of lines."""
        return "".join(line.rstrip() + "\n" for line in self._out.getvalue().splitlines())


def fits(rows: Iterable[Sequence[str]]) -> bool:
    """Whether a table fits into the terminal without wrapping a cell."""
    widths = [_width(cells) for cells in zip(*rows, strict=True)]
    return sum(widths) + GAP * (len(widths) - 1) <= Terminal().width


def table_text(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Container[int] = ()
) -> str:
    """Write a table in which no first cell is cut; `right` lists the columns of numbers.

    A first cell of more than half the width goes on on the next line. Other text is wrapped between
    words where there is room for them.
    """
    terminal, table, body = Terminal(), borderless(), list(rows)
    longest = _width(["", *(row[0] for row in body)])
    folds = longest > terminal.width // 2
    columns = [list(cells) for cells in zip(head, *body, strict=True)]
    numbers = [_width(columns[index]) for index in range(1, len(head)) if index in right]
    texts = [index for index in range(1, len(head)) if index not in right]
    names = min(max(longest, len(head[0])), terminal.width // 2)
    room = terminal.width - names - sum(numbers) - GAP * (len(head) - 1)
    widths = dict(zip(texts, _shared([columns[index] for index in texts], room), strict=True))
    for index, name in enumerate(head):
        number, first = index in right, index == 0
        table.add_column(
            name,
            justify="right" if number else "left",
            width=terminal.width // 2 if first and folds else widths.get(index),
            min_width=longest if first and not folds else None,
            no_wrap=number or (first and not folds),
            overflow="fold",
        )
    for row in body:
        table.add_row(*row)
    terminal.print(table)
    return terminal.text()


def _shared(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """Share the room among columns of text, so that words stay whole as long as they can.

    >>> _shared([["error"], ["the server has no such model"]], 20)
    [5, 15]
    """
    whole = [_width(cells) for cells in columns]
    words = [max(map(len, " ".join(cells).split()), default=0) for cells in columns]
    least = _capped(words, [0] * len(words), room)
    return _capped(whole, least, room)


def _width(cells: Iterable[str]) -> int:
    return max(len(line) for cell in cells for line in cell.split("\n"))


def _capped(most: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Lower the largest until all fit into the room, each between its least and its most."""
    cap = max(most, default=0)
    while True:
        found = [min(high, max(low, cap)) for high, low in zip(most, least, strict=True)]
        if sum(found) <= room or cap <= 1:
            return found
        cap -= 1


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[Text]:
    """Align rows in columns, the first as their head; a row of one cell is a title.

    The second line of a cell, an interval, is dim.
    """
    full = [[cell.split("\n") for cell in row] for row in rows if len(row) > 1]
    widths = [max(len(line) for row in full for line in row[i]) for i in range(len(full[0]))]
    for index, row in enumerate(rows):
        if len(row) == 1:
            yield Text(row[0], "bold")
            continue
        lines = zip_longest(*(cell.split("\n") for cell in row), fillvalue="")
        for line, (first, *rest) in enumerate(lines):
            right = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
            dim = "" if index and not line else "dim"
            yield Text("  ".join([first.ljust(widths[0]), *right]), dim)


def labelled(rows: Iterable[Sequence[str]]) -> Table:
    """Make a table of labels and texts."""
    table = borderless(header=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def borderless(*, header: bool = True, gap: int = GAP) -> Table:
    """Make a table without lines."""
    return Table(
        box=None, show_header=header, pad_edge=False, header_style="dim", padding=(0, gap, 0, 0)
    )
