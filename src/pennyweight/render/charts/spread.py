"""Charts of the distribution of a measure: how many records fall into each bin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

from pennyweight.render.charts.scales import Scale, top
from pennyweight.render.charts.svg import CHAR, WIDTH, Chart, ChartMark, Drawing, Link
from pennyweight.text.format import count, plural, tick

SECONDS_FROM = 1_000
"""Milliseconds from which times are shown in seconds."""

Bin = Mapping[str, Any]


def _ends(one: Bin, bins: Sequence[Bin]) -> tuple[float, float | None]:
    """Return the ends of a bin; the upper is not part of it, and the last bin has none."""
    return one["low"], None if one is bins[-1] else float(one["high"])


def _span(low: float, high: float | None, size: int = 1) -> str:
    """Write a bin's ends, in a unit of this size.

    >>> _span(1000, 2000), _span(2500, None, 1000)
    ('1,000 to below 2,000', '2.5 and more')
    """
    first, last = (f"{round(end / size, 6):,.10g}" for end in (low, high or 0.0))
    return f"{first} and more" if high is None else f"{first} to below {last}"


def thought(data: Mapping[str, Any], link: Link) -> Chart:
    """Draw how long the chains of thought were, for correct and wrong answers."""
    bins = data["bins"]
    drawing = Drawing("Length of reasoning and correctness", top=24)
    x = drawing.x(bins[0]["low"], bins[-1]["high"])
    y = drawing.y(0, top(max(b["right"] + b["wrong"] for b in bins)))
    drawing.y_axis(y, tick, "records", whole=True)
    for index, one in enumerate(bins, 1):
        left, width = x(one["low"]) + 0.5, x(one["high"]) - x(one["low"]) - 1
        total = one["right"] + one["wrong"]
        ends = _ends(one, bins)
        text = f"{_span(*ends)} tokens: {count(one['right'])} of {plural(total, 'record')} right"
        border = y(one["right"])
        parts = (
            (2, "bar", "right", "yes", border, y(0), border if one["wrong"] else drawing.top),
            (3, "bad", "wrong", "no", y(total), border, drawing.top),
        )
        for column, kind, word, correct, high, low, reach in parts:
            if one[word]:
                href = link({"cot_tokens": ends, "correct": correct})
                hit = (left - 0.5, reach, width + 1, low - reach)
                mark = ChartMark(text, href, (index, column), hit)
                drawing.box((left, high, width, low - high), kind, mark)
    for place, kind, word in ((22, "bar", "right"), (74, "bad", "wrong")):
        drawing.box((drawing.left + place, 3, 9, 9), kind)
        drawing.text(drawing.left + place + 13, 11, word)
    drawing.x_axis(x, tick, "reasoning tokens", whole=True)
    counts = ((*_ends(b, bins), b["right"], b["wrong"]) for b in bins)
    table = [("from", "below", "right", "wrong"), *counts]
    note = "Hard tasks often take longer: fewer right answers do not show that reasoning hurts."
    return drawing.chart("thought", note, table)


def _histogram(
    drawing: Drawing, note: str, unit: str, data: Mapping[str, Any], link: Link, size: int = 1
) -> Chart:
    """Draw how many records fall into each bin; `size` is how much of the measure a unit is."""
    bins = data["bins"]
    x = drawing.x(bins[0]["low"], bins[-1]["high"])
    y = drawing.y(0, top(max(b["n"] for b in bins)))
    drawing.y_axis(y, tick, "records", whole=True)
    for index, one in enumerate(bins, 1):
        if not one["n"]:
            continue
        ends = _ends(one, bins)
        text = f"{_span(*ends, size)} {unit}: {plural(one['n'], 'record')}"
        left, wide = x(one["low"]), x(one["high"]) - x(one["low"])
        hit = (left, drawing.top, wide, y(0) - drawing.top)
        mark = ChartMark(text, link({data["measure"]: ends, **data["filter"]}), (index, 2), hit)
        drawing.box((left + 0.5, y(one["n"]), wide - 1, y(0) - y(one["n"])), "bar", mark)
    _draw_quantiles(drawing, x, data["p50"], data["p95"], size)
    axis = replace(x, low=x.low / size, high=x.high / size)
    drawing.x_axis(axis, tick, unit, whole=unit == "tokens")
    table = [("from", "below", "records"), *((*_ends(b, bins), b["n"]) for b in bins)]
    return drawing.chart(drawing.label.lower(), note, table)


def _draw_quantiles(drawing: Drawing, x: Scale, p50: float, p95: float, size: int) -> None:
    """Mark the median and P95; where their labels would overlap, one label names both."""
    labels = [(x(p50), f"median {tick(p50 / size)}"), (x(p95), f"P95 {tick(p95 / size)}")]
    for place, _ in labels:
        drawing.line(place, 17, place, drawing.base, "mark")
    for chosen in product(*(_spots(place, text, drawing) for place, text in labels)):
        ends = sorted((left, right) for left, right, _ in chosen)
        if all(a[1] + 4 <= b[0] for a, b in pairwise(ends)):
            break
    else:
        labels = [(x(p95), ", ".join(text for _, text in labels))]
        chosen = tuple(_spots(*labels[0], drawing)[:1])
    for (left, right, anchor), (_, text) in zip(chosen, labels, strict=True):
        drawing.text(left if anchor == "start" else right, 12, text, "ink", anchor)


def _spots(place: float, text: str, drawing: Drawing) -> list[tuple[float, float, str]]:
    """List where a label has room near its line: right of it, left of it, or at the near edge."""
    wide, first, last = len(text) * CHAR, drawing.left + 4, drawing.width - 2
    start = max(place + 3, first)
    right = (start, start + wide, "start")
    left = (place - 3 - wide, place - 3, "end")
    fit = [spot for spot in (right, left) if spot[0] >= first and spot[1] <= last]
    return fit or [(last - wide, last, "end")]


def latency(data: Mapping[str, Any], link: Link, width: int = WIDTH) -> Chart:
    """Draw how long attempts took, in seconds where that is easier to read."""
    note = "Time per attempt. The last bar contains the slowest 1 %."
    slow = data["bins"][-1]["high"] >= SECONDS_FROM
    unit, size = ("seconds", 1000) if slow else ("milliseconds", 1)
    return _histogram(Drawing("Latency", width=width, top=24), note, unit, data, link, size)


def tokens(data: Mapping[str, Any], link: Link, width: int = WIDTH) -> Chart:
    """Draw how many tokens attempts used."""
    note = "Input and output tokens per attempt."
    return _histogram(Drawing("Tokens", width=width, top=24), note, "tokens", data, link)
