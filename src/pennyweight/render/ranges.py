"""Charts of estimates, one below the other, each with its interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pennyweight.render.chart import Chart, named
from pennyweight.render.format import (
    POINTS,
    SHARE,
    estimate,
    plural,
    quantity,
    tick,
    tick_points,
    unit_of,
)
from pennyweight.render.labels import legend, short_names
from pennyweight.render.svg import CHAR, HEIGHT, Drawing, Scale, cut, ticks

if TYPE_CHECKING:
    from pennyweight.render.chart import Link

LEAST, MOST = 26, 52
"""The height of a row: enough for a finger, and little enough to be seen as one list."""
FRAME = 44
"""The height of what is no row."""


def _drawing(title: str, names: Sequence[str], right: int) -> tuple[Drawing, float]:
    """Begin a chart as high as the others, as long as its rows fit; gives a row's height, too."""
    row = min(MOST, max(LEAST, (HEIGHT - FRAME) / len(names)))
    left = int(min(190, max(len(n) for n in names) * CHAR + 14))
    height = max(HEIGHT, int(FRAME + row * len(names)))
    return Drawing(title, height=height, left=left, right=right, top=8), row


def _rows(
    drawing: Drawing,
    scale: Scale,
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    row: float,
    write: Callable[[Mapping[str, Any]], tuple[str, str, str | None]],
) -> dict[tuple[int, int], str]:
    """Draw rows: name, interval, point and number; gives where each leads."""
    links: dict[tuple[int, int], str] = {}
    spare = drawing.height - FRAME - row * len(rows)
    for index, (one, label) in enumerate(zip(rows, names, strict=True)):
        y = drawing.top + spare / 2 + row * (index + 0.5)
        said, told, where = write(one)
        if one["low"] is not None:
            drawing.line(scale(one["low"]), y, scale(one["high"]), y, "whisker")
        hit = (0.0, y - row / 2, float(drawing.width), row)
        drawing.dot(scale(one["value"]), y, "dot", r=4.5, title=told, href=where, hit=hit)
        drawing.text(drawing.left - 8, y + 4, label, "ink", "end")
        drawing.text(drawing.width - 2, y + 4, said, "ink", "end")
        if where:
            links[index + 1, 0] = where
    return links


def estimates(
    name: str, title: str, note: str, data: Mapping[str, Any], link: Link, key: str | None
) -> Chart:
    """Draw estimates with their intervals, one below the other."""
    rows, unit = data["rows"], unit_of(data["metric"])
    brief = short_names([row["name"] for row in rows], 26)
    names = [brief[row["name"]] for row in rows]
    drawing, row = _drawing(title, names, 52)
    scale = drawing.x(0, 1)
    base = drawing.height - drawing.bottom
    for at in (0, 0.25, 0.5, 0.75, 1):
        drawing.line(scale(at), drawing.top, scale(at), base, "grid")

    def write(one: Mapping[str, Any]) -> tuple[str, str, str | None]:
        value, ends = quantity(one["value"], unit), ""
        if one["low"] is not None:
            value, ends = estimate(one["value"], one["low"], one["high"], unit)
        facts = [value, *([ends] if ends else []), plural(one["n"], "record")]
        where = link(one["filter"] if key is None else {key: one["name"]})
        return value, f"{cut(one['name'], 80)}: {', '.join(facts)}", where

    links = _rows(drawing, scale, rows, names, row, write)
    drawing.x_axis(scale, partial(tick, unit=unit), data["metric"].replace("_", " "), 4)
    table = [("name", data["metric"], "low", "high", "records")]
    table += [(r["name"], r["value"], r["low"], r["high"], r["n"]) for r in rows]
    units = ("", unit, unit, unit, "")
    return Chart(name, title, note + legend(brief), tuple(table), drawing.svg(), units, links)


def sides(data: Mapping[str, Any], link: Link) -> Chart:
    """Draw the sides of a comparison."""
    note = "Lines are confidence intervals. Where they overlap widely, a difference may be chance."
    return estimates("sides", f"{named(data['metric'])} of each side", note, data, link, None)


def categories(data: Mapping[str, Any], link: Link) -> Chart:
    """Draw each category."""
    title = f"{named(data['metric'])} by category"
    return estimates(
        "categories", title, "Each category with its confidence interval.", data, link, "category"
    )


def differences(data: Mapping[str, Any], link: Link) -> Chart:
    """Draw paired differences around zero; each leads to the tasks that changed."""
    title = "Difference on the same tasks"
    rows, unit = data["rows"], unit_of(data["metric"])
    brief = short_names([name for row in rows for name in row["pair"]], 12)
    names = [" − ".join(brief[name] for name in row["pair"]) for row in rows]
    drawing, row = _drawing(title, names, 78)
    far = max(0.05, *(abs(row[end]) for row in rows for end in ("low", "high")))
    scale = drawing.x(-far * 1.05, far * 1.05)
    base = drawing.height - drawing.bottom
    for at in ticks(scale.low, scale.high, 4):
        drawing.line(scale(at), drawing.top, scale(at), base, "grid")
    drawing.line(scale(0), drawing.top, scale(0), base, "axis")

    def write(one: Mapping[str, Any]) -> tuple[str, str, str | None]:
        value, ends = estimate(one["value"], one["low"], one["high"], unit, signed=True)
        title = f"{cut(one['name'], 90)}: {value}, {ends}, {plural(one['n'], 'task')}"
        return value, title, link({"pair": one["pair"]})

    links = _rows(drawing, scale, rows, names, row, write)
    axis = f"{data['metric'].replace('_', ' ')}{', in points' if unit == SHARE else ''}"
    drawing.x_axis(scale, tick_points if unit == SHARE else tick, axis, 4)
    table = [("pair", "difference", "low", "high", "tasks")]
    table += [(r["name"], r["value"], r["low"], r["high"], r["n"]) for r in rows]
    note = "Task by task. Where the line crosses zero, no difference was shown."
    of_difference = POINTS if unit == SHARE else unit
    units = ("", of_difference, of_difference, of_difference, "")
    return Chart(
        "differences", title, note + legend(brief), tuple(table), drawing.svg(), units, links
    )
