"""Draw charts as SVG: scales, axes and marks. Colours are classes, so a page's theme decides."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

from pennyweight.text.safe import clean

WIDTH, HEIGHT = 420, 240
HEAD = 26
"""Room for the title of a chart that stands alone."""
CHAR = 5.9
"""About how wide a character is at the charts' size of type."""
FINGER = 30
"""How large an area a finger needs, in a chart that a phone shows a little smaller."""

Hit = tuple[float, float, float, float]
"""Left, top, width and height of what can be hit."""


def ticks(low: float, high: float, about: int = 5, *, whole: bool = False) -> list[float]:
    """Choose round numbers between two ends; `whole` ones where what is counted has no halves.

    >>> ticks(0, 9.3)
    [0.0, 2.0, 4.0, 6.0, 8.0]
    >>> ticks(0, 2, whole=True)
    [0.0, 1.0, 2.0]
    """
    if not high > low:
        return [low]
    step = _step((high - low) / about, whole=whole)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(float(i * step), 12) for i in range(first, last + 1)]


def _step(raw: float, *, whole: bool) -> float:
    size = 10.0 ** math.floor(math.log10(raw))
    steps = (m * size for m in (1, 2, 2.5, 5, 10) if raw <= m * size * 1.0001)
    return max(1.0, next(s for s in steps if s % 1 == 0 or s < 1)) if whole else next(steps)


def top(high: float, about: int = 4) -> float:
    """Give the tick at which an axis of counts ends, so that no bar rises above the last.

    >>> top(1), top(9), top(21), top(130)
    (1.0, 10.0, 30.0, 150.0)
    """
    step = _step(max(high, 1.0) / about, whole=True)
    return step * math.ceil(high / step - 1e-9) or step


def cut(text: object, width: int) -> str:
    """Clean a label and cut it to so many characters."""
    flat = " ".join(clean(str(text)).split()) or "—"
    return flat if len(flat) <= width else flat[: width - 1] + "…"


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values to places, linearly."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Give the place of a value; what lies outside stays at the edge."""
        span = (self.high - self.low) or 1.0
        share = min(1.0, max(0.0, (value - self.low) / span))
        return round(self.start + share * (self.end - self.start), 1)


