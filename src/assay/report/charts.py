"""Charts of a digest: each a picture, a sentence on how to read it, and the table behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.report.labels import Places, legend, middle, short_names
from assay.report.svg import CHAR, Drawing, cut, dollars, percent, points, short, ticks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Link = Callable[[Mapping[str, Any]], str | None]
    """Gives the address of the records behind a mark, by their filter."""

ROW = 24


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture, what it shows, and its numbers; the first row is the head."""

    name: str
    title: str
    note: str
    rows: tuple[tuple[Any, ...], ...]
    svg: str


def nowhere(_: Mapping[str, Any]) -> None:
    """Lead nowhere, as in a report that stands alone."""


def charts(digest: Mapping[str, Any], link: Link = nowhere) -> list[Chart]:
    """Draw every chart that the digest has data for."""
    found = digest["charts"]
    makers = (
        ("sides", _sides),
        ("differences", _differences),
        ("frontier", _frontier),
        ("categories", _categories),
        ("reliability", _reliability),
        ("thought", _thought),
        ("answers", _answers),
        ("latency", _latency),
        ("tokens", _tokens),
        ("coverage", _coverage),
    )
    return [make(found[name], link) for name, make in makers if found.get(name)]


def _estimates(
    name: str, title: str, note: str, data: Mapping[str, Any], link: Link, key: str | None
) -> Chart:
    """Draw estimates with their intervals, one below the other."""
    rows = data["rows"]
    brief = short_names([row["name"] for row in rows], 26)
    names = [brief[row["name"]] for row in rows]
    left = int(min(170, max(len(n) for n in names) * CHAR + 14))
    drawing = Drawing(title, height=30 + ROW * len(rows) + 26, left=left, right=52, top=6)
    scale = drawing.x(0, 1)
    base = drawing.height - drawing.bottom
    for tick in (0, 0.25, 0.5, 0.75, 1):
        drawing.line(scale(tick), 6, scale(tick), base, "grid")
    for index, (row, label) in enumerate(zip(rows, names, strict=True)):
        y = 6 + ROW * index + ROW / 2
        where = link(row["filter"] if key is None else {key: row["name"]})
        said = f"{cut(row['name'], 80)}: {row['value']:.1%}"
        if row["low"] is not None:
            said += f", {row['low']:.1%} to {row['high']:.1%}"
            drawing.line(scale(row["low"]), y, scale(row["high"]), y, "whisker")
        drawing.dot(
            scale(row["value"]), y, "dot", r=4.5, title=f"{said}, {row['n']:,} records", href=where
        )
        drawing.text(left - 8, y + 4, label, "ink", "end")
        drawing.text(drawing.width - 2, y + 4, f"{row['value']:.1%}", "ink", "end")
    drawing.x_axis(scale, percent, data["metric"].replace("_", " "), 4)
    table = [("name", data["metric"], "low", "high", "records")]
    table += [(r["name"], r["value"], r["low"], r["high"], r["n"]) for r in rows]
    return Chart(name, title, note + legend(brief), tuple(table), drawing.svg())


def _sides(data: Mapping[str, Any], link: Link) -> Chart:
    note = "The line is the interval; where two overlap widely, the difference may be chance."
    title = f"{data['metric'].replace('_', ' ').capitalize()} of each side"
    return _estimates("sides", title, note, data, link, None)


