"""Charts of a digest: each a picture, a sentence on how to read it, and the table behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pennyweight.render.chart import Chart, nowhere
from pennyweight.render.format import DOLLARS, SHARE, money, plural, quantity, share, tick, unit_of
from pennyweight.render.labels import Places, legend, middle, short_names
from pennyweight.render.ranges import categories, differences, sides
from pennyweight.render.spread import latency, thought, tokens
from pennyweight.render.svg import CHAR, HEIGHT, WIDTH, Drawing, cut

if TYPE_CHECKING:
    from pennyweight.render.chart import Link

STRETCHED = {"latency": latency, "tokens": tokens}
"""Charts that can take the place of several, at the end."""
COLUMNS, GAP = 3, 38
"""How charts stand on a wide page."""
ATTEMPTS = (1, 1_000, 1_000_000)
"""How many attempts a cost may be told for, so that it is no long row of zeros."""


def charts(digest: Mapping[str, Any], link: Link = nowhere) -> list[Chart]:
    """Draw every chart that the digest has data for."""
    found = digest["charts"]
    makers = (
        ("sides", sides),
        ("differences", differences),
        ("frontier", _frontier),
        ("categories", categories),
        ("reliability", _reliability),
        ("thought", thought),
        ("answers", _answers),
        ("coverage", _coverage),
        ("latency", latency),
        ("tokens", tokens),
    )
    drawn = [make(found[name], link) for name, make in makers if found.get(name)]
    more = -len(drawn) % COLUMNS
    if more and len(drawn) > COLUMNS and drawn[-1].name in STRETCHED:
        drawn[-1] = _stretched(drawn[-1], found, more + 1)
    return drawn


def _stretched(chart: Chart, found: Mapping[str, Any], span: int) -> Chart:
    """Draw the last chart a second time, as wide as the columns that are left."""
    known = {row: where for (row, _), where in chart.links.items()}
    rows = {b["low"]: known.get(i) for i, b in enumerate(found[chart.name]["bins"], 1)}

    def link(wanted: Mapping[str, Any]) -> str | None:
        return next((rows.get(ends[0]) for ends in wanted.values()), None)

    width = WIDTH * span + GAP * (span - 1)
    wide = STRETCHED[chart.name](found[chart.name], link, width).svg
    return replace(chart, wide=wide, span=span)


def _reliability(data: Sequence[Mapping[str, Any]], link: Link) -> Chart:
    """Draw how often answers were right against how sure the subject said it was."""
    title = "Reliability"
    drawing = Drawing(title, left=48, top=24)
    x, y = drawing.x(0, 1), drawing.y(0, 1)
    percent = partial(tick, unit=SHARE)
    drawing.y_axis(y, percent, "correct")
    most = max(row["n"] for row in data)
    for row in data:
        height = 26 * row["n"] / most
        drawing.box(
            x(row["low"]) + 1, y(0) - height, x(row["high"]) - x(row["low"]) - 2, height,
            "calm", title=plural(row["n"], "record"), opacity=0.25,
        )  # fmt: skip
    drawing.path([(x(0), y(0)), (x(1), y(1))], "edge")
    drawing.path([(x(r["said"]), y(r["right"])) for r in data], "trend")
    links: dict[tuple[int, int], str] = {}
    for index, row in enumerate(data, 1):
        rates = f"stated {share(row['said'])}, correct {share(row['right'])}"
        said = f"{rates}, {plural(row['n'], 'record')}"
        top = row["high"] if row["high"] < 1 else None
        where = link({"prob_correct": (row["low"], top), "correct": "known"})
        drawing.dot(x(row["said"]), y(row["right"]), "dot", title=said, href=where)
        if where:
            links[index, 2] = where
    drawing.x_axis(x, percent, "stated confidence")
    table = [("from", "below", "records", "said", "right")]
    table += [(r["low"], r["high"], r["n"], r["said"], r["right"]) for r in data]
    note = "Stated confidence against accuracy. Below the dashed line the subject is overconfident."
    units = (SHARE, SHARE, "", SHARE, SHARE)
    return Chart("reliability", title, note, tuple(table), drawing.svg(), units, links)


def _answers(data: Sequence[Mapping[str, Any]], link: Link) -> Chart:
    """Draw the answers that were given most often."""
    title = "Answers"
    step = min(40.0, (HEIGHT - 12) / len(data))
    drawing = Drawing(title, left=130, right=48, top=6)
    most = max(row["n"] for row in data)
    x = drawing.x(0, most)
    links: dict[tuple[int, int], str] = {}
    for index, row in enumerate(data):
        y = 8 + step * index
        label = cut(row["answer"], 18) if row["answer"] is not None else "no answer"
        right = x(row["right"]) - drawing.left
        text = f"{label}: {row['n']:,}, {row['right']:,} of them right"
        given = {"answer_in": row["spelt"]} if row["spelt"] else None
        wide, high = x(row["n"]) - drawing.left - right, min(20.0, step * 0.72)
        for kind, column, start, width, correct in (
            ("bar", 2, drawing.left, right, "yes"),
            ("bad", 3, drawing.left + right, wide, "no"),
        ):
            if width > 0:
                where = link({**given, "correct": correct}) if given else None
                first = 0.0 if start == drawing.left else start
                last = drawing.width if kind == "bad" or wide <= 0 else start + width
                hit = (first, y + (high - step) / 2, last - first, step)
                drawing.box(start, y, width, high, kind, title=text, href=where, hit=hit)
                if where:
                    links[index + 1, column] = where
        base = y + high / 2 + 4
        drawing.text(drawing.left - 8, base, label, "ink", "end")
        drawing.text(x(row["n"]) + 5, base, tick(row["n"]), "ink")
    table = [("answer", "records", "right", "wrong")]
    table += [(r["answer"], r["n"], r["right"], r["n"] - r["right"]) for r in data]
    note = "The most frequent answers, correct ones in blue. A much longer bar suggests a default."
    return Chart("answers", title, note, tuple(table), drawing.svg(), links=links)


def _frontier(data: Mapping[str, Any], link: Link) -> Chart:
    """Draw what each side costs against how good it is."""
    title = "Cost against quality"
    rows = data["rows"]
    drawing = Drawing(title, left=48, top=24)
    most = max(row["cost"] for row in rows) * 1.15 or 1.0
    x, y = drawing.x(0, most), drawing.y(0, 1)
    unit = unit_of(data["metric"])
    drawing.y_axis(y, partial(tick, unit=unit), data["metric"].replace("_", " "))
    best = sorted((r for r in rows if r["frontier"]), key=lambda r: r["cost"])
    drawing.path([(x(r["cost"]), y(r["value"])) for r in best], "edge")
    brief, labels = short_names([r["name"] for r in rows], 24), Places(drawing)
    labels.taken += [
        (x(r["cost"]) - 6, y(r["value"]) - 6, x(r["cost"]) + 6, y(r["value"]) + 6) for r in rows
    ]
    links: dict[tuple[int, int], str] = {}
    for index, row in enumerate(rows, 1):
        place = x(row["cost"]), y(row["value"])
        if row["low"] is not None:
            drawing.line(place[0], y(row["low"]), place[0], y(row["high"]), "whisker")
        text = f"{row['name']}: {quantity(row['value'], unit)}, {money(row['cost'])} per attempt"
        kind = "dot best" if row["frontier"] else "dot"
        where = link(row["filter"])
        drawing.dot(*place, kind, r=5, title=text, href=where)
        labels.put(*place, brief[row["name"]])
        if where:
            links[index, 0] = where
    times = next((n for n in ATTEMPTS if most * n >= 0.1), ATTEMPTS[-1])
    per = "attempt" if times == 1 else plural(times, "attempt")
    axis = replace(x, high=x.high * times)
    drawing.x_axis(axis, partial(tick, unit=DOLLARS), f"mean cost per {per}")
    table = [("name", "cost_usd_mean", data["metric"], "on_the_frontier")]
    table += [(r["name"], r["cost"], r["value"], r["frontier"]) for r in rows]
    note = "No side is both cheaper and better than those on the dashed line."
    units = ("", DOLLARS, unit, "")
    return Chart("frontier", title, note + legend(brief), tuple(table), drawing.svg(), units, links)


def _coverage(data: Mapping[str, Any], link: Link) -> Chart:
    """Draw a field for each category and capability: how many passed, of how many."""
    title = "Category by capability"
    across, down = data["capabilities"], data["categories"]
    left = int(min(140, max(len(cut(c, 20)) for c in down) * CHAR + 14))
    high = min(60.0, max(26.0, (HEIGHT - 24) / len(down)))
    height = max(HEIGHT, int(24 + high * len(down)))
    drawing = Drawing(title, height=height, left=left, top=22, bottom=4, right=4)
    width = (drawing.width - left - 4) / len(across)
    room = max(4, int(width / CHAR))
    for index, name in enumerate(across):
        drawing.text(left + width * (index + 0.5), 14, middle(name, room), "", "middle")
    cells = {(c["category"], c["capability"]): c for c in data["cells"]}
    links: dict[tuple[int, int], str] = {}
    lines = {(c["category"], c["capability"]): i for i, c in enumerate(data["cells"], 1)}
    for row, category in enumerate(down):
        y = 20 + high * row
        base = y + high / 2 + 3
        drawing.text(left - 8, base, middle(category, 20), "ink", "end")
        for column, capability in enumerate(across):
            x = left + width * column
            cell = cells.get((category, capability))
            if cell is None:
                drawing.text(x + width / 2, base, "·", "", "middle")
                continue
            text = f"{cut(category, 30)}, {cut(capability, 30)}: {plural(cell['n'], 'record')}"
            passed = cell["passed"]
            where = link({"category": category, "capability": capability})
            drawing.box(
                x + 1, y, width - 2, high - 2, "bar", title=text, href=where,
                opacity=0.08 + 0.42 * (passed or 0),
            )  # fmt: skip
            drawing.text(x + width / 2, base, share(passed), "ink", "middle")
            if where:
                links[lines[category, capability], 2] = where
    table = [("category", "capability", "records", "passed")]
    table += [(c["category"], c["capability"], c["n"], c["passed"]) for c in data["cells"]]
    note = "The share that passed. A dot marks a pair without any task."
    units = ("", "", "", SHARE)
    return Chart("coverage", title, note, tuple(table), drawing.svg(), units, links)


def trend(rows: Sequence[Mapping[str, Any]], metric: str, width: int = 1240) -> str:
    """Draw a metric over the runs of one suite, the oldest first."""
    drawing = Drawing(f"{metric} over runs", width=width, height=170, left=48, bottom=24, right=20)
    x, y = drawing.x(0, max(1, len(rows) - 1)), drawing.y(0, 1)
    unit = unit_of(metric)
    drawing.y_axis(y, partial(tick, unit=unit))
    drawing.path([(x(i), y(r["value"])) for i, r in enumerate(rows)], "trend")
    for index, row in enumerate(rows):
        if row["low"] is not None:
            drawing.line(x(index), y(row["low"]), x(index), y(row["high"]), "whisker")
        text = f"{row['id']}: {quantity(row['value'], unit)}"
        drawing.dot(x(index), y(row["value"]), "dot", r=4.5, title=text, href=row["href"])
    same = rows[0]["when"][:10] == rows[-1]["when"][:10]
    ends = [row["when"] if same else row["when"][:10] for row in (rows[0], rows[-1])]
    drawing.text(drawing.left, drawing.height - 6, ends[0])
    drawing.text(drawing.width - drawing.right, drawing.height - 6, ends[1], "", "end")
    return drawing.svg()
