"""Scores as a table for the terminal, Markdown, CSV or JSON."""

from __future__ import annotations

import io
import json
import math
import re
import shutil
import sys
from functools import partial
from typing import TYPE_CHECKING, Literal

from pennyweight.catalogue import FAMILIES, METRICS
from pennyweight.render.digits import decimals, digits_apart
from pennyweight.render.plain import csv_table, markdown_table, markdown_text, one_line
from pennyweight.scoring.scores import json_value
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.table import Table
    from rich.text import Text

    from pennyweight.scoring.estimates import Estimate, Value
    from pennyweight.scoring.scores import Group, Scores

_NAME_WIDTH = 24
_CELL_WIDTH = 15
_GAP = 2
_VALUE_WIDTH = 10
"""Room for a value in the table of all metrics, so that a measured time does not move columns."""


def render(scores: Scores, format: str, *, brief: bool = False) -> str:  # noqa: A002
    """Write scores in one of the formats; a brief table leaves out families without any value."""
    if format == "table":
        return as_table(scores, brief=brief)
    return {"json": as_json, "csv": as_csv, "markdown": as_markdown}[format](scores)


def as_json(scores: Scores) -> str:
    """Write strict JSON."""
    return json.dumps(scores.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(scores: Scores) -> str:
    """Write one row for each group and metric."""
    keys = list(scores.groups[0].group) if scores.groups else []
    rows: list[list[object]] = [[*keys, "metric", "value", "low", "high", "records", "skipped"]]
    for group in scores.groups:
        for name, e in group.estimates.items():
            ends = [json_value(x) for x in (e.value, e.low, e.high)]
            rows.append([*group.group.values(), name, *ends, e.records, e.skipped])
    return csv_table(rows)


def as_markdown(scores: Scores) -> str:
    """Write a table for each group."""
    parts = []
    for group in scores.groups:
        if group.group:
            parts.append(f"### {markdown_text(group.name)}\n")
        parts.append(f"{_counts(group)}\n")
        rows = [["metric", "value", _interval_title(scores), "records"]]
        for name, e in group.estimates.items():
            rows.append([name, value_shown(name, e), ends_shown(name, e), f"{e.records:,}"])
        parts.append(markdown_table(rows, right=(1, 2, 3)))
    return "\n".join(parts)


def as_table(scores: Scores, *, brief: bool = False) -> str:
    """Write tables for the terminal, by family; groups stand side by side as far as they fit."""
    from rich.console import Console  # noqa: PLC0415

    width = max(60, min(shutil.get_terminal_size().columns, 160))
    out = io.StringIO()
    console = Console(
        file=out, width=width, highlight=False, markup=False, force_terminal=sys.stdout.isatty()
    )
    groups = scores.groups
    if len(groups) == 1:
        console.print(_one_group(scores, groups[0], width, brief=brief))
        if _are_all(groups[0]) and any(groups[0].statistics.values()):
            console.print(_statistics(groups[0], width))
    else:
        cell = max(_CELL_WIDTH, *(_widest(group) for group in groups))
        fits = max(1, (width - _NAME_WIDTH) // (cell + _GAP))
        for start in range(0, len(groups), fits):
            console.print(_side_by_side(groups[start : start + fits], width, cell))
    for line in _footer(scores, brief=brief):
        console.print(line, style="dim")
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def _one_group(scores: Scores, group: Group, width: int, *, brief: bool) -> Table:
    """One line for each metric: value, interval, records; or why there is no value.

    Numbers are never cut: they get their room first, names and reasons fold in what is left.
    """
    known = {n: e for n, e in group.estimates.items() if e.value is not None}
    title = _interval_title(scores)
    usual = _VALUE_WIDTH if _are_all(group) else len("value")
    values = max(usual, *(len(value_shown(n, e)) for n, e in known.items()), 0)
    ends = max(len(title), *(len(ends_shown(n, e)) for n, e in known.items()), 0)
    counts = max(len("records"), *(len(f"{e.records:,}") for e in known.values()), 0)
    left = width - values - counts - 3 * _GAP
    longest = max(_NAME_WIDTH, *(len(name) + 2 for name in group.estimates))
    longest = max(12, min(longest, left - ends))
    reasons = max((len(why(n, group)) for n in group.estimates if n not in known), default=0)
    table = _table()
    table.add_column("metric", width=longest, overflow="fold")
    table.add_column("value", justify="right", width=values, no_wrap=True)
    table.add_column(title, justify="right", width=max(ends, min(reasons, left - longest)))
    table.add_column("records", justify="right", width=counts, no_wrap=True)
    for family, names in _filled(group) if brief else _families(group):
        table.add_row(_bold(family))
        for name in names:
            cell = _folded(name, longest)
            if name in known:
                e = group[name]
                table.add_row(cell, value_shown(name, e), ends_shown(name, e), f"{e.records:,}")
            else:
                table.add_row(cell, "—", why(name, group), style="dim")
    return table


def _folded(name: str, width: int) -> str:
    r"""Write a metric's name below its family, folded between its words where it is too long.

    >>> _folded("judge_mean_absolute_difference", 24)
    '  judge_mean_absolute_\n    difference'
    """
    lines, line = [], " "
    for word in re.findall("[^_]*_|[^_]+", name):
        if len(line) + len(word) > width - (line == " ") and line.strip():
            lines.append(line)
            line = "   "
        line += word if line.strip() else f" {word}"
    return "\n".join([*lines, line])


def _statistics(group: Group, width: int) -> Table:
    """The whole statistics of the measures of repeated runs."""
    fields = ("median", "mean", "mode", "min", "max", "std_dev", "count")
    rows = [["statistics", *(field.replace("std_dev", "std") for field in fields)]]
    for name, found in group.statistics.items():
        if found is not None:
            rows.append([f"  {name}", *(_number(getattr(found, f), 3) for f in fields)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[0] = max(18, widths[0])
    table = _table(_GAP if sum(widths) + _GAP * len(fields) <= width else 1)
    for name, wide in zip(rows[0], widths, strict=True):
        side: Literal["left", "right"] = "left" if name == "statistics" else "right"
        table.add_column(name, justify=side, max_width=wide, overflow="fold")
    for row in rows[1:]:
        table.add_row(*row)
    return table


def _side_by_side(groups: Sequence[Group], width: int, cell: int) -> Table:
    """One column for each group: the value, and below it the interval.

    What has no value is left out, unless it was asked for by name.
    """
    every = not _are_all(groups[0])
    known = {
        family: [n for n in names if every or any(g[n].value is not None for g in groups)]
        for family, names in _families(groups[0])
    }
    longest = max((len(n) + 2 for names in known.values() for n in names), default=0)
    longest = max(_NAME_WIDTH, min(longest, width - len(groups) * (cell + _GAP)))
    table = _table()
    table.add_column(one_line(", ".join(groups[0].group)), width=longest, overflow="fold")
    for group in groups:
        values = " / ".join("—" if v is None else str(v) for v in group.group.values())
        table.add_column(one_line(values), justify="right", width=cell, overflow="fold")
    table.add_row("records", *(f"{g.records:,}" for g in groups))
    table.add_row("errors", *(f"{g.errors:,}" for g in groups))
    for family, names in known.items():
        if names:
            table.add_row(_bold(family))
        for name in names:
            cells = [_two_lines(name, group[name]) for group in groups]
            table.add_row(_folded(name, longest), *cells)
    return table


def _widest(group: Group) -> int:
    """Give the width of the longest number of a group."""
    known = [(n, e) for n, e in group.estimates.items() if e.value is not None]
    texts = [t for n, e in known for t in (value_shown(n, e), _short_ends(n, e))]
    return max(map(len, texts), default=0)


def _two_lines(name: str, e: Estimate) -> Text:
    cell = _text(value_shown(name, e))
    cell.justify = "right"
    if e.low is not None:
        cell.append("\n" + _short_ends(name, e), style="dim")
    return cell


def _table(gap: int = _GAP) -> Table:
    from rich.table import Table  # noqa: PLC0415

    return Table(box=None, pad_edge=False, header_style="dim", padding=(0, gap, 0, 0))


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text  # noqa: PLC0415

    return Text(text, style=style)


def _bold(text: str) -> Text:
    return _text(text, "bold")


def _families(group: Group) -> list[tuple[str, list[str]]]:
    """List the metrics of a group by family."""
    titles = {**FAMILIES}
    found: dict[str, list[str]] = {}
    for name in group.estimates:
        family = METRICS[name].family
        found.setdefault(titles.get(family, family.capitalize()), []).append(name)
    return list(found.items())


def _filled(group: Group) -> list[tuple[str, list[str]]]:
    """List the families of which at least one metric has a value."""
    found = _families(group)
    return [(f, names) for f, names in found if any(group[n].value is not None for n in names)]


def _footer(scores: Scores, *, brief: bool) -> list[str]:
    lines = []
    if len(scores.groups) == 1:
        lines.append(_counts(scores.groups[0]))
        filled = dict(_filled(scores.groups[0]))
        left = [family for family, _ in _families(scores.groups[0]) if family not in filled]
        if left and brief:
            lines.append(f"Not shown, since nothing in them has a value: {', '.join(left)}.")
    else:
        left_out = "; what has no value is left out" if _are_all(scores.groups[0]) else ""
        lines.append(f"{_interval_title(scores)}s stand below the values{left_out}.")
        lines += _unknown(scores.groups) if not left_out else ()
    lines.append("'pennyweight metrics NAME' explains a number.")
    return lines


def _are_all(group: Group) -> bool:
    """Whether all metrics were computed, not some that were asked for by name."""
    return set(METRICS) <= set(group.estimates)


def _unknown(groups: Sequence[Group]) -> Iterator[str]:
    """Say of each metric why it has no value, and in which groups."""
    for name in groups[0].estimates:
        found: dict[str, list[str]] = {}
        for group in groups:
            if group[name].value is None:
                found.setdefault(why(name, group), []).append(group.name)
        for reason, where in found.items():
            named = "" if len(where) == len(groups) else f" for {', '.join(where)}"
            yield f"{name} has no value{named}: {reason}."


def _counts(group: Group) -> str:
    errors = f", {group.errors:,} of them errors" if group.errors else ""
    return f"{group.records:,} record{'s' if group.records != 1 else ''}{errors}."


def _interval_title(scores: Scores) -> str:
    return f"{scores.confidence * 100:g} % interval"


def why(name: str, group: Group) -> str:
    """Say why a metric has no value."""
    metric = METRICS[name]
    if metric.open_parts:
        return "name its parts with --weight, each with a value"
    if metric.parts:
        missing = [n for n in metric.parts if n not in group.estimates or group[n].value is None]
        return f"needs {', '.join(missing)}"
    if group[name].records == 0 or not metric.needs:
        return f"needs {sources(name, metric.inputs)}"
    return "not defined for these records"


def sources(name: str, inputs: Iterable[str]) -> str:
    """Say what a person has to give for a metric that reads these."""
    return _MORE.get(name) or " and ".join(dict.fromkeys(SOURCES.get(n, n) for n in inputs))


_MORE = {"sce_normalized": "two different answers"}
"""What a metric needs beyond that something is there."""

SOURCES = {
    "correct": "answer and target",
    "normalized_answer": "answer",
    "normalized_target": "target",
    "cot_tokens": "cot",
    "cot_chars": "cot",
    "step_count": "cot",
    "ra_ratio": "cot",
    "self_correcting": "cot",
    "total_tokens": "prompt_tokens and completion_tokens",
    "scenario_score": "observed",
    "quality": "a score or answers",
    "composite_score": "passed and impl_rate",
    "judges": "judge_scores",
    "judge_mean": "judge_scores",
    "judge_variance": "judge_scores",
    "judge_difference": "judge_scores",
}
"""What a person has to give for a measure that is no column of the record itself."""


def shown(name: str, value: Value, digits: int = 3) -> str:
    """Write a value the way its unit asks for, with more digits where its interval asks."""
    if value is None:
        return "—"
    if isinstance(value, str):
        return clean(value)
    metric = METRICS[name]
    if metric.range == (0, 1):
        return decimals(value, digits)
    sign = "$" if metric.unit == "US$" and math.isfinite(value) else ""
    return sign + _number(value, max(4, digits))


def value_shown(name: str, e: Estimate) -> str:
    """Write the value of an estimate, so that it can be told from the ends of its interval."""
    return shown(name, e.value, _digits(name, e))


def ends_shown(name: str, e: Estimate) -> str:
    """Write an interval."""
    if e.low is None:
        return ""
    if bound := _bound(name, e):
        return f"more than {bound}"
    return "[" + ", ".join(_end(name, end, _digits(name, e)) for end in (e.low, e.high)) + "]"


def _bound(name: str, e: Estimate) -> str:
    """Write the lower bound of what is infinite: the cost of a pass that was never seen."""
    if not isinstance(e.value, float) or not isinstance(e.low, float) or math.isfinite(e.value):
        return ""
    return shown(name, e.low) if math.isfinite(e.low) else ""


def _short_ends(name: str, e: Estimate) -> str:
    """Write an interval where there is little room: numbers only so long that the ends differ."""
    if bound := _bound(name, e):
        return f"> {bound}"
    if METRICS[name].range == (0, 1):
        digits = _digits(name, e)
    else:
        small = isinstance(e.high, float) and e.high < 0.1
        digits = digits_apart(e.high, (e.low,), 2 if small else 3, _number)
    return "–".join(_end(name, end, digits) for end in (e.low, e.high))


def _end(name: str, end: Value, digits: int) -> str:
    if METRICS[name].range == (0, 1) or isinstance(end, str):
        return shown(name, end, digits)
    return _number(end, digits)


def _digits(name: str, e: Estimate) -> int:
    """Give the digits that an interval needs, so that no end looks like the value if it is not."""
    return digits_apart(e.value, (e.low, e.high), 3, partial(_end, name))


def _number(value: Value, digits: int) -> str:
    """Write a number with so many significant digits, or all before the point."""
    if value is None:
        return "—"
    assert not isinstance(value, str)
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:,.{digits}g}"