@dataclass(slots=True)
class Drawing:
    """A chart in the making."""

    label: str
    width: int = WIDTH
    height: int = HEIGHT
    left: int = 44
    right: int = 12
    top: int = 10
    bottom: int = 34
    parts: list[str] = field(default_factory=list)

    def x(self, low: float, high: float) -> Scale:
        """Make the scale of the horizontal axis."""
        return Scale(low, high, self.left, self.width - self.right)

    def y(self, low: float, high: float) -> Scale:
        """Make the scale of the vertical axis."""
        return Scale(low, high, self.height - self.bottom, self.top)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Draw a straight line."""
        self.parts.append(f'<line class="{kind}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>')

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        kind: str,
        *,
        title: str = "",
        href: str | None = None,
        opacity: float | None = None,
        hit: Hit | None = None,
    ) -> None:
        """Draw a rectangle; `title` is shown on pointing at it, `href` is where it leads.

        `hit` is the area that can be hit, where the mark itself is too small for a finger.
        """
        seen = f' fill-opacity="{opacity:.2f}"' if opacity is not None else ""
        shape = (
            f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{max(width, 0):.5g}" '
            f'height="{max(height, 0):.5g}"{seen}>{_title(title)}</rect>'
        )
        self.parts.append(_linked(shape, href, title, hit))

    def dot(
        self,
        x: float,
        y: float,
        kind: str,
        *,
        r: float = 4,
        title: str = "",
        href: str | None = None,
        hit: Hit | None = None,
    ) -> None:
        """Draw a point; it can be hit from some way off."""
        shape = f'<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="{r:g}">{_title(title)}</circle>'
        near = (x - FINGER / 2, y - FINGER / 2, FINGER, FINGER)
        self.parts.append(_linked(shape, href, title, hit or near))

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
        self, scale: Scale, write: Callable[[float], str], title: str = "", about: int = 5
    ) -> None:
        """Draw the horizontal axis."""
        base = self.height - self.bottom
        self.line(self.left, base, self.width - self.right, base, "axis")
        for tick in ticks(scale.low, scale.high, about):
            self.text(scale(tick), base + 13, write(tick), anchor="middle")
        if title:
            middle = (self.left + self.width - self.right) / 2
            self.text(middle, self.height - 5, title, "name", "middle")

    def y_axis(
        self, scale: Scale, write: Callable[[float], str], title: str = "", *, whole: bool = False
    ) -> None:
        """Draw the vertical axis with its grid; its title stands above it."""
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


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""


def _linked(shape: str, href: str | None, title: str, hit: Hit | None = None) -> str:
    """Make a mark lead somewhere. Keys reach the same place through the table below the chart."""
    if not href:
        return shape
    if hit:
        x, y, width, height = hit
        shape = (
            f'<rect class="hit" x="{x:g}" y="{y:g}" width="{width:.5g}" height="{height:.5g}">'
            f"{_title(title)}</rect>{shape}"
        )
    return f'<a href="{escape(href)}" tabindex="-1" aria-label="{escape(title)}">{shape}</a>'


PALETTE = {
    "light": {"ink": "#1c2430", "quiet": "#5b6675", "line": "#d5dae1", "right": "#0b65a8",
              "wrong": "#c2570c", "third": "#5d6b2f", "area": "#ffffff"},
    "dark": {"ink": "#e4e8ee", "quiet": "#98a3b3", "line": "#333c49", "right": "#5aabe6",
             "wrong": "#f08c42", "third": "#b2c26d", "area": "#151a21"},
}  # fmt: skip
"""Blue and orange keep apart for every kind of colour vision; signs and words say the same."""

MARKS = (
    ".chart text{font:11px -apple-system,'Segoe UI',Roboto,'Noto Sans','Liberation Sans',Arial,"
    "sans-serif;"
    "fill:var(--quiet)}.chart text.name{font-size:10.5px}.chart text.ink{fill:var(--ink)}"
    ".chart text.halo{paint-order:stroke;stroke:var(--area);stroke-width:3px}"
    ".chart .axis{stroke:var(--quiet)}.chart .grid{stroke:var(--line)}"
    ".chart .bar{fill:var(--right)}.chart .bad{fill:var(--wrong)}.chart .calm{fill:var(--quiet)}"
    ".chart .whisker{stroke:var(--ink);stroke-width:1.5}"
    ".chart .mark{stroke:var(--wrong);stroke-width:1.5;stroke-dasharray:4 3}"
    ".chart .trend{fill:none;stroke:var(--right);stroke-width:1.75}"
    ".chart .edge{fill:none;stroke:var(--third);stroke-width:1.5;stroke-dasharray:5 3}"
    ".chart .dot{fill:var(--right)}.chart .dot.best{fill:var(--third)}.chart .hit{fill:transparent}"
    ".chart text.head{font-size:13px;font-weight:600}"
)
"""How marks look; the page's style sheet and a chart on its own both use it."""


def alone(svg: str, title: str = "", theme: str = "light") -> str:
    """Make a chart a file of its own, with its title and the colours written in."""
    colours = PALETTE[theme]
    style = MARKS
    for name, value in colours.items():
        style = style.replace(f"var(--{name})", value)
    head, _, rest = svg.partition(">")
    size = re.search(r'viewBox="0 0 (\d+) (\d+)"', head)
    assert size
    width, height = int(size[1]), int(size[2])
    whole = height + (HEAD if title else 0)
    opened = head.replace(size[0], f'viewBox="0 {height - whole} {width} {whole}"')
    opened = opened.replace("<svg ", f'<svg width="{2 * width}" height="{2 * whole}" ', 1)
    back = (
        f'<rect y="{height - whole}" width="100%" height="100%" fill="{colours["area"]}"/>'
        f'<text class="ink head" x="4" y="-9">{escape(title)}</text>'
    )
    return f"{opened}><style>{style}</style>{back}{rest}\n"
