"""Charts of reasoning: what thinking buys, and confidence by its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from pennyweight.render.charts import svg
from pennyweight.render.charts.scales import Scale
from pennyweight.render.charts.svg import Chart, ChartMark, Drawing, Link
from pennyweight.render.format import unit_of
from pennyweight.scoring.digest import counted
from pennyweight.text.format import money, number, plural, quantity, share, tick
from pennyweight.text.notation import DOLLARS, SHARE

_GAP = 16
"""The space between the diagrams of two sources."""


def thinking(data: Mapping[str, Any], link: Link) -> Chart:
    """Draw the quality of each side against its output tokens, thinking included."""
    rows = sorted(data["rows"], key=lambda row: row["tokens"])
    drawing = Drawing("What thinking buys", left=48, top=24)
    x = drawing.x(0, max(row["tokens"] for row in rows) * 1.15 or 1.0)
    y = drawing.y(0, 1)
    unit = unit_of(data["metric"])
    drawing.y_axis(y, partial(tick, unit=unit), data["metric"].replace("_", " "))
    places = [(x(row["tokens"]), y(row["value"])) for row in rows]
    lines: dict[str, list[tuple[float, float]]] = {}
    for row, place in zip(rows, places, strict=True):
        lines.setdefault(str(row["filter"].get("subject")), []).append(place)
    for line in lines.values():
        drawing.path(line, "trend")
    every = len(rows) <= svg.MAX_LABELS
    brief = svg.short_names([row["name"] for row in rows] if every else list(lines), 24)
    axis = (0.0, 0.0, float(drawing.left), float(drawing.base))
    dots = [(a - 6, b - 6, a + 6, b + 6) for a, b in places]
    crossed = [(*a, *b) for line in lines.values() for a, b in pairwise(line)]
    labels = svg.Places(drawing, [axis, *dots], crossed)
    for index, (row, place) in enumerate(zip(rows, places, strict=True), 1):
        if None not in (row["low"], row["high"]):
            drawing.line(place[0], y(row["low"]), place[0], y(row["high"]), "whisker")
        cost = f", {money(row['cost'])} per attempt" if "cost" in row else ""
        text = (
            f"{row['name']}: {quantity(row['value'], unit)}, {number(row['tokens'])} tokens{cost}"
        )
        mark = ChartMark(text, link({**row["filter"], **counted(data["metric"])}), (index, 0))
        drawing.dot(*place, "dot", mark, 5)
        if every:
            labels.put(*place, brief[row["name"]])
    if 1 < len(lines) <= svg.MAX_LABELS and not every:
        for subject, line in lines.items():
            labels.put(*line[-1], brief[subject])
    drawing.x_axis(x, tick, "mean output tokens, thinking included")
    table = [("name", "completion_tokens_mean", "cost_usd_mean", data["metric"])]
    table += [(row["name"], row["tokens"], row.get("cost"), row["value"]) for row in rows]
    note = "Each side by its output tokens, a line for each subject. A flat line buys nothing."
    return drawing.chart("thinking", note + svg.legend(brief), table, ("", "", DOLLARS, unit))


def sources(data: Sequence[Mapping[str, Any]], link: Link) -> Chart:  # noqa: ARG001
    """Draw how often answers were correct against the confidence, for each of its sources."""
    drawing = Drawing("Confidence by source", left=48, top=34)
    y = drawing.y(0, 1)
    drawing.y_axis(y, partial(tick, unit=SHARE), "correct")
    each = (drawing.width - drawing.right - drawing.left - _GAP * (len(data) - 1)) / len(data)
    table: list[tuple[Any, ...]] = [("source", "from", "below", "records", "said", "right")]
    for place, one in enumerate(data):
        left = drawing.left + place * (each + _GAP)
        x = Scale(0, 1, left, left + each)
        drawing.text(left + each / 2, 26, one["source"], "name", "middle")
        drawing.line(left, drawing.base, left + each, drawing.base, "axis")
        drawing.path([(x(0), y(0)), (x(1), y(1))], "edge")
        drawing.path([(x(r["said"]), y(r["right"])) for r in one["bins"]], "trend")
        most = max(r["n"] for r in one["bins"])
        for r in one["bins"]:
            facts = f"{share(r['said'])} sure, {share(r['right'])} correct"
            mark = ChartMark(f"{one['source']}: {facts}, {plural(r['n'], 'record')}")
            drawing.dot(x(r["said"]), y(r["right"]), "dot", mark, 2.5 + 2.5 * r["n"] / most)
            table.append((one["source"], r["low"], r["high"], r["n"], r["said"], r["right"]))
        drawing.text(left, drawing.base + 13, "0 %")
        drawing.text(left + each, drawing.base + 13, "100 %", anchor="end")
    drawing.text(drawing.width / 2, drawing.height - 5, "confidence", "name", "middle")
    note = "Confidence against accuracy for each source. Below the dashed line it is too high."
    return drawing.chart("sources", note, table, ("", SHARE, SHARE, "", SHARE, SHARE))
