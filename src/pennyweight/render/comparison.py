"""A comparison as a table for the terminal, Markdown, CSV or JSON."""

from __future__ import annotations

import json
import math
import textwrap
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from pennyweight.catalogue import METRICS
from pennyweight.render.catalogue import _console, _trimmed
from pennyweight.render.digits import decimals, digits_apart
from pennyweight.render.plain import csv_table, markdown_table, markdown_text, one_line
from pennyweight.render.sentences import money, plain, probability, sentences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pennyweight.scoring.comparison import Comparison, Side
    from pennyweight.scoring.estimates import Estimate, Value
    from pennyweight.scoring.pairs import Pair

COLUMNS = {
    "pass_rate": "pass rate",
    "accuracy": "accuracy",
    "impl_rate_mean": "impl rate",
    "cost_usd_mean": "cost",
    "cost_of_pass": "cost of pass",
    "composite_median": "composite",
}
"""The metrics of a side that are shown, with their titles."""


def render(found: Comparison, format: str) -> str:  # noqa: A002
    """Write a comparison in one of the formats."""
    made = {"json": as_json, "csv": as_csv, "markdown": as_markdown, "table": as_table}
    return made[format](found)


def as_json(found: Comparison) -> str:
    """Write strict JSON."""
    said = {**found.to_dict(), "words": sentences(found)}
    return json.dumps(said, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(found: Comparison) -> str:
    """Write one row for each pair of sides and metric."""
    names = [
        *("a", "b", "metric", "difference", "low", "high", "p", "p_adjusted", "method", "tasks"),
        *("only_a", "only_b", "mean_a", "mean_b", "cliffs_delta", "detectable"),
        "tasks_for_5_points",
    ]
    rows = [[getattr(pair, name) for name in names] for pair in found.pairs]
    return csv_table([names, *rows])


def as_markdown(found: Comparison) -> str:
    """Write the words as a list, then the sides and the pairs as tables."""
    parts = ["".join(f"- {markdown_text(line)}\n" for line in sentences(found))]
    head, *body = _sides(found, " ")
    parts.append(markdown_table([head, *body], right=range(1, len(head))))
    if across := _across(found):
        parts.append(f"{markdown_text(across)}\n")
    title = ["pair", "metric", "difference", _interval(found), "p", "Holm", "Cliff's δ", "tasks"]
    rows = [[*title, "detects"]]
    for pair in found.pairs:
        cells = _cells(pair)
        delta = "—" if pair.cliffs_delta is None else _minus(f"{pair.cliffs_delta:+.2f}")
        rows.append(
            [f"{pair.b} − {pair.a}", pair.metric, *cells[:4], delta, f"{pair.tasks:,}", cells[4]]
        )
    if found.pairs:
        parts.append(markdown_table(rows, right=range(2, 9)))
    parts.append(markdown_text(_legend(found)) + "\n")
    return "\n".join(parts)


def as_table(found: Comparison) -> str:
    """Write for the terminal: first the words, then the sides, then the pairs."""
    console, out = _console()
    for line in sentences(found):
        console.print(textwrap.fill(line, min(console.width, 80), break_on_hyphens=False))
    console.print()
    head, *body = _sides(found, "\n")
    console.print(_table(head, body))
    if across := _across(found):
        console.print(textwrap.fill(across, min(console.width, 80)), style="dim")
    if found.comparisons:
        console.print()
        title = ["on the same tasks", "difference", _interval(found), "p", "Holm", "detects"]
        for row in _aligned([title, *_by_pair(found)]):
            console.print(row)
    console.print(textwrap.fill(_legend(found), min(console.width, 80)), style="dim")
    return _trimmed(out)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Align numbers on the right; the second line of a cell, an interval, is dim."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for index, name in enumerate(head):
        side = "right" if index else "left"
        table.add_column(name, justify=side, overflow="fold", no_wrap=bool(index))  # type: ignore[arg-type]
    for row in rows:
        parts = (cell.partition("\n") for cell in row)
        table.add_row(*(Text.assemble(first, (line + rest, "dim")) for first, line, rest in parts))
    return table


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[Text]:
    """Align rows in columns, under a head; a row of one cell is a title and takes the line."""
    full = [row for row in rows if len(row) > 1]
    widths = [max(len(row[i]) for row in full) for i in range(len(full[0]))]
    for index, row in enumerate(rows):
        if len(row) == 1:
            yield Text(row[0], "bold")
            continue
        first, *rest = (
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield Text("  ".join([first, *rest]), "" if index else "dim")


def _sides(found: Comparison, between: str) -> list[list[str]]:
    """One row for each side; what no side has is left out."""
    sides = found.sides
    there = [n for n in COLUMNS if n in sides[0].group.estimates]
    names = [n for n in there if any(s[n].value is not None for s in sides)]
    if "pass_rate" in names and "accuracy" in names:
        same = all(s["pass_rate"].value == s["accuracy"].value for s in sides)
        names.remove("pass_rate" if same else "accuracy")
    if "composite_median" in names and between == "\n":  # there is no room, and the pairs have it
        names = [n for n in names if n != "impl_rate_mean"]
    graded = any(s["grade"].value is not None for s in sides)
    uplift = ["uplift", "grade"] if graded else []
    rows = [[", ".join(found.by), "records", *(COLUMNS[n] for n in names), *uplift]]
    for side in sides:
        cells = [_estimate(n, side[n], between) for n in names]
        grades = [_uplift(side, found), _letter(side["grade"].value)] if graded else []
        records = f"{side.group.records:,}"
        rows.append([one_line(side.name, 24), records, *cells, *grades])
    return rows


def _estimate(name: str, e: Estimate, between: str) -> str:
    """Write a value and its interval; of what never passed, the bound."""
    if e.value is None:
        return "—"
    dollars = METRICS[name].unit == "US$"
    assert isinstance(e.value, float)
    value = money(e.value) if dollars else f"{e.value:.3f}"
    if not isinstance(e.low, float) or not isinstance(e.high, float):
        return value
    if name == "cost_usd_mean" and between == "\n":
        return value
    if math.isinf(e.value):
        return f"{value}{between}> {money(e.low)}"
    if dollars:
        ends = "–".join(money(x).lstrip("$") for x in (e.low, e.high))
    else:
        digits = digits_apart(e.value, (e.low, e.high), 2, _share)
        ends = f"{_share(e.low, digits)}–{_share(e.high, digits)}"
    return f"{value}{between}{ends}"


def _share(value: float, digits: int) -> str:
    return decimals(value, digits, usual=2)


def _uplift(side: Side, found: Comparison) -> str:
    if side.name == found.baseline or side.tier_uplift is None:
        return "—"
    return _minus(f"{side.tier_uplift * 100:+.1f} %")


def _letter(value: Value) -> str:
    return value if isinstance(value, str) else "—"


def _across(found: Comparison) -> str:
    """Write what holds over all sides."""
    across = found.across
    named = {
        "pass rate variance": _short(across.pass_rate_variance),
        "cost variance": _short(across.cost_variance),
        "cost delta": None if across.cost_delta is None else money(across.cost_delta),
    }
    said = [f"{name} {value}" for name, value in named.items() if value is not None]
    return f"Of the sides' medians: {', '.join(said)}." if said else ""


def _short(value: float | None) -> str | None:
    return None if value is None else f"{value:.3g}"


def _by_pair(found: Comparison) -> Iterator[list[str]]:
    """Yield a line for each pair of sides, and below it one for each metric."""
    last: tuple[str, str] | None = None
    for pair in found.pairs:
        if (pair.a, pair.b) != last:
            last = pair.a, pair.b
            usual = pair.tasks
            tasks = f"{usual:,} task{'' if usual == 1 else 's'}" if usual else "no task in common"
            yield [f"{one_line(pair.b, 30)} − {one_line(pair.a, 30)}, {tasks}"]
        if not pair.tasks:
            continue
        other = f" ({pair.tasks:,} tasks)" if pair.tasks != usual else ""
        yield [f"  {pair.metric}{other}", *_cells(pair)]


def _cells(pair: Pair) -> list[str]:
    """Write difference, interval, p, Holm's p, and the smallest difference that would be seen."""
    ends = "nothing varied" if pair.alike else ""
    if pair.low is not None and pair.high is not None:
        ends = f"{_amount(pair, pair.low, bare=True)} to {_amount(pair, pair.high, bare=True)}"
    found = "—" if pair.difference is None else _amount(pair, pair.difference)
    seen = "—" if pair.detectable is None else _amount(pair, pair.detectable).lstrip("+")
    return [found, ends, probability(pair.p), probability(pair.p_adjusted), seen]


def _amount(pair: Pair, value: float, *, bare: bool = False) -> str:
    """Write an amount of difference in its unit: points of shares, dollars, tokens, ms."""
    sign = "−" if value < 0 else "+" if value > 0 else ""
    if pair.kind != "number":
        text = f"{abs(value) * 100:.1f}"
        return f"{sign if float(text) else ''}{text}" + ("" if bare else " pt")
    metric = METRICS.get(pair.metric)
    if metric and metric.unit == "US$":
        return sign + (money(abs(value)).lstrip("$") if bare else money(abs(value)))
    return sign + plain(abs(value), 3)


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _interval(found: Comparison) -> str:
    return f"{found.confidence * 100:g} % interval"


def _legend(found: Comparison) -> str:
    if not found.comparisons:
        return f"{_interval(found)}s stand beside the values."
    if found.comparisons == 1:
        return (
            "p: paired, by task. Holm: the same, as there is one comparison. detects: the smallest "
            "difference seen with 80 % power. --format json has all numbers."
        )
    return (
        f"p: paired, by task. Holm: corrected for all {found.comparisons} comparisons. detects: "
        "the smallest difference seen with 80 % power, so corrected. --format json has all numbers."
    )
