"""Charts of a digest: each a picture, a sentence on how to read it, and its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from pennyweight.render.charts import by_side, reasoning, svg
from pennyweight.render.charts.ranges import categories, differences, sides
from pennyweight.render.charts.scales import around
from pennyweight.render.charts.spread import latency, thought, tokens
from pennyweight.render.charts.svg import (
    CHAR,
    HEIGHT,
    MAX_LABELS,
    Chart,
    ChartMark,
    Drawing,
    Link,
    cut,
)
from pennyweight.render.format import unit_of
from pennyweight.render.plain import middle
from pennyweight.scoring.digest import counted
from pennyweight.text.format import count, estimate, money, plural, quantity, share, tick
from pennyweight.text.notation import DOLLARS, SHARE

STRETCHED = {"latency": latency, "tokens": tokens}
"""Charts that can fill the rest of the last row."""
COLUMNS, GAP = 3, 38
"""Columns of charts on a wide page, and the space between them."""
POOLED = ("reliability", "thought", "repeats", "categories", "latency", "tokens")
"""Charts of all records, which several sides replace by one for each side."""
REASONING = ("sources", "thinking", "thought")
"""Charts that the panel about reasoning shows, apart from the others."""
ATTEMPTS = (1, 1_000, 1_000_000)
"""Costs are shown for one of these numbers of attempts, to avoid long rows of zeros."""


def charts(digest: Mapping[str, Any], link: Link = svg.nowhere) -> list[Chart]:
    """Draw every chart that the digest has data for."""
    found = digest["charts"]
    makers: dict[str, Callable[[Any, Link], Chart]] = {
        "sides": sides,
        "differences": differences,
        "frontier": _frontier,
        "categories": categories,
        "reliability": _reliability,
        "sources": reasoning.sources,
        "thinking": reasoning.thinking,
        "thought": thought,
        "answers": _answers,
        "coverage": _coverage,
        "repeats": _repeats,
        **STRETCHED,
    }
    if len(digest.get("sides", ())) > MAX_LABELS:
        del makers["differences"]  # a leaderboard shows them, sorted
    each = found.get("each") or {}
    alone = _alone(each, digest.get("headline"), link)
    drawn = [
        alone[name]() if name in alone else make(found[name], link)
        for name, make in makers.items()
        if name in alone or (_is_drawn(name, found.get(name)) and not (each and name in POOLED))
    ]
    others = sum(chart.name not in REASONING for chart in drawn)
    more = -others % COLUMNS
    if more and others > COLUMNS and drawn[-1].name in STRETCHED and not each:
        drawn[-1] = _stretched(drawn[-1], found, more + 1)
    return drawn


def _alone(
    each: Mapping[str, Any], metric: str | None, link: Link
) -> dict[str, Callable[[], Chart]]:
    """Return the charts that show each side by itself, in place of all records together."""
    many = each.get("sides", 0)
    makers: dict[str, Callable[[], Chart]] = {
        "reliability": lambda: by_side.reliability(each["reliability"], many, link),
        "thought": lambda: by_side.thinking(each["thinking"], many, link),
        "repeats": lambda: by_side.repeats(each["repeats"], many, link),
        "categories": lambda: by_side.categories(each["categories"], metric or "", link),
        "latency": lambda: by_side.latency(each["latency"], link),
        "tokens": lambda: by_side.tokens(each["tokens"], link),
    }
    named = {"thought": "thinking"}
    return {name: make for name, make in makers.items() if each.get(named.get(name, name))}


def _is_drawn(name: str, data: Any) -> bool:
    """Whether a chart has data that it can show: a single bar shows no distribution."""
    if name in {"thought", *STRETCHED} and data and len(data["bins"]) < 2:
        return False
    return bool(data) and (isinstance(data, list) or all(v != [] for v in data.values()))


def _stretched(chart: Chart, found: Mapping[str, Any], span: int) -> Chart:
    """Draw the last chart again, as wide as the columns that are left."""
    known = {row: where for (row, _), where in chart.links.items()}
    rows = {b["low"]: known.get(i) for i, b in enumerate(found[chart.name]["bins"], 1)}

    def link(wanted: Mapping[str, Any]) -> str | None:
        return next((rows.get(ends[0]) for ends in wanted.values()), None)

    width = svg.WIDTH * span + GAP * (span - 1)
    wide = STRETCHED[chart.name](found[chart.name], link, width).svg
    return replace(chart, wide=wide, span=span)


def _reliability(data: Sequence[Mapping[str, Any]], link: Link) -> Chart:
    """Draw how often answers were correct against the stated confidence."""
    drawing = Drawing("Reliability", left=48, top=24)
    x, y = drawing.x(0, 1), drawing.y(0, 1)
    percent = partial(tick, unit=SHARE)
    drawing.y_axis(y, percent, "correct")
    most = max(row["n"] for row in data)
    for row in data:
        height, width = 26 * row["n"] / most, x(row["high"]) - x(row["low"]) - 2
        records = ChartMark(plural(row["n"], "record"))
        drawing.box((x(row["low"]) + 1, y(0) - height, width, height), "calm", records, 0.25)
    drawing.path([(x(0), y(0)), (x(1), y(1))], "edge")
    drawing.path([(x(r["said"]), y(r["right"])) for r in data], "trend")
    for index, row in enumerate(data, 1):
        rates = f"stated {share(row['said'])}, correct {share(row['right'])}"
        top = row["high"] if row["high"] < 1 else None
        href = link({"prob_correct": (row["low"], top), "correct": "known"})
        mark = ChartMark(f"{rates}, {plural(row['n'], 'record')}", href, (index, 2))
        drawing.dot(x(row["said"]), y(row["right"]), "dot", mark)
    drawing.x_axis(x, percent, "stated confidence")
    table = [("from", "below", "records", "said", "right")]
    table += [(r["low"], r["high"], r["n"], r["said"], r["right"]) for r in data]
    note = "Stated confidence against accuracy. Below the dashed line the subject is overconfident."
    return drawing.chart("reliability", note, table, (SHARE, SHARE, "", SHARE, SHARE))


def _answers(data: Sequence[Mapping[str, Any]], link: Link) -> Chart:
    """Draw the most frequent answers."""
    step = min(40.0, (HEIGHT - 12) / len(data))
    height = min(HEIGHT, int(step * len(data) + 12))
    drawing = Drawing("Answers", left=130, right=48, top=6, height=height)
    x = drawing.x(0, max(row["n"] for row in data))
    for index, row in enumerate(data):
        y, high = 8 + step * index, min(20.0, step * 0.72)
        label = cut(row["answer"], 18) if row["answer"] is not None else "no answer"
        text = f"{label}: {count(row['n'])}, {count(row['right'])} correct"
        border, end = x(row["right"]), x(row["n"])
        last = border if row["n"] > row["right"] else drawing.width
        for kind, column, start, stop, first, reach, correct in (
            ("bar", 2, drawing.left, border, 0.0, last, "yes"),
            ("bad", 3, border, end, 0.0 if border == drawing.left else border, drawing.width, "no"),
        ):
            if stop > start:
                spelt = {"answer_in": row["spelt"], "correct": correct}
                hit = (first, y + (high - step) / 2, reach - first, step)
                mark = ChartMark(
                    text, link(spelt) if row["spelt"] else None, (index + 1, column), hit
                )
                drawing.box((start, y, stop - start, high), kind, mark)
        base = y + high / 2 + 4
        drawing.text(drawing.left - 8, base, label, "ink", "end")
        drawing.text(end + 5, base, tick(row["n"]), "ink")
    table = [("answer", "records", "right", "wrong")]
    table += [(r["answer"], r["n"], r["right"], r["n"] - r["right"]) for r in data]
    note = "The most frequent answers, correct ones in blue. A much longer bar suggests a default."
    return drawing.chart("answers", note, table)


def _frontier(data: Mapping[str, Any], link: Link) -> Chart:
    """Draw the quality of each side against its cost."""
    rows = data["rows"]
    drawing = Drawing("Cost against quality", left=48, top=24, height=320 if len(rows) > 8 else 240)
    costs = [row["cost"] for row in rows]
    log = min(costs) > 0 and max(costs) > 4 * min(costs)
    most = max(costs) * 1.15 or 1.0
    x = drawing.x(min(costs) / 1.2 if log else 0, most, log=log)
    unit = unit_of(data["metric"])
    known = (row[end] for row in rows for end in ("value", "low", "high"))
    y = drawing.y(*around((v for v in known if v is not None), share=unit == SHARE))
    drawing.y_axis(y, partial(tick, unit=unit), data["metric"].replace("_", " "))
    places = [(x(row["cost"]), y(row["value"])) for row in rows]
    edge = sorted(place for place, r in zip(places, rows, strict=True) if r["frontier"])
    drawing.path(edge, "edge")
    brief = svg.short_names([r["name"] for r in rows], 24)
    ticks = (0.0, 0.0, float(drawing.left), float(drawing.base))
    dots = [(a - 6, b - 6, a + 6, b + 6) for a, b in places]
    labels = svg.Places(drawing, [ticks, *dots], [(*a, *b) for a, b in pairwise(edge)])
    for index, (row, place) in enumerate(zip(rows, places, strict=True), 1):
        if None not in (row["low"], row["high"]):
            drawing.line(place[0], y(row["low"]), place[0], y(row["high"]), "whisker faint")
        text = f"{row['name']}: {quantity(row['value'], unit)}, {money(row['cost'])} per attempt"
        mark = ChartMark(text, link({**row["filter"], **counted(data["metric"])}), (index, 0))
        drawing.dot(*place, "dot best" if row["frontier"] else "dot", mark, 5)
    named = [n for n, r in enumerate(rows) if r["frontier"] or len(rows) <= MAX_LABELS]
    best = min(named, key=lambda n: places[n][1])  # its label matters most, so it comes first
    for row, place in ((rows[n], places[n]) for n in sorted(named, key=lambda n: n != best)):
        labels.put(*place, brief[row["name"]])
    times = next((n for n in ATTEMPTS if most * n >= 0.1), ATTEMPTS[-1])
    per = "attempt" if times == 1 else plural(times, "attempt")
    axis = replace(x, low=x.low * times, high=x.high * times)
    words = f"mean cost per {per}{', log scale' if log else ''}"
    drawing.x_axis(axis, partial(tick, unit=DOLLARS), words)
    table = [("name", "cost_usd_mean", data["metric"], "on_the_frontier")]
    table += [(r["name"], r["cost"], r["value"], r["frontier"]) for r in rows]
    note = "No side is both cheaper and better than one on the dashed line."
    note += " Only these are named." if len(rows) > MAX_LABELS else ""
    return drawing.chart("frontier", note + svg.legend(brief), table, ("", DOLLARS, unit, ""))


_CURVES = {"pass_at_k": ("trend", "one of k passes"), "pass_hat_k": ("edge", "all k pass")}
"""The curves over k, with their kind of line and their label."""


def _repeats(data: Mapping[str, Any], link: Link) -> Chart:  # noqa: ARG001
    """Draw the chance that one of k attempts passes, and that all of them do, by k."""
    points = data["points"]
    drawing = Drawing("Repeated attempts", left=48, top=24, right=16)
    x, y = drawing.x(points[0]["k"], points[-1]["k"]), drawing.y(0, 1)
    percent = partial(tick, unit=SHARE)
    drawing.y_axis(y, percent, "tasks")
    for place, (name, (kind, label)) in enumerate(_CURVES.items()):
        known = [(x(p["k"]), p[name]) for p in points if p[name][1] is not None]
        ends = [(at, y(e[2])) for at, e in known] + [(at, y(e[1])) for at, e in reversed(known)]
        if ends:
            drawing.path(ends, f"band {kind}")
        drawing.path([(x(p["k"]), y(p[name][0])) for p in points], kind)
        for row, point in enumerate(points, 1):
            value, low, high = point[name]
            facts = quantity(value, SHARE)
            if low is not None:
                facts = ", ".join(estimate(value, low, high, SHARE))
            mark = ChartMark(f"k = {point['k']}, {label}: {facts}", cell=(row, 1 + 3 * place))
            drawing.dot(x(point["k"]), y(value), "dot" if place == 0 else "dot best", mark, 3)
        left = drawing.left + 70 + 130 * place
        drawing.path([(left, 8), (left + 18, 8)], kind)
        drawing.text(left + 23, 12, label)
    drawing.x_axis(x, tick, "k, attempts at a task", whole=True)
    head = [end for name in _CURVES for end in (name, f"{name} low", f"{name} high")]
    table = [("k", *head), *((p["k"], *p["pass_at_k"], *p["pass_hat_k"]) for p in points)]
    note = "Where the curves part, the same task passes in one attempt and fails in another."
    note += " All sides together." if data["sides"] > 1 else ""
    return drawing.chart("repeats", note, table, ("", *[SHARE] * 6))


def _coverage(data: Mapping[str, Any], link: Link) -> Chart:
    """Draw a cell for each category and capability, with the share that passed."""
    across, down = data["capabilities"], data["categories"]
    left = int(min(140, max(len(cut(c, 20)) for c in down) * CHAR + 14))
    high = min(60.0, max(26.0, (HEIGHT - 24) / len(down)))
    height = max(HEIGHT, int(24 + high * len(down)))
    drawing = Drawing("Category by capability", height=height, left=left, top=22, bottom=4, right=4)
    width = (drawing.width - left - 4) / len(across)
    room = max(4, int(width / CHAR))
    for index, name in enumerate(across):
        drawing.text(left + width * (index + 0.5), 14, middle(name, room), "", "middle")
    cells = {(c["category"], c["capability"]): (i, c) for i, c in enumerate(data["cells"], 1)}
    for row, category in enumerate(down):
        y = 20 + high * row
        base = y + high / 2 + 3
        drawing.text(left - 8, base, middle(category, 20), "ink", "end")
        for column, capability in enumerate(across):
            x = left + width * column
            if (category, capability) not in cells:
                drawing.text(x + width / 2, base, "·", "", "middle")
                continue
            index, cell = cells[category, capability]
            text = f"{cut(category, 30)}, {cut(capability, 30)}: {plural(cell['n'], 'record')}"
            href = link({"category": category, "capability": capability})
            opacity = 0.08 + 0.42 * (cell["passed"] or 0)
            mark = ChartMark(text, href, (index, 2))
            drawing.box((x + 1, y, width - 2, high - 2), "bar", mark, opacity)
            drawing.text(x + width / 2, base, share(cell["passed"]), "ink", "middle")
    table = [("category", "capability", "records", "passed")]
    table += [(c["category"], c["capability"], c["n"], c["passed"]) for c in data["cells"]]
    note = "The share that passed. A dot marks a combination without tasks."
    return drawing.chart("coverage", note, table, ("", "", "", SHARE))