def _differences(data: Mapping[str, Any], link: Link) -> Chart:  # noqa: ARG001
    """Draw paired differences around zero."""
    title = "Difference on the same tasks"
    rows = data["rows"]
    brief = short_names([name for row in rows for name in row["pair"]], 12)
    names = [" − ".join(brief[name] for name in row["pair"]) for row in rows]
    left = int(min(190, max(len(n) for n in names) * CHAR + 14))
    drawing = Drawing(title, height=56 + ROW * len(rows), left=left, right=64, top=6)
    far = max(0.05, *(abs(row[end]) for row in rows for end in ("low", "high")))
    scale = drawing.x(-far * 1.05, far * 1.05)
    base = drawing.height - drawing.bottom
    for tick in ticks(scale.low, scale.high, 4):
        drawing.line(scale(tick), 6, scale(tick), base, "grid")
    drawing.line(scale(0), 6, scale(0), base, "axis")
    for index, (row, label) in enumerate(zip(rows, names, strict=True)):
        y = 6 + ROW * index + ROW / 2
        ends = f"({points(row['low'])} to {points(row['high'])})"
        said = f"{cut(row['name'], 90)}: {points(row['value'])} {ends}"
        drawing.line(scale(row["low"]), y, scale(row["high"]), y, "whisker")
        drawing.dot(scale(row["value"]), y, "dot", r=4.5, title=f"{said}, {row['n']:,} tasks")
        drawing.text(left - 8, y + 4, label, "ink", "end")
        drawing.text(drawing.width - 2, y + 4, points(row["value"]), "ink", "end")
    drawing.x_axis(scale, points, f"{data['metric'].replace('_', ' ')}, in points", 4)
    table = [("pair", "difference", "low", "high", "tasks")]
    table += [(r["name"], r["value"], r["low"], r["high"], r["n"]) for r in rows]
    note = "Task by task; where the line crosses zero, no difference could be shown."
    return Chart("differences", title, note + legend(brief), tuple(table), drawing.svg())


def _categories(data: Mapping[str, Any], link: Link) -> Chart:
    title = f"{data['metric'].replace('_', ' ').capitalize()} by category"
    return _estimates(
        "categories", title, "Each category with its interval.", data, link, "category"
    )


def _reliability(data: Sequence[Mapping[str, Any]], link: Link) -> Chart:
    """Draw how often answers were right against how sure the subject said it was."""
    title = "Reliability"
    drawing = Drawing(title, left=48)
    x, y = drawing.x(0, 1), drawing.y(0, 1)
    drawing.y_axis(y, percent, "")
    most = max(row["n"] for row in data)
    for row in data:
        height = 26 * row["n"] / most
        drawing.box(
            x(row["low"]) + 1, y(0) - height, x(row["high"]) - x(row["low"]) - 2, height,
            "calm", title=f"{row['n']:,} records", opacity=0.25,
        )  # fmt: skip
    drawing.path([(x(0), y(0)), (x(1), y(1))], "edge")
    drawing.path([(x(r["said"]), y(r["right"])) for r in data], "trend")
    for row in data:
        said = f"said {row['said']:.0%}, right {row['right']:.0%}, {row['n']:,} records"
        top = row["high"] if row["high"] < 1 else None
        where = link({"prob_correct": (row["low"], top), "correct": "known"})
        drawing.dot(x(row["said"]), y(row["right"]), "dot", title=said, href=where)
    drawing.x_axis(x, percent, "how sure it said it was")
    table = [("from", "to", "records", "said", "right")]
    table += [(r["low"], r["high"], r["n"], r["said"], r["right"]) for r in data]
    note = "On the dashed line, what it says is what happens; below it, it is too sure of itself."
    return Chart("reliability", title, note, tuple(table), drawing.svg())


def _thought(data: Mapping[str, Any], link: Link) -> Chart:
    """Draw how long the chains of thought were, right and wrong ones apart."""
    title = "Length of thought and correctness"
    bins = data["bins"]
    drawing = Drawing(title, top=22)
    most = max(b["right"] + b["wrong"] for b in bins) or 1
    x, y = drawing.x(bins[0]["low"], bins[-1]["high"]), drawing.y(0, most)
    drawing.y_axis(y, short)
    for one in bins:
        left, width = x(one["low"]) + 0.5, x(one["high"]) - x(one["low"]) - 1
        total = one["right"] + one["wrong"]
        if not total:
            continue
        span = (one["low"], _top(one, bins))
        low = y(one["right"])
        text = f"{_span(*span)} tokens: {one['right']:,} right of {total:,}"
        drawing.box(
            left, low, width, y(0) - low, "bar", title=text,
            href=link({"cot_tokens": span, "correct": "yes"}),
        )  # fmt: skip
        drawing.box(
            left, y(total), width, low - y(total), "bad", title=text,
            href=link({"cot_tokens": span, "correct": "no"}),
        )  # fmt: skip
    drawing.box(drawing.left, 4, 9, 9, "bar")
    drawing.text(drawing.left + 13, 12, "right")
    drawing.box(drawing.left + 52, 4, 9, 9, "bad")
    drawing.text(drawing.left + 65, 12, "wrong")
    drawing.x_axis(x, short, "tokens of thought")
    table: list[tuple[Any, ...]] = [("from", "to", "right", "wrong")]
    table += [(b["low"], _top(b, bins), b["right"], b["wrong"]) for b in bins]
    note = "Longer is better only where the blue share grows to the right."
    return Chart("thought", title, note, tuple(table), drawing.svg())


