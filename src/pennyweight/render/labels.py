"""Labels of charts: short enough for their room, and still told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from string import ascii_uppercase

from pennyweight.render.svg import CHAR, Drawing, cut

LINE = 13


def middle(text: object, width: int) -> str:
    """Cut a label in its middle, since names often differ at their ends.

    >>> middle("20261115-150951-9bfe", 11)
    '20261…-9bfe'
    """
    whole = cut(text, 10_000)
    if len(whole) <= width:
        return whole
    head = (width - 1) // 2
    return f"{whole[:head]}…{whole[len(whole) - (width - 1 - head) :]}"


def short_names(names: Sequence[str], width: int) -> dict[str, str]:
    """Shorten names so that no two become the same; letters where nothing else tells them apart.

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
        [middle(n, width) for n in every],
    )
    for way in ways:
        if way and len(set(way)) == len(every) and max(map(len, way)) <= width:
            return dict(zip(every, way, strict=True))
    return {n: letter(i) for i, n in enumerate(every)}


def letter(index: int) -> str:
    """Give a letter: A to Z, then A2 and so on."""
    turn, place = divmod(index, len(ascii_uppercase))
    return ascii_uppercase[place] + (str(turn + 1) if turn else "")


def legend(short: dict[str, str]) -> str:
    """Say what letters stand for, where names became letters."""
    told = [f"{s} is {cut(n, 60)}" for n, s in short.items() if not _told(n, s)]
    return f" {'; '.join(told)}." if told else ""


def _told(name: str, short: str) -> bool:
    return short == cut(name, 10_000) or "…" in short


@dataclass(slots=True)
class Places:
    """Labels of points that keep out of each other's way."""

    drawing: Drawing
    taken: list[tuple[float, float, float, float]] = field(default_factory=list)

    def put(self, x: float, y: float, text: str) -> None:
        """Write a label near a point: where there is room, right of it before left of it."""
        wide = len(text) * CHAR
        for step in (*range(0, 90, LINE), *range(-LINE, -90, -LINE)):
            for left, anchor in ((x + 8, "start"), (x - 8 - wide, "end")):
                base = y - 7 + step
                box = (left, base - LINE + 2, left + wide, base + 2)
                if self._free(box):
                    self.taken.append(box)
                    self.drawing.text(
                        x + (8 if anchor == "start" else -8), base, text, "ink halo", anchor
                    )
                    return

    def _free(self, box: tuple[float, float, float, float]) -> bool:
        inside = box[0] >= 0 and box[2] <= self.drawing.width and box[1] >= 0
        low = box[3] <= self.drawing.height - self.drawing.bottom
        apart = (
            box[2] <= a or c <= box[0] or box[3] <= b or d <= box[1] for a, b, c, d in self.taken
        )
        return inside and low and all(apart)
