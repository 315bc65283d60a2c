"""Charts of how a measure is spread: how many records each bin holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from pennyweight.render.chart import Chart
from pennyweight.render.format import count, plural, tick
from pennyweight.render.svg import CHAR, WIDTH, Drawing, Scale, top

if TYPE_CHECKING:
    from pennyweight.render.chart import Link

SLOW = 2_000
"""Milliseconds from which times are told in seconds."""


def _end(one: Mapping[str, Any], bins: Sequence[Mapping[str, Any]]) -> float | None:
    """Give the upper end of a bin, which is not in it; the last has none and takes all the rest."""
    return None if one is bins[-1] else float(one["high"])


def _span(low: float, high: float | None) -> str:
    """Write a bin's ends.

    >>> _span(1000, 2000), _span(2.5, None)
    ('1,000 to below 2,000', '2.5 and more')
    """
    first, last = (f"{round(end, 6):,.10g}" for end in (low, high or 0.0))
    return f"{first} and more" if high is None else f"{first} to below {last}"


def thought(data: Mapping[str, Any], link: Link) -> Chart:
    """Draw how long the chains of thought were, right and wrong ones apart."""
    title = "Length of reasoning and correctness"
    bins = data["bins"]
    drawing = Drawing(title, top=24)
    most = top(max(b["right"] + b["wrong"] for b in bins))
    x, y = drawing.x(bins[0]["low"], bins[-1]["high"]), drawing.y(0, most)
    drawing.y_axis(y, tick, "records", whole=True)
    links: dict[tuple[int, int], str] = {}
    for index, one in enumerate(bins, 1):
        left, width = x(one["low"]) + 0.5, x(one["high"]) - x(one["low"]) - 1
        total = one["right"] + one["wrong"]
        span = (one["low"], _end(one, bins))
        text = f"{_span(*span)} tokens: {count(one['right'])} of {plural(total, 'record')} right"
        middle = y(one["right"]) if one["wrong"] else drawing.top
        parts = (
            (2, "bar", "right", "yes", y(one["right"]), y(0), middle, y(0)),
            (3, "bad", "wrong", "no", y(total), y(one["right"]), drawing.top, y(one["right"])),
        )
        for column, kind, word, correct, high, low, reach, foot in parts:
            if not one[word]:
                continue
            where = link({"cot_tokens": span, "correct": correct})
            hit = (left - 0.5, reach, width + 1, foot - reach)
            drawing.box(left, high, width, low - high, kind, title=text, href=where, hit=hit)
            if where:
                links[index, column] = where
    place = drawing.left + 22
    for kind, word in (("bar", "right"), ("bad", "wrong")):
        drawing.box(place, 3, 9, 9, kind)
        drawing.text(place + 13, 11, word)
        place += 52
    drawing.x_axis(x, tick, "reasoning tokens")
    table: list[tuple[Any, ...]] = [("from", "below", "right", "wrong")]
    table += [(b["low"], _end(b, bins), b["right"], b["wrong"]) for b in bins]
    note = "Longer reasoning helps only where the blue share grows to the right."
    return Chart("thought", title, note, tuple(table), drawing.svg(), links=links)


def _histogram(
    name: str,
    drawing: Drawing,
    note: str,
    unit: str,
    data: Mapping[str, Any],
    link: Link,
    size: int = 1,
) -> Chart:
    """Draw how many records fall into each bin; `size` is how much of a measure a unit is."""
    bins = data["bins"]
    x = drawing.x(bins[0]["low"], bins[-1]["high"])
    y = drawing.y(0, top(max(b["n"] for b in bins)))
    drawing.y_axis(y, tick, "records", whole=True)
    links: dict[tuple[int, int], str] = {}
    for index, one in enumerate(bins, 1):
        if not one["n"]:
            continue
        span = (one["low"], _end(one, bins))
        told = _span(one["low"] / size, None if span[1] is None else span[1] / size)
        where = link({data["measure"]: span})
        left, width = x(one["low"]), x(one["high"]) - x(one["low"])
        drawing.box(
            left + 0.5, y(one["n"]), width - 1, y(0) - y(one["n"]), "bar",
            title=f"{told} {unit}: {plural(one['n'], 'record')}", href=where,
            hit=(left, drawing.top, width, y(0) - drawing.top),
        )  # fmt: skip
        if where:
            links[index, 2] = where
    _marks(drawing, x, y(0), data["p50"], data["p95"], size)
    drawing.x_axis(replace(x, low=x.low / size, high=x.high / size), tick, unit)
    table = [("from", "below", "records"), *((b["low"], _end(b, bins), b["n"]) for b in bins)]
    return Chart(name, drawing.label, note, tuple(table), drawing.svg(), links=links)


def _marks(drawing: Drawing, x: Scale, base: float, p50: float, p95: float, size: int) -> None:
    """Mark median and P95; where their labels would meet, one label tells both."""
    told = [(x(p50), f"median {tick(p50 / size)}"), (x(p95), f"P95 {tick(p95 / size)}")]
    for place, _ in told:
        drawing.line(place, 17, place, base, "mark")
    spots = [_spots(place, text, drawing) for place, text in told]
    for chosen in product(*spots):
        ends = sorted((left, right) for left, right, _ in chosen)
        if all(a[1] + 4 <= b[0] for a, b in pairwise(ends)):
            break
    else:
        told = [(x(p95), ", ".join(text for _, text in told))]
        chosen = tuple(_spots(*told[0], drawing)[:1])
    for (left, right, anchor), (_, text) in zip(chosen, told, strict=True):
        drawing.text(left if anchor == "start" else right, 12, text, "ink", anchor)


def _spots(place: float, text: str, drawing: Drawing) -> list[tuple[float, float, str]]:
    """List where a label has room beside its line: right of it, left of it, or at the edge."""
    wide, first, last = len(text) * CHAR, drawing.left + 4, drawing.width - 2
    right = (place + 3, place + 3 + wide, "start")
    left = (place - 3 - wide, place - 3, "end")
    fit = [spot for spot in (right, left) if spot[0] >= first and spot[1] <= last]
    return fit or [(last - wide, last, "end")]


def latency(data: Mapping[str, Any], link: Link, width: int = WIDTH) -> Chart:
    """Draw how long answers took, in seconds where that is easier to read."""
    note = "Time per attempt. The last bar contains the slowest 1 %."
    slow = data["bins"][-1]["high"] >= SLOW
    unit, size = ("seconds", 1000) if slow else ("milliseconds", 1)
    drawing = Drawing("Latency", width=width, top=24)
    return _histogram("latency", drawing, note, unit, data, link, size)


def tokens(data: Mapping[str, Any], link: Link, width: int = WIDTH) -> Chart:
    """Draw how many tokens attempts took."""
    note = "Input and output tokens per attempt."
    drawing = Drawing("Tokens", width=width, top=24)
    return _histogram("tokens", drawing, note, "tokens", data, link)