def _top(one: Mapping[str, Any], bins: Sequence[Mapping[str, Any]]) -> float | None:
    """Give the upper end of a bin, which is not in it; the last has none and takes all the rest."""
    return None if one is bins[-1] else float(one["high"])


def _span(low: float, high: float | None) -> str:
    return f"{low:g} and more" if high is None else f"{low:g} to below {high:g}"


def _answers(data: Sequence[Mapping[str, Any]], link: Link) -> Chart:
    """Draw the answers that were given most often."""
    title = "Answers given"
    drawing = Drawing(title, height=12 + 20 * len(data) + 6, left=130, right=48, top=6)
    most = max(row["n"] for row in data)
    x = drawing.x(0, most)
    for index, row in enumerate(data):
        y = 8 + 20 * index
        label = cut(row["answer"], 18) if row["answer"] is not None else "no answer"
        right = x(row["right"]) - drawing.left
        text = f"{label}: {row['n']:,}, {row['right']:,} of them right"
        given = {"answer_in": row["spelt"]} if row["spelt"] else None
        for kind, start, width, correct in (
            ("bar", drawing.left, right, "yes"),
            ("bad", drawing.left + right, x(row["n"]) - drawing.left - right, "no"),
        ):
            if width > 0:
                where = link({**given, "correct": correct}) if given else None
                drawing.box(start, y, width, 14, kind, title=text, href=where)
        drawing.text(drawing.left - 8, y + 11, label, "ink", "end")
        drawing.text(x(row["n"]) + 5, y + 11, short(row["n"]), "ink")
    table = [("answer", "records", "right"), *((r["answer"], r["n"], r["right"]) for r in data)]
    note = "The most frequent answers; blue were right. One bar far above the rest is a habit."
    return Chart("answers", title, note, tuple(table), drawing.svg())


def _histogram(
    name: str, title: str, note: str, unit: str, data: Mapping[str, Any], link: Link
) -> Chart:
    drawing = Drawing(title, top=22)
    bins = data["bins"]
    x = drawing.x(bins[0]["low"], bins[-1]["high"])
    y = drawing.y(0, max(b["n"] for b in bins) or 1)
    drawing.y_axis(y, short)
    for one in bins:
        span = (one["low"], _top(one, bins))
        text = f"{_span(*span)} {unit}: {one['n']:,} records"
        drawing.box(
            x(one["low"]) + 0.5, y(one["n"]), x(one["high"]) - x(one["low"]) - 1,
            y(0) - y(one["n"]), "bar", title=text,
            href=link({data["measure"]: span}) if one["n"] else None,
        )  # fmt: skip
    ends = {n: x(data[n]) for n in ("p50", "p95")}
    near = ends["p95"] - ends["p50"] < 70
    for index, (label, place) in enumerate(ends.items()):
        drawing.line(place, 16, place, y(0), "mark")
        anchor = "end" if (near and not index) or place > 340 else "start"
        text = f"{'median' if label == 'p50' else 'P95'} {short(data[label])}"
        drawing.text(place + (-3 if anchor == "end" else 3), 12, text, "ink", anchor)
    drawing.x_axis(x, short, unit)
    table = [("from", "to", "records"), *((b["low"], _top(b, bins), b["n"]) for b in bins)]
    return Chart(name, title, note, tuple(table), drawing.svg())


def _latency(data: Mapping[str, Any], link: Link) -> Chart:
    note = "How long answers took; the last bar holds the slowest hundredth."
    return _histogram("latency", "Latency", note, "milliseconds", data, link)


def _tokens(data: Mapping[str, Any], link: Link) -> Chart:
    note = "Tokens in and out together, for each attempt."
    return _histogram("tokens", "Tokens", note, "tokens", data, link)


