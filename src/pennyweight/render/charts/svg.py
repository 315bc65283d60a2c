"""Charts as SVG: scales, axes, marks and labels. Colours are classes, set by the page's theme."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby, takewhile
from string import ascii_uppercase
from typing import Any

from pennyweight.render.charts.scales import Scale, log_ticks, ticks
from pennyweight.render.plain import middle, one_line, wrapped

WIDTH, HEIGHT = 420, 240
HEAD = 26
"""Height of the title of a chart in a separate file."""
CHAR, LINE = 5.9, 13
"""About how wide a character and how high a line is at the charts' font size."""
FINGER = 30
"""The size of the area that reacts to a finger, on a phone that scales the chart down."""

Box = tuple[float, float, float, float]
Hit = tuple[float, float, float, float]
"""Left, top, width and height of the area that reacts to a pointer."""
Link = Callable[[Mapping[str, Any]], str | None]
"""Returns the address of the records behind a mark, given their filter."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture, a sentence on how to read it, and its numbers; the first row is the header."""

    name: str
    title: str
    note: str
    rows: Sequence[Sequence[Any]]
    svg: str
    units: Sequence[str] = ()
    """The unit of each column of numbers."""
    links: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """The addresses of the marks, by the row and the column of their numbers."""
    wide: str = ""
    """The picture over several columns, to fill the last row."""
    span: int = 1
    """How many of three columns the wide picture takes."""


def nowhere(_: Mapping[str, Any]) -> None:
    """Return no address, as in a report that is one file."""


def cut(text: object, width: int) -> str:
    """Clean a label and cut it to this many characters."""
    return one_line(str(text), width) or "—"


MAX_LABELS = 8
"""Sides whose points are all labelled; of more sides, only those on the frontier are."""


@dataclass(frozen=True, slots=True)
class ChartMark:
    """The tooltip and the link of a mark."""

    title: str = ""
    href: str | None = None
    cell: tuple[int, int] = (0, 0)
    """The row and the column of its number in the chart's table."""
    hit: Hit | None = None
    """The area that reacts to a pointer, where the mark itself is too small for a finger."""


NO_MARK = ChartMark()


