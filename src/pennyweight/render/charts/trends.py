"""The headline of each subject over the runs of one suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pennyweight.render.charts.svg import CHAR, ChartMark, Drawing, cut
from pennyweight.render.format import unit_of
from pennyweight.text.format import quantity, tick
from pennyweight.text.notation import SHARE

MAX_LINES = 6
"""Of more subjects, the best of the latest run are drawn."""


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """The value of a subject in one run, the runs being counted from 0."""

    place: int
    value: float
    low: float | None
    high: float | None
    run: str
    href: str


def trends(
    lines: Mapping[str, Sequence[TrendPoint]],
    when: Sequence[str],
    metric: str,
    width: int = 1240,
) -> str:
    """Draw a metric over runs, a line for each subject, named at its last point."""
    wide = min(170, 12 + int(CHAR * max(len(cut(name, 26)) for name in lines)))
    right = wide if any(lines) and (len(lines) > 1 or next(iter(lines))) else 20
    drawing = Drawing(
        f"{metric} over runs", width=width, height=190, left=48, bottom=24, right=right
    )
    unit = unit_of(metric)
    known = [v for line in lines.values() for p in line for v in (p.value, p.low, p.high)]
    ends = [v for v in known if v is not None]
    low, high = (0.0, 1.0) if unit == SHARE else (min(ends), max(ends))
    x, y = drawing.x(0, max(1, len(when) - 1)), drawing.y(low, high)
    drawing.y_axis(y, partial(tick, unit=unit))
    taken: list[float] = []
    for kind, (name, line) in enumerate(lines.items()):
        shift = 3.0 * (kind - (len(lines) - 1) / 2)
        drawing.path([(x(p.place) + shift, y(p.value)) for p in line], f"trend line{kind}")
        for p in line:
            if p.low is not None and p.high is not None:
                at = x(p.place) + shift
                drawing.line(at, y(p.low), at, y(p.high), "whisker faint")
            text = f"{p.run}{', ' + name if name else ''}: {quantity(p.value, unit)}"
            drawing.dot(
                x(p.place) + shift, y(p.value), f"dot dot{kind}", ChartMark(text, p.href), 4
            )
        if name:
            at = y(line[-1].value) + 4
            while any(abs(at - other) < 12 for other in taken):
                at += 12 if at < drawing.base - 14 else -13
            taken.append(at)
            drawing.text(width - right + 10, at, cut(name, 26), "ink")
    same = when[0][:10] == when[-1][:10]
    part = slice(11, None) if same and width < 600 else slice(None) if same else slice(10)
    first, last = when[0][part], when[-1][part]
    drawing.text(drawing.left, drawing.height - 6, first)
    drawing.text(drawing.width - drawing.right, drawing.height - 6, last, "", "end")
    return drawing.svg()
