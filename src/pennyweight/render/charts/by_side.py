"""Charts with a panel or a row for each side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pennyweight.render.charts import svg
from pennyweight.render.charts.scales import Scale
from pennyweight.render.charts.svg import CHAR, Chart, ChartMark, Drawing, Link, cut
from pennyweight.render.plain import middle
from pennyweight.scoring.digest import counted
from pennyweight.text.format import plural, share, tick
from pennyweight.text.notation import SHARE

ACROSS, PANEL = 3, 128
"""Panels in a row, and the height of each."""
SECONDS_FROM = 1_000
LEGIBLE = 7
"""The fewest characters of which a shortened name can be read."""


@dataclass(frozen=True, slots=True)
class PanelMark:
    """A point of a panel: its place, the ends of its interval, and where it leads."""

    x: float
    y: float
    ends: tuple[float | None, float | None]
    mark: ChartMark


@dataclass(frozen=True, slots=True)
class SidePanel:
    """A small chart of one side; each curve has a kind of line."""

    name: str
    curves: Sequence[tuple[str, Sequence[PanelMark]]]


def _panels(
    title: str,
    panels: Sequence[SidePanel],
    ends: tuple[float, float],
    write: Callable[[float], str],
    axis: str,
    *,
    diagonal: bool = False,
    log: bool = False,
) -> Drawing:
    """Draw panels in rows of three that share both scales; the vertical one is a share."""
    rows = -(-len(panels) // ACROSS)
    drawing = Drawing(title, height=max(svg.HEIGHT, 18 + PANEL * rows), left=30, right=6)
    across = min(ACROSS, len(panels))
    wide = (drawing.width - drawing.left - drawing.right) / across
    high = (drawing.height - 18) / rows
    brief = svg.short_names([panel.name for panel in panels], max(10, int(wide / CHAR) - 1))
    for index, panel in enumerate(panels):
        left = drawing.left + wide * (index % across) + 4
        top = high * (index // across) + 23
        x = Scale(*ends, left, left + wide - 12, log=log)
        y = Scale(0, 1, top + high - 42, top)
        drawing.text(left, top - 10, brief[panel.name], "ink")
        for place in (0, 0.5, 1):
            drawing.line(left, y(place), left + wide - 12, y(place), "grid")
            if index % across == 0:
                drawing.text(left - 5, y(place) + 3.5, f"{round(100 * place)}", anchor="end")
        if diagonal:
            drawing.path([(x(ends[0]), y(0)), (x(ends[1]), y(1))], "edge")
        for kind, marks in panel.curves:
            drawing.path([(x(m.x), y(m.y)) for m in marks], kind)
            for m in marks:
                if None not in m.ends:
                    low, top_end = (end or 0.0 for end in m.ends)
                    drawing.line(x(m.x), y(low), x(m.x), y(top_end), "whisker faint")
                drawing.dot(x(m.x), y(m.y), "dot" if kind == "trend" else "dot best", m.mark, 3)
        for end, anchor in ((ends[0], "start"), (ends[1], "end")):
            drawing.text(x(end), y(0) + 13, write(end), anchor=anchor)
    drawing.text(drawing.width / 2, drawing.height - 5, axis, "name", "middle")
    return drawing


def _some(sides: int, shown: int) -> str:
    return f" The best {shown} of {sides} sides." if sides > shown else ""


def _binned(
    side: Mapping[str, Any], row: int, measure: str, words: str, link: Link
) -> tuple[list[PanelMark], int]:
    marks = []
    for one in side["bins"]:
        row += 1
        reach = (one["low"], one["high"])
        href = link({**side["filter"], measure: reach, "correct": "known"})
        text = f"{cut(side['name'], 60)}, {words.format(one)}: correct {share(one['right'])}"
        mark = ChartMark(f"{text}, {plural(one['n'], 'record')}", href, (row, 4))
        marks.append(PanelMark(one["at"], one["right"], (one["ends"][0], one["ends"][1]), mark))
    return marks, row


def _bin_table(data: Sequence[Mapping[str, Any]], mean: str) -> list[tuple[Any, ...]]:
    table: list[tuple[Any, ...]] = [
        ("side", "from", "below", mean, "right", "low", "high", "records")
    ]
    for side in data:
        table += [
            (side["name"], b["low"], b["high"], b["at"], b["right"], *b["ends"], b["n"])
            for b in side["bins"]
        ]
    return table


def reliability(data: Sequence[Mapping[str, Any]], sides: int, link: Link) -> Chart:
    """Draw how often answers were correct against the stated confidence, side by side."""
    panels, row = [], 0
    for side in data:
        marks, row = _binned(side, row, "prob_correct", "stated {0[at]:.0%}", link)
        panels.append(SidePanel(side["name"], [("trend", marks)]))
    percent = partial(tick, unit=SHARE)
    drawing = _panels(
        "Reliability", panels, (0.0, 1.0), percent, "stated confidence; vertical: correct, in %",
        diagonal=True,
    )  # fmt: skip
    note = "Stated confidence against accuracy, with 95 % intervals over records. Below the dashed "
    note += "line a side is overconfident." + _some(sides, len(data))
    units = ("", SHARE, SHARE, SHARE, SHARE, SHARE, SHARE, "")
    return drawing.chart("reliability", note, _bin_table(data, "said"), units)


def thinking(data: Sequence[Mapping[str, Any]], sides: int, link: Link) -> Chart:
    """Draw accuracy over the length of the reasoning, side by side."""
    panels, row = [], 0
    for side in data:
        marks, row = _binned(side, row, "cot_tokens", "{0[at]:,.0f} tokens", link)
        panels.append(SidePanel(side["name"], [("trend", marks)]))
    places = [m.x for p in panels for _, marks in p.curves for m in marks]
    low, high = min(places), max(places)
    log = low > 0 and high > 5 * low
    drawing = _panels(
        "Length of reasoning and correctness", panels, (low, high), lambda v: tick(round(v)),
        f"reasoning tokens{', log scale' if log else ''}; vertical: correct, in %", log=log,
    )  # fmt: skip
    note = "Accuracy by length of reasoning, with 95 % intervals over records. All sides have the "
    note += "same bins, cut at each fifth of all records, so bins of a side differ in size. "
    note += "Hard tasks often take longer: a falling line does not show that reasoning hurts."
    note += _some(sides, len(data))
    units = ("", "", "", "", SHARE, SHARE, SHARE, "")
    return drawing.chart("thought", note, _bin_table(data, "mean"), units)


def repeats(data: Sequence[Mapping[str, Any]], sides: int, link: Link) -> Chart:
    """Draw pass@k and pass^k by k, side by side."""
    panels, row = [], 0
    table: list[tuple[Any, ...]] = [
        ("side", "k", "pass_at_k", "low", "high", "pass_hat_k", "low", "high")
    ]
    for side in data:
        curves: dict[str, list[PanelMark]] = {"trend": [], "edge": []}
        for point in side["points"]:
            row += 1
            table.append((side["name"], point["k"], *point["pass_at_k"], *point["pass_hat_k"]))
            for kind, name, words, column in (
                ("trend", "pass_at_k", "one of k passes", 2),
                ("edge", "pass_hat_k", "all k pass", 5),
            ):
                value, low, high = point[name]
                text = f"{cut(side['name'], 60)}, k = {point['k']}, {words}: {share(value)}"
                mark = ChartMark(text, link({**side["filter"], "passed": "known"}), (row, column))
                curves[kind].append(PanelMark(point["k"], value, (low, high), mark))
        panels.append(SidePanel(side["name"], list(curves.items())))
    ends = [point["k"] for side in data for point in side["points"]]
    drawing = _panels(
        "Repeated attempts", panels, (float(min(ends)), float(max(ends))), lambda v: tick(round(v)),
        "k, attempts at a task; vertical: tasks, in %",
    )  # fmt: skip
    note = "Solid: one of k attempts passes. Dashed: all k pass. Where they part, the same task "
    note += "passes in one attempt and fails in another."
    if sides > len(data):
        note += f" {len(data)} of {sides} sides: the best of those with several attempts at "
        note += "every task."
    return drawing.chart("repeats", note, table, ("", "", *[SHARE] * 6))


def _spread(
    measure: str, title: str, note: str, unit: str, data: Sequence[Mapping[str, Any]], link: Link
) -> Chart:
    """Draw the distribution of a measure: the middle half as a box, 5 to 95 % as a line."""
    name = title.lower()
    slow = name == "latency" and max(r["quantiles"][4] for r in data) >= SECONDS_FROM
    size, words = (1_000.0, "seconds") if slow else (1.0, unit)
    lows = [r["quantiles"][0] / size for r in data]
    highs = [r["quantiles"][4] / size for r in data]
    log = min(lows) > 0 and max(highs) > 20 * min(lows)
    brief = svg.short_names([r["name"] for r in data], 26)
    left = int(min(190, max(len(n) for n in brief.values()) * CHAR + 14))
    step = min(40.0, max(20.0, (svg.HEIGHT - 44) / len(data)))
    height = max(svg.HEIGHT, int(44 + step * len(data)))
    drawing = Drawing(title, height=height, left=left, right=14, top=8)
    x = Scale(
        min(lows) if log else 0.0, max(highs), drawing.left, drawing.width - drawing.right, log=log
    )
    table: list[tuple[Any, ...]] = [("side", "p5", "p25", "median", "p75", "p95", "records")]
    for index, row in enumerate(data, 1):
        y = drawing.top + step * (index - 0.5)
        q = [value / size for value in row["quantiles"]]
        facts = f"median {tick(q[2])}, 5 to 95 %: {tick(q[0])} to {tick(q[4])} {words}"
        mark = ChartMark(
            f"{cut(row['name'], 60)}: {facts}",
            link({**row["filter"], measure: (0, None)}),
            (index, 3),
            (0.0, y - step / 2, float(drawing.width), step),
        )
        drawing.line(x(q[0]), y, x(q[4]), y, "whisker")
        drawing.box((x(q[1]), y - 5, max(1.0, x(q[3]) - x(q[1])), 10), "bar", opacity=0.45)
        drawing.dot(x(q[2]), y, "dot", mark, 4)
        drawing.text(drawing.left - 8, y + 4, brief[row["name"]], "ink", "end")
        table.append((row["name"], *row["quantiles"], row["n"]))
    drawing.x_axis(x, tick, words + (", log scale" if log else ""))
    return drawing.chart(name, note + svg.legend(brief), table)


def latency(data: Sequence[Mapping[str, Any]], link: Link) -> Chart:
    """Draw how long the attempts of each side took."""
    note = "Time per attempt: the median, the middle half of the attempts, and 5 to 95 % of them."
    return _spread("latency_ms", "Latency", note, "milliseconds", data, link)


def tokens(data: Sequence[Mapping[str, Any]], link: Link) -> Chart:
    """Draw how many tokens the attempts of each side used."""
    note = "Tokens per attempt: the median, the middle half of the attempts, and 5 to 95 % of them."
    return _spread("total_tokens", "Tokens", note, "tokens", data, link)


def categories(data: Sequence[Mapping[str, Any]], metric: str, link: Link) -> Chart:
    """Draw a cell for each side and category."""
    kinds = sorted({cell["category"] for cell in data})
    names = list(dict.fromkeys(cell["name"] for cell in data))
    brief = svg.short_names(names, 26)
    left = int(min(190, max(len(n) for n in brief.values()) * CHAR + 14))
    step = min(40.0, max(20.0, (svg.HEIGHT - 24) / len(names)))
    height = max(svg.HEIGHT, int(24 + step * len(names)))
    words = metric.replace("_", " ")
    title = f"{words.capitalize()} by category"
    drawing = Drawing(title, height=height, left=left, top=22, bottom=4, right=4)
    wide = (drawing.width - left - 4) / len(kinds)
    heads = _heads(kinds, int(wide / CHAR))
    for index, kind in enumerate(kinds):
        drawing.text(left + wide * (index + 0.5), 14, heads[kind], "", "middle")
    bare = wide < CHAR * len("100.0 %")
    for row, name in enumerate(names):
        drawing.text(left - 8, 20 + step * (row + 0.5) + 3, brief[name], "ink", "end")
    table: list[tuple[Any, ...]] = [("side", "category", metric, "records")]
    low, high = (pick(cell["value"] for cell in data) for pick in (min, max))
    for index, cell in enumerate(data, 1):
        x, y = left + wide * kinds.index(cell["category"]), 20 + step * names.index(cell["name"])
        where = f"{cut(cell['name'], 60)}, {cut(cell['category'], 40)}"
        text = f"{where}: {share(cell['value'])}, {plural(cell['n'], 'record')}"
        href = link({**cell["filter"], "category": cell["category"], **counted(metric)})
        mark = ChartMark(text, href, (index, 2))
        drawing.box(
            (x + 1, y, wide - 2, step - 2),
            "bar",
            mark,
            0.06 + 0.42 * (cell["value"] - low) / ((high - low) or 1.0),
        )
        value = f"{100 * cell['value']:.0f}" if bare else share(cell["value"])
        drawing.text(x + wide / 2, y + step / 2 + 3, value, "ink", "middle")
        table.append((cell["name"], cell["category"], cell["value"], cell["n"]))
    note = "Darker is better; the best sides first." + svg.legend(brief)
    note += " In percent." if bare else ""
    note += svg.legend(heads)
    return drawing.chart("categories", note, table, ("", "", SHARE, ""))


def _heads(kinds: Sequence[str], room: int) -> dict[str, str]:
    """Shorten the heads of columns; where too little would be left of them, number them.

    >>> _heads(["adversarial", "edge case"], 9), _heads(["adversarial", "edge case"], 5)
    ({'adversarial': 'adve…rial', 'edge case': 'edge case'}, {'adversarial': '1', 'edge case': '2'})
    """
    short = {kind: middle(kind, room) for kind in kinds} if room >= LEGIBLE else {}
    if len(set(short.values())) == len(kinds) or max(map(len, kinds)) <= room:
        return short or {kind: cut(kind, room) for kind in kinds}
    return {kind: str(place) for place, kind in enumerate(kinds, 1)}