@dataclass(slots=True)
class Drawing:
    """A chart that is being drawn."""

    label: str
    width: int = WIDTH
    height: int = HEIGHT
    left: int = 44
    right: int = 12
    top: int = 10
    bottom: int = 34
    parts: list[str] = field(default_factory=list)
    links: dict[tuple[int, int], str] = field(default_factory=dict)

    def x(self, low: float, high: float, *, log: bool = False) -> Scale:
        """Make the scale of the horizontal axis."""
        return Scale(low, high, self.left, self.width - self.right, log)

    def y(self, low: float, high: float) -> Scale:
        """Make the scale of the vertical axis."""
        return Scale(low, high, self.base, self.top)

    @property
    def base(self) -> int:
        """The vertical position of the horizontal axis."""
        return self.height - self.bottom

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Draw a straight line."""
        self.parts.append(f'<line class="{kind}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>')

    def box(
        self, at: Hit, kind: str, mark: ChartMark = NO_MARK, opacity: float | None = None
    ) -> None:
        """Draw a rectangle."""
        more = f' fill-opacity="{opacity:.2f}"' if opacity is not None else ""
        self._add(_rectangle(at, kind, "" if mark.href else mark.title, more), mark, mark.hit)

    def dot(self, x: float, y: float, kind: str, mark: ChartMark, r: float = 4) -> None:
        """Draw a point; an area around it reacts to a pointer, too."""
        title = "" if mark.href else _title(mark.title)
        shape = f'<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="{r:g}">{title}</circle>'
        near = (x - FINGER / 2, y - FINGER / 2, FINGER, FINGER)
        self._add(shape, mark, mark.hit or near)

    def _add(self, shape: str, mark: ChartMark, hit: Hit | None) -> None:
        """Add a mark, with its link. The keyboard reaches the link in the table below the chart."""
        if mark.href:
            self.links[mark.cell] = mark.href
            area = _rectangle(hit, "hit", "") if hit else ""
            start = f'<a href="{escape(mark.href)}" tabindex="-1">'
            shape = f"{start}{_title(mark.title)}{area}{shape}</a>"
        self.parts.append(shape)

    def text(self, x: float, y: float, text: object, kind: str = "", anchor: str = "start") -> None:
        """Write a label."""
        named = f' class="{kind}"' if kind else ""
        self.parts.append(
            f'<text{named} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(str(text))}</text>'
        )

    def path(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """Draw a line through points."""
        way = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(f'<polyline class="{kind}" points="{way}"/>')

    def x_axis(
        self,
        scale: Scale,
        write: Callable[[float], str],
        title: str = "",
        about: int = 5,
        *,
        whole: bool = False,
    ) -> None:
        """Draw the horizontal axis; a label that would be cut off ends at the edge."""
        base = self.base
        self.line(self.left, base, self.width - self.right, base, "axis")
        places = ticks(scale.low, scale.high, about, whole=whole)
        for tick in log_ticks(scale.low, scale.high) if scale.log else places:
            x, label = scale(tick), write(tick)
            if x + len(label) * CHAR / 2 > self.width:
                self.text(self.width, base + 13, label, anchor="end")
            else:
                self.text(x, base + 13, label, anchor="middle")
        if title:
            middle = (self.left + self.width - self.right) / 2
            self.text(middle, self.height - 5, title, "name", "middle")

    def y_axis(
        self, scale: Scale, write: Callable[[float], str], title: str = "", *, whole: bool = False
    ) -> None:
        """Draw the vertical axis with its grid, and its title above it."""
        for tick in ticks(scale.low, scale.high, 4, whole=whole):
            self.line(self.left, scale(tick), self.width - self.right, scale(tick), "grid")
            self.text(self.left - 6, scale(tick) + 3.5, write(tick), anchor="end")
        if title:
            self.text(4, 11, title, "name")

    def svg(self) -> str:
        """Write the chart."""
        return (
            f'<svg class="chart" viewBox="0 0 {self.width} {self.height}" '
            f'role="group" aria-label="{escape(self.label)}" '
            f'xmlns="http://www.w3.org/2000/svg">{"".join(self.parts)}</svg>'
        )

    def chart(
        self, name: str, note: str, rows: Sequence[Sequence[Any]], units: Sequence[str] = ()
    ) -> Chart:
        """Return the finished chart."""
        return Chart(name, self.label, note, rows, self.svg(), units, self.links)


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""


def _rectangle(at: Hit, kind: str, title: str, more: str = "") -> str:
    x, y, width, height = at
    return (
        f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{max(width, 0):.5g}" '
        f'height="{max(height, 0):.5g}"{more}>{_title(title)}</rect>'
    )


def short_names(names: Sequence[str], width: int) -> dict[str, str]:
    """Shorten names and keep them distinct; use letters where nothing else does.

    >>> short_names(["20261115-150628-a7bc", "20261115-150951-9bfe"], 12)
    {'20261115-150628-a7bc': '…150628-a7bc', '20261115-150951-9bfe': '…150951-9bfe'}
    """
    every = list(dict.fromkeys(names))
    signs = zip(*every, strict=False) if len(every) > 1 else ()
    shared = "".join(s[0] for s in takewhile(lambda s: len(set(s)) == 1, signs))
    start = max(shared.rfind(sign) + 1 for sign in "-_ ·/.")
    ways = (
        [cut(n, 10_000) for n in every],
        ["…" + cut(n[start:], 10_000) for n in every] if start else [],
        _told_apart(every, width),
        [middle(n, width) for n in every],
    )
    for way in ways:
        if way and len(set(way)) == len(every) and max(map(len, way)) <= width:
            return dict(zip(every, way, strict=True))
    return {n: letter(i) for i, n in enumerate(every)}


def _told_apart(names: Sequence[str], width: int) -> list[str]:
    """Leave out words that all names share at the same place, the longest ones first.

    Stop when all names fit. The result is empty if the names differ in their number of words.

    >>> _told_apart(["lab/long-name-1-preview · T0", "lab/long-name-2-preview · T1"], 20)
    ['…1-preview · T0', '…2-preview · T1']
    >>> _told_apart(["lab/long-name-1-preview · T0", "lab/long-name-2-preview · T1"], 10)
    ['…1… · T0', '…2… · T1']
    """
    words = [re.findall(r"[^-_/.: ·]+|[-_/.: ·]+", name) for name in names]
    if len(set(map(len, words))) != 1:
        return []
    shared = [len(set(column)) == 1 for column in zip(*words, strict=True)]
    runs = [(same, [i for i, _ in run]) for same, run in groupby(enumerate(shared), lambda o: o[1])]
    parts = [["".join(one[i] for i in run) for _, run in runs] for one in words]
    sizes = {n: len(parts[0][n]) for n, (same, _) in enumerate(runs) if same}
    for n in sorted(sizes, key=lambda n: -sizes[n]):
        brief = _run([words[0][i] for i in runs[n][1]])
        for one in parts:
            one[n] = brief
        if max(sum(map(len, one)) for one in parts) <= width:
            break
    return [cut("".join(one), 10_000) for one in parts]


def _run(words: Sequence[str]) -> str:
    """Shorten words that all names share; what only separates stays."""
    last = words[-1] if words[-1].isspace() or "·" in words[-1] else ""
    return words[0] if len(words) == 1 and not words[0].isalnum() else f"…{last}"


def letter(index: int) -> str:
    """Return a letter: A to Z, then A2 and so on."""
    turn, place = divmod(index, len(ascii_uppercase))
    return ascii_uppercase[place] + (str(turn + 1) if turn else "")


def legend(short: dict[str, str]) -> str:
    """Explain the letters that replaced names."""
    letters = {s: cut(n, 60) for n, s in short.items() if s != cut(n, 10_000) and "…" not in s}
    return f" {'; '.join(f'{s} is {name}' for s, name in letters.items())}." if letters else ""


@dataclass(slots=True)
class Places:
    """Labels of points that do not overlap, and where possible cross no line."""

    drawing: Drawing
    taken: list[Box] = field(default_factory=list)
    lines: Sequence[Box] = ()
    """The ends of lines, from left to right: x, y, x, y."""

    def put(self, x: float, y: float, text: str) -> None:
        """Write a label right of a point if there is room, else left of it, else farther away."""
        wide = len(text) * CHAR
        spots = [
            (step, place, anchor, (left, y - 18 + step, left + wide, y - 5 + step))
            for step in (*range(0, 90, LINE), *range(-LINE, -90, -LINE))
            for left, place, anchor in ((x + 8, x + 8, "start"), (x - 8 - wide, x - 8, "end"))
        ]
        free = [spot for spot in spots if self._free(*spot[-1])]
        clear = [spot for spot in free if not any(_crossed(spot[-1], line) for line in self.lines)]
        near = [spot for spot in clear if abs(spot[0]) <= 3 * LINE]
        for step, place, anchor, box in (near or free)[:1]:
            self.taken.append(box)
            if abs(step) > 2 * LINE:
                self.drawing.line(x, y, place, y - 11 + step, "grid")
            self.drawing.text(place, y - 7 + step, text, "ink halo", anchor)

    def _free(self, left: float, top: float, right: float, bottom: float) -> bool:
        return (
            left >= 0
            and right <= self.drawing.width
            and top >= 0
            and bottom <= self.drawing.base
            and all(right <= a or c <= left or bottom <= b or d <= top for a, b, c, d in self.taken)
        )


def _crossed(box: Box, line: Box) -> bool:
    """Whether a line runs through a box.

    >>> _crossed((0, 0, 10, 10), (-5, 5, 15, 6)), _crossed((0, 0, 10, 10), (-5, 8, 5, 20))
    (True, False)
    """
    left, top, right, bottom = box
    x1, y1, x2, y2 = line
    if x2 <= left or x1 >= right:
        return False
    if x1 == x2:
        return min(y1, y2) < bottom and max(y1, y2) > top
    ends = [y1 + (y2 - y1) * (min(max(x, x1), x2) - x1) / (x2 - x1) for x in (left, right)]
    return min(ends) < bottom and max(ends) > top


COLOURS = {
    "ink": "#1c2430", "quiet": "#5b6675", "line": "#d5dae1", "right": "#0b65a8",
    "wrong": "#c2570c", "third": "#5d6b2f", "area": "#ffffff",
}  # fmt: skip
"""Blue and orange differ for every kind of colour vision; colour is never the only sign."""

MARKS = (
    ".chart text{font:11px -apple-system,'Segoe UI',Roboto,'Noto Sans','Liberation Sans',Arial,"
    "sans-serif;"
    "fill:var(--quiet)}.chart text.name{font-size:10.5px}.chart text.ink{fill:var(--ink)}"
    ".chart text.halo{paint-order:stroke;stroke:var(--area);stroke-width:3px}"
    ".chart .axis{stroke:var(--quiet)}.chart .grid{stroke:var(--line)}"
    ".chart .bar{fill:var(--right)}.chart .bad{fill:var(--wrong)}.chart .calm{fill:var(--quiet)}"
    ".chart .whisker{stroke:var(--ink);stroke-width:1.5}.chart .whisker.faint{opacity:.45}"
    ".chart .mark{stroke:var(--wrong);stroke-width:1.5;stroke-dasharray:4 3}"
    ".chart .trend{fill:none;stroke:var(--right);stroke-width:1.75}"
    ".chart .edge{fill:none;stroke:var(--third);stroke-width:1.5;stroke-dasharray:5 3}"
    ".chart .band{stroke:none;opacity:.14}.chart .band.trend{fill:var(--right)}"
    ".chart .band.edge{fill:var(--third)}"
    ".chart .dot{fill:var(--right)}.chart .dot.best{fill:var(--third)}.chart .hit{fill:transparent}"
    ".chart text.head{font-size:13px;font-weight:600}"
)
"""The style of marks, on a page and in a separate file."""


def alone(chart: Chart) -> str:
    """Make a chart a separate file: with its title, its colours, and how to read it."""
    style = MARKS
    for name, value in COLOURS.items():
        style = style.replace(f"var(--{name})", value)
    head, _, rest = chart.svg.partition(">")
    size = re.search(r'viewBox="0 0 (\d+) (\d+)"', head)
    assert size
    width, height = int(size[1]), int(size[2])
    said = wrapped(chart.note, width=int((width - 8) / CHAR)) if chart.note else []
    whole = HEAD + height + (LINE * len(said) + 9 if said else 0)
    opened = head.replace(size[0], f'viewBox="0 {-HEAD} {width} {whole}"')
    opened = opened.replace("<svg ", f'<svg width="{2 * width}" height="{2 * whole}" ', 1)
    back = (
        f'<rect y="{-HEAD}" width="100%" height="100%" fill="{COLOURS["area"]}"/>'
        f'<text class="ink head" x="4" y="-9">{escape(chart.title)}</text>'
    )
    note = "".join(
        f'<text x="4" y="{height + LINE * (1 + index)}">{escape(line)}</text>'
        for index, line in enumerate(said)
    )
    return f"{opened}><style>{style}</style>{back}{note}{rest}\n"
