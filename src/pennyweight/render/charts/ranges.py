"""Charts of estimates with their intervals, one below the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from pennyweight.catalogue import METRICS
from pennyweight.render.charts import svg
from pennyweight.render.charts.scales import Scale, around, ticks
from pennyweight.render.charts.svg import Chart, ChartMark, Drawing, Link, cut
from pennyweight.render.format import unit_of
from pennyweight.scoring.digest import counted
from pennyweight.text.format import estimate, plural, quantity, tick, tick_points
from pennyweight.text.notation import POINTS, SHARE

MIN_ROW, MAX_ROW = 26, 52
"""The height of a row: large enough for a finger, small enough to look like a list."""
FRAME = 44
"""The height of everything but the rows."""

Row = Mapping[str, Any]
Writer = Callable[[Row], tuple[str, str, str | None]]
"""Returns the number of a row, its tooltip and its link."""


def _drawing(title: str, names: Sequence[str], right: int) -> Drawing:
    """Start a chart that is as high as others, or higher if its rows need it."""
    left = int(min(190, max(len(n) for n in names) * svg.CHAR + 14))
    height = max(svg.HEIGHT, int(FRAME + _row_height(names) * len(names)))
    return Drawing(title, height=height, left=left, right=right, top=8)


def _row_height(names: Sequence[str]) -> float:
    return min(MAX_ROW, max(MIN_ROW, (svg.HEIGHT - FRAME) / len(names)))


def _draw_grid(drawing: Drawing, scale: Scale, places: Iterable[float], kind: str = "grid") -> None:
    for at in places:
        drawing.line(scale(at), drawing.top, scale(at), drawing.base, kind)


def _draw_rows(
    drawing: Drawing, scale: Scale, rows: Sequence[Row], names: Sequence[str], write: Writer
) -> None:
    """Draw the name, the interval, the point and the number of each row."""
    height = _row_height(names)
    spare = drawing.height - FRAME - height * len(rows)
    for index, (row, name) in enumerate(zip(rows, names, strict=True)):
        y = drawing.top + spare / 2 + height * (index + 0.5)
        number, title, href = write(row)
        if None not in (row["low"], row["high"]):
            drawing.line(scale(row["low"]), y, scale(row["high"]), y, "whisker")
        hit = (0.0, y - height / 2, float(drawing.width), height)
        drawing.dot(scale(row["value"]), y, "dot", ChartMark(title, href, (index + 1, 0), hit), 4.5)
        drawing.text(drawing.left - 8, y + 4, name, "ink", "end")
        drawing.text(drawing.width - 2, y + 4, number, "ink", "end")


def lower(metric: str) -> bool:
    """Whether lower values of a metric are better."""
    return metric in METRICS and METRICS[metric].better == "lower"


def _table(rows: Sequence[Row], *head: str) -> list[tuple[Any, ...]]:
    return [head, *((r["name"], r["value"], r["low"], r["high"], r["n"]) for r in rows)]


def _estimates(
    name: str, title: str, note: str, data: Mapping[str, Any], link_of: Callable[[Row], str | None]
) -> Chart:
    """Draw estimates with their intervals, one below the other."""
    metric = data["metric"]
    rows = sorted(data["rows"], key=lambda row: row["value"], reverse=not lower(metric))
    unit, words = unit_of(metric), metric.replace("_", " ")
    brief = svg.short_names([row["name"] for row in rows], 26)
    names = [brief[row["name"]] for row in rows]
    drawing = _drawing(f"{words.capitalize()} {title}", names, 52)
    known = (row[end] for row in rows for end in ("value", "low", "high"))
    scale = drawing.x(*around((v for v in known if v is not None), share=unit == SHARE))
    _draw_grid(drawing, scale, ticks(scale.low, scale.high, 4))

    def write(row: Row) -> tuple[str, str, str | None]:
        value, ends = quantity(row["value"], unit), ""
        if None not in (row["low"], row["high"]):
            value, ends = estimate(row["value"], row["low"], row["high"], unit)
        facts = ", ".join(filter(None, (value, ends, plural(row["n"], "record"))))
        return value, f"{cut(row['name'], 80)}: {facts}", link_of(row)

    _draw_rows(drawing, scale, rows, names, write)
    drawing.x_axis(scale, partial(tick, unit=unit), words, 4)
    table = _table(rows, "name", metric, "low", "high", "records")
    return drawing.chart(name, note + svg.legend(brief), table, ("", unit, unit, unit, ""))


def sides(data: Mapping[str, Any], link: Link) -> Chart:
    """Draw the sides of a comparison."""
    note = "The best first, with confidence intervals; differences are tested task by task."
    known = counted(data["metric"])
    return _estimates(
        "sides", "of each side", note, data, lambda row: link({**row["filter"], **known})
    )


def categories(data: Mapping[str, Any], link: Link) -> Chart:
    """Draw the categories."""
    note = "Each category with its confidence interval."
    known = counted(data["metric"])
    return _estimates(
        "categories",
        "by category",
        note,
        data,
        lambda row: link({"category": row["name"], **known}),
    )


def differences(data: Mapping[str, Any], link: Link) -> Chart:
    """Draw paired differences around zero; each leads to the tasks that changed."""
    rows = [row for row in data["rows"] if None not in (row["low"], row["high"])]
    unit = unit_of(data["metric"])
    in_points = unit == SHARE
    brief = svg.short_names([name for row in rows for name in row["pair"]], 12)
    names = [" − ".join(brief[name] for name in row["pair"]) for row in rows]
    drawing = _drawing("Difference on the same tasks", names, 78)
    far = 1.05 * max(0.05, *(abs(row[end]) for row in rows for end in ("low", "high")))
    scale = drawing.x(-far, far)
    _draw_grid(drawing, scale, ticks(-far, far, 4))
    _draw_grid(drawing, scale, (0,), "axis")

    def write(row: Row) -> tuple[str, str, str | None]:
        value, ends = estimate(row["value"], row["low"], row["high"], unit, signed=True)
        title = f"{cut(row['name'], 90)}: {value}, {ends}, {plural(row['n'], 'task')}"
        return value, title, link({"pair": row["pair"]})

    _draw_rows(drawing, scale, rows, names, write)
    axis = data["metric"].replace("_", " ") + (", in points" if in_points else "")
    drawing.x_axis(scale, tick_points if in_points else tick, axis, 4)
    table = _table(rows, "pair", "difference", "low", "high", "tasks")
    note = "Compared task by task. Where the line crosses zero, no difference was shown."
    numbers = [POINTS if in_points else unit] * 3
    return drawing.chart("differences", note + svg.legend(brief), table, ("", *numbers, ""))