def _frontier(data: Mapping[str, Any], link: Link) -> Chart:
    """Draw what each side costs against how good it is."""
    title = "Cost against quality"
    rows = data["rows"]
    drawing = Drawing(title, left=48)
    most = max(row["cost"] for row in rows) * 1.15 or 1.0
    x, y = drawing.x(0, most), drawing.y(0, 1)
    drawing.y_axis(y, percent)
    best = sorted((r for r in rows if r["frontier"]), key=lambda r: r["cost"])
    drawing.path([(x(r["cost"]), y(r["value"])) for r in best], "edge")
    brief, labels = short_names([r["name"] for r in rows], 24), Places(drawing)
    labels.taken += [
        (x(r["cost"]) - 6, y(r["value"]) - 6, x(r["cost"]) + 6, y(r["value"]) + 6) for r in rows
    ]
    for row in rows:
        place = x(row["cost"]), y(row["value"])
        if row["low"] is not None:
            drawing.line(place[0], y(row["low"]), place[0], y(row["high"]), "whisker")
        text = f"{row['name']}: {row['value']:.1%} for {dollars(row['cost'])} an attempt"
        kind = "dot best" if row["frontier"] else "dot"
        drawing.dot(*place, kind, r=5, title=text, href=link(row["filter"]))
        labels.put(*place, brief[row["name"]])
    drawing.x_axis(x, dollars, "US$ for an attempt (mean)")
    table = [("name", "cost_usd_mean", data["metric"], "on_the_frontier")]
    table += [(r["name"], r["cost"], r["value"], r["frontier"]) for r in rows]
    note = "Nothing is both cheaper and better than what lies on the dashed line."
    return Chart("frontier", title, note + legend(brief), tuple(table), drawing.svg())


def _coverage(data: Mapping[str, Any], link: Link) -> Chart:
    """Draw a field for each category and capability: how many passed, of how many."""
    title = "Category by capability"
    across, down = data["capabilities"], data["categories"]
    left = int(min(140, max(len(cut(c, 20)) for c in down) * CHAR + 14))
    drawing = Drawing(title, height=30 + 26 * len(down), left=left, top=22, bottom=4, right=4)
    width = (drawing.width - left - 4) / len(across)
    room = max(4, int(width / CHAR))
    for index, name in enumerate(across):
        drawing.text(left + width * (index + 0.5), 14, middle(name, room), "", "middle")
    cells = {(c["category"], c["capability"]): c for c in data["cells"]}
    for row, category in enumerate(down):
        y = 20 + 26 * row
        drawing.text(left - 8, y + 16, middle(category, 20), "ink", "end")
        for column, capability in enumerate(across):
            x = left + width * column
            cell = cells.get((category, capability))
            if cell is None:
                drawing.text(x + width / 2, y + 16, "·", "", "middle")
                continue
            text = f"{cut(category, 30)}, {cut(capability, 30)}: {cell['n']:,} records"
            share = cell["passed"]
            where = link({"category": category, "capability": capability})
            drawing.box(
                x + 1, y, width - 2, 24, "bar", title=text, href=where,
                opacity=0.08 + 0.42 * (share or 0),
            )  # fmt: skip
            said = "—" if share is None else f"{share:.0%}"
            drawing.text(x + width / 2, y + 16, said, "ink", "middle")
    table = [("category", "capability", "records", "passed")]
    table += [(c["category"], c["capability"], c["n"], c["passed"]) for c in data["cells"]]
    note = "The share that passed; a dot is a pair that no task covers."
    return Chart("coverage", title, note, tuple(table), drawing.svg())


def trend(rows: Sequence[Mapping[str, Any]], metric: str) -> str:
    """Draw a metric over the runs of one suite, the oldest first."""
    drawing = Drawing(f"{metric} over runs", width=640, height=150, left=48, bottom=22, right=16)
    x, y = drawing.x(0, max(1, len(rows) - 1)), drawing.y(0, 1)
    drawing.y_axis(y, percent)
    drawing.path([(x(i), y(r["value"])) for i, r in enumerate(rows)], "trend")
    for index, row in enumerate(rows):
        if row["low"] is not None:
            drawing.line(x(index), y(row["low"]), x(index), y(row["high"]), "whisker")
        text = f"{row['id']}: {row['value']:.1%}"
        drawing.dot(x(index), y(row["value"]), "dot", title=text, href=row["href"])
    drawing.text(drawing.left, drawing.height - 6, rows[0]["when"])
    drawing.text(drawing.width - drawing.right, drawing.height - 6, rows[-1]["when"], "", "end")
    return drawing.svg()
