"""The sides of a leaderboard as they are, whatever a reader chooses: read and written once."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

from markupsafe import Markup

from pennyweight.catalogue import METRICS
from pennyweight.metrics.probes import is_probe
from pennyweight.render.catalogue import REPEATS_SHOWN
from pennyweight.render.charts.scales import Scale, ticks
from pennyweight.render.format import estimate_cells, unit_of
from pennyweight.render.page.board import BoardCell
from pennyweight.render.page.grid import column_heads
from pennyweight.render.view import estimate
from pennyweight.scoring.estimates import Estimate
from pennyweight.scoring.overview import best_first, overview
from pennyweight.scoring.scores import Group
from pennyweight.text.format import quantity
from pennyweight.text.natural_order import natural
from pennyweight.text.notation import SHARE

NAME = "name"
"""Sorts by the names of the sides."""
WIDTH, EDGE = 150, 5
"""The width of a bar, and the space left at its ends."""
WIDE = 50
"""Values that differ by more than this have a logarithmic scale."""
FEW_TASKS = (
    ' <abbr title="A few tasks decide this mean: its interval may be too narrow; more tasks help.">'
    "few tasks</abbr>"
)
_NONE = Estimate(None)


@dataclass(frozen=True, slots=True)
class SideColumn:
    """The cells of a metric, one for each side, and the ends of the scale of their bars."""

    cells: tuple[BoardCell, ...]
    axis: tuple[str, ...] | None = None


class BoardSides:
    """The sides of a board: which metrics they have, their orders, and the cells of a metric."""

    def __init__(self, sides: Sequence[Mapping[str, Any]]) -> None:
        self.sides = sides
        self.groups = [
            Group(
                {"": side["name"]},
                side["records"],
                side["errors"],
                {n: estimate(cells) for n, cells in side["estimates"].items() if n in METRICS},
                {},
                side["tasks"],
            )
            for side in sides
        ]
        self._columns: dict[tuple[str, bool], SideColumn] = {}
        self._orders: dict[str, list[int]] = {}

    @cached_property
    def is_probed(self) -> bool:
        """Whether the sides are the points of a probe: they have an order, and none is best."""
        return all(any(is_probe(str(v)) for v in side["group"].values()) for side in self.sides)

    @cached_property
    def overview(self) -> list[str]:
        """The metrics that a table shows by default."""
        return overview(self.groups)

    @cached_property
    def known(self) -> list[str]:
        """Those of them that some side has."""
        names = [n for n in self.overview if any(g[n].value is not None for g in self.groups)]
        sizes = {(side["repeats"] or {}).get("k") for side in self.sides}
        if len(sizes) > 1 or sizes == {1}:  # not comparable, or the share that passes
            return [n for n in names if n not in REPEATS_SHOWN]
        return names

    @cached_property
    def brief(self) -> dict[str, str]:
        """The names of the sides where there is little room."""
        return column_heads([side["name"] for side in self.sides])

    @cached_property
    def sortable(self) -> list[str]:
        """The metrics of which some side has a number."""
        has = ((n, (g.estimates.get(n, _NONE).value for g in self.groups)) for n in METRICS)
        return [n for n, values in has if any(isinstance(value, float) for value in values)]

    def order(self, sort: str, *, reverse: bool) -> list[int]:
        """Order the sides: by a metric the best first, equal ones as in comparisons."""
        found = self._orders.get(sort)
        if found is None:
            found = self._orders[sort] = self._ordered(sort)
        if not reverse:
            return found
        known = [i for i in found if sort == NAME or self.groups[i][sort].value is not None]
        return known[::-1] + found[len(known) :]

    def _ordered(self, sort: str) -> list[int]:
        if sort == NAME:
            names = [str(side["name"]) for side in self.sides]
            return sorted(range(len(names)), key=lambda i: natural(names[i].casefold()))
        at = {id(group): i for i, group in enumerate(self.groups)}
        return [at[id(group)] for group in best_first(self.groups, sort)]

    def column(self, name: str, *, drawn: bool) -> SideColumn:
        """Return the cells of a metric; in the drawn column they have a bar."""
        place = (name, drawn)
        found = self._columns.get(place)
        if found is None:
            found = self._columns[place] = self._column(name, drawn=drawn)
        return found

    def _column(self, name: str, *, drawn: bool) -> SideColumn:
        every = [group.estimates.get(name, _NONE) for group in self.groups]
        scale, axis = _scale(every, name) if drawn else (None, None)
        numbers = [e for e in every if isinstance(e.value, float) and math.isfinite(e.value)]
        largest = [max(numbers, key=lambda e: e.value)] if numbers else []
        made = []
        for side, found in zip(self.sides, every, strict=True):
            value, ends = estimate_cells(name, found, narrow=True, others=largest)
            written = f'<span class="value">{escape(value)}</span>'
            if ends:
                few = FEW_TASKS if name in side.get("skewed", ()) else ""
                written += f"<small>{escape(ends)}{few}</small>"
            if scale:
                written = f'<div class="pair">{_bar(found, scale)}<div>{written}</div></div>'
            kind = "num drawn" if scale else "num"
            made.append(BoardCell(value, ends, Markup(f'<td class="{kind}">{written}</td>')))  # noqa: S704
        return SideColumn(tuple(made), axis)


_KNOWN: deque[tuple[tuple[str, ...], BoardSides]] = deque(maxlen=8)
"""The sides that were shown last: a server shows the same ones in many orders."""


def board_sides(sides: Sequence[Mapping[str, Any]]) -> BoardSides:
    """Read the sides of a digest, which are read once as long as they are shown."""
    metrics = tuple(METRICS)
    for names, known in tuple(_KNOWN):
        if known.sides is sides and names == metrics:
            return known
    made = BoardSides(sides)
    _KNOWN.append((metrics, made))
    return made


def _scale(values: Sequence[Estimate], name: str) -> tuple[Scale | None, tuple[str, ...] | None]:
    """Return the scale of the bars, over what the sides really cover, and its ends in words.

    Values of very different sizes have a logarithmic one, which says so.
    """
    known = [x for e in values for x in (e.value, e.low, e.high)]
    ends = [x for x in known if isinstance(x, float) and math.isfinite(x)]
    if not ends:
        return None, None
    low, high = min(ends), max(ends)
    metric, unit = METRICS.get(name), unit_of(name)
    least, most = (metric and metric.range) or (None, None)
    if low > 0 and high > WIDE * low and unit != SHARE:
        low, high = (
            10.0 ** part(math.log10(x)) for part, x in ((math.floor, low), (math.ceil, high))
        )
        words = [quantity(low, unit), "log", quantity(high, unit)]
        return Scale(low, high, EDGE, WIDTH - EDGE, log=True), tuple(words)
    steps = ticks(low, high, 4)
    step = steps[1] - steps[0] if len(steps) > 1 else (high - low) or abs(high) or 1.0
    low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
    if not high > low:
        low, high = low - step, high + step
    low = low if least is None else max(low, float(least))
    high = high if most is None else min(high, float(most))
    words = [quantity(end, unit, largest=high) for end in (low, high)]
    if unit == SHARE:
        words = [f"{round(100 * end)} %" for end in (low, high)]
    return Scale(low, high, EDGE, WIDTH - EDGE), tuple(words)


def _bar(e: Estimate, scale: Scale) -> str:
    """Draw a value and its interval on the scale that all sides share."""
    if not isinstance(e.value, float) or not math.isfinite(e.value):
        return ""
    at, low, high = (
        scale(e.value if not isinstance(x, float) else x) for x in (e.value, e.low, e.high)
    )
    return (
        '<svg class="range" viewBox="0 0 150 14" aria-hidden="true">'
        f'<line class="track" x1="{EDGE}" x2="{WIDTH - EDGE}" y1="7" y2="7"/>'
        f'<line class="span" x1="{low}" x2="{high}" y1="7" y2="7"/>'
        f'<circle class="point" cx="{at}" cy="7" r="3.5"/></svg>'
    )
