"""Scores as tables of the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from rich.table import Table
from rich.text import Text

from pennyweight.render.catalogue import by_family, why_missing
from pennyweight.render.format import estimate_cells, unit_of
from pennyweight.render.plain import one_line
from pennyweight.render.scores import (
    EXPLAINED,
    caution_lines,
    counts,
    estimand_line,
    interval_title,
    intervals_lines,
    missing_lines,
    repeats_of,
)
from pennyweight.render.terminal import GAP, Terminal, borderless
from pennyweight.scoring.estimands import USUAL
from pennyweight.scoring.estimates import Estimate
from pennyweight.scoring.overview import is_choice
from pennyweight.scoring.pooling import pooled_words
from pennyweight.scoring.scores import Group, Scores, Statistics
from pennyweight.scoring.sides import side_name
from pennyweight.text.format import MISSING, count, quantity
from pennyweight.text.notation import SHARE

MAX_WIDTH = 160
_MIN_NAME_WIDTH, _NAME_WIDTH = 12, 24
_NARROW_NAME_WIDTH = 20
"""Width of names next to cells of two lines, where a long name may take two lines as well."""
_MIN_CELL_WIDTH = 15
_VALUE_WIDTH, _ENDS_WIDTH = 10, 22
"""Room for a value and its interval, so that a measured time does not move columns."""


def as_table(scores: Scores, names: Sequence[str], more: Sequence[str], *, every: bool) -> str:
    """Write tables of metrics; groups are shown side by side as far as they fit.

    `more` says how many metrics are not shown. All metrics are shown by family.
    """
    terminal = Terminal(MAX_WIDTH)
    groups = scores.groups
    rows = _rows(names, titled=every or not _has_all_metrics(groups[0]))
    if len(groups) == 1:
        terminal.print(_one_group(scores, groups[0], rows, terminal.width))
        if every and any(groups[0].statistics.values()):
            terminal.print(_statistics(groups[0], terminal.width))
    else:
        cell = max(_MIN_CELL_WIDTH, *(_widest(group, names) for group in groups))
        fitting = max(1, (terminal.width - _NARROW_NAME_WIDTH) // (cell + GAP))
        for start in range(0, len(groups), fitting):
            some = groups[start : start + fitting]
            terminal.print(_side_by_side(some, rows, terminal.width, cell))
    for line in _footer(scores, names, more):
        terminal.print(line, style="dim")
    return terminal.text()


_Rows = Sequence[tuple[str, Sequence[str]]]
"""Metrics under the titles of their families; an empty title is not shown."""


def _rows(names: Sequence[str], *, titled: bool) -> _Rows:
    return by_family({name: name for name in names}) if titled else [("", names)]


def _one_group(scores: Scores, group: Group, rows: _Rows, width: int) -> Table:
    """Make one line for each metric: value, interval, records; or why there is no value.

    Numbers are never cut: they get their room first, names and reasons fold in the rest.
    """
    shown = [name for _, members in rows for name in members]
    head = pooled_words(group.pooled) or "value"
    known = {n: estimate_cells(n, group[n]) for n in shown if group[n].value is not None}
    title = interval_title(scores)
    least = (_VALUE_WIDTH, _ENDS_WIDTH) if _has_all_metrics(group) else (len("value"), len(title))
    values = max(least[0], *map(len, head.split(", ")), *(len(v) for v, _ in known.values()))
    ends = max(least[1], *(len(interval) for _, interval in known.values()), 0)
    records = max(len("records"), *(len(count(group[n].records)) for n in known), 0)
    left = width - values - records - 3 * GAP
    names = max(_NAME_WIDTH, *(len(name) + 2 for name in shown))
    names = max(_MIN_NAME_WIDTH, min(names, left - ends))
    ends = min(ends, left - names)
    reasons = max((len(why_missing(n, group)) for n in shown if n not in known), default=0)
    table = borderless()
    table.add_column("metric", width=names, overflow="fold")
    table.add_column(head, justify="right", width=values)
    table.add_column(title, justify="right", width=max(ends, min(reasons, left - names)))
    table.add_column("records", justify="right", width=records, no_wrap=True)
    for family, members in rows:
        if family:
            table.add_row(Text(family, "bold"))
        for name in members:
            cell = _folded(name, names, indent=2 if family else 0)
            if name in known:
                table.add_row(cell, *known[name], count(group[name].records))
            else:
                table.add_row(cell, MISSING, why_missing(name, group), style="dim")
    return table


def _folded(name: str, width: int, indent: int = 2) -> str:
    r"""Indent a metric's name, and fold it between its words where it is too long.

    >>> _folded("judge_mean_absolute_difference", 24)
    '  judge_mean_absolute_\n    difference'
    """
    lines, line = [], " " * indent
    for word in re.findall("[^_]*_|[^_]+", name):
        if len(line) + len(word) > width and line.strip():
            lines.append(line)
            line = " " * (indent + 2)
        line += word
    return "\n".join([*lines, line])


def _statistics(group: Group, width: int) -> Table:
    """Make the table of the statistics of the measures of repeated runs."""
    head = ("statistics", "median", "mean", "mode", "min", "max", "std", "count")
    rows = [head, *(_statistics_row(n, s) for n, s in group.statistics.items() if s is not None)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[0] = max(18, widths[0])
    table = borderless(gap=GAP if sum(widths) + GAP * (len(head) - 1) <= width else 1)
    for name, column in zip(head, widths, strict=True):
        side: Literal["left", "right"] = "left" if name == "statistics" else "right"
        table.add_column(name, justify=side, max_width=column, overflow="fold")
    for row in rows[1:]:
        table.add_row(*row)
    return table


def _statistics_row(name: str, found: Statistics) -> tuple[str, ...]:
    values = (found.median, found.mean, found.mode, found.min, found.max, found.std_dev)
    unit = SHARE if name == "passed" else unit_of(name)
    return (f"  {name}", *(quantity(v, unit) for v in values), count(found.count))


def _side_by_side(groups: Sequence[Group], rows: _Rows, width: int, cell: int) -> Table:
    """Make one column for each group: the value, and the interval below it.

    A metric without any value is omitted, unless it was asked for by name.
    """
    every = not _has_all_metrics(groups[0])
    known = {
        family: [n for n in names if every or any(g[n].value is not None for g in groups)]
        for family, names in rows
    }
    longest = max((len(n) + 2 for names in known.values() for n in names), default=0)
    names_width = max(_NARROW_NAME_WIDTH, min(longest, width - len(groups) * (cell + GAP)))
    table = borderless()
    table.add_column(one_line(", ".join(groups[0].group)), width=names_width, overflow="fold")
    for group in groups:
        values = side_name([MISSING if v is None else str(v) for v in group.group.values()])
        table.add_column(one_line(values), justify="right", width=cell, overflow="fold")
    table.add_row("records", *(count(g.records) for g in groups))
    table.add_row("errors", *(count(g.errors) for g in groups))
    if any(g.pooled for g in groups):
        said = (pooled_words(g.pooled).removesuffix(" pooled") for g in groups)
        table.add_row("pooled", *(words.replace(", ", "\n") for words in said))
    for family, names in known.items():
        if family and names:
            table.add_row(Text(family, "bold"))
        for name in names:
            row = [group[name] for group in groups]
            cells = [_two_lines(name, e, row) for e in row]
            table.add_row(_folded(name, names_width, indent=2 if family else 0), *cells)
    return table


def _widest(group: Group, names: Sequence[str]) -> int:
    """Return the width of the longest number of a group."""
    cells = (estimate_cells(n, group[n], narrow=True) for n in names)
    return max((len(text) for pair in cells for text in pair), default=0)


def _two_lines(name: str, e: Estimate, row: Sequence[Estimate]) -> Text:
    value, interval = estimate_cells(name, e, narrow=True, others=row)
    cell = Text(value, justify="right")
    if interval:
        cell.append(f"\n{interval}", style="dim")
    return cell


def _footer(scores: Scores, names: Sequence[str], more: Sequence[str]) -> list[str]:
    groups = scores.groups
    if len(groups) == 1:
        lines = [counts(groups[0])]
    else:
        lines = intervals_lines(scores, names)
        if not _has_all_metrics(groups[0]):
            lines += missing_lines(groups)
        elif not more:
            lines.append("Metrics without a value are not shown.")
    if scores.estimand != USUAL:
        lines.append(estimand_line(scores.estimand))
    lines += [
        *caution_lines(scores, names),
        *repeats_of(scores, names),
        *more,
    ]
    return [*lines, EXPLAINED]


def _has_all_metrics(group: Group) -> bool:
    """Whether no metric was asked for by name."""
    return is_choice(group.estimates)
