"""Long texts in three parts, of which the middle one is folded; and texts that are cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

NOTHING = Markup("")
HEAD_LINES, TAIL_LINES = 28, 8
"""How many lines of the start and the end of a folded text stay visible."""
SPARE = 12
"""A text is folded if that hides more lines than this."""
LINE = 100
"""Characters that count as one line of the screen."""


@dataclass(frozen=True, slots=True)
class Folded:
    """HTML in three parts, of which the middle one is folded; `cut` if the end is left out."""

    head: Markup
    middle: Markup = NOTHING
    tail: Markup = NOTHING
    hidden: int = 0
    """How many lines the middle part has."""
    cut: bool = False
    text: bool = False
    """Whether it is plain text, whose white space counts."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of HTML that stays whole, and how many lines of the screen it takes."""

    html: Markup
    lines: int
    folded: bool = False
    """Whether its own middle is folded."""


def lines_of(text: str) -> int:
    r"""Return how many lines of the screen a text takes, roughly.

    >>> lines_of("a\nb"), lines_of("x" * 1_600)
    (2, 16)
    """
    return sum(max(1, -(-len(line) // LINE)) for line in text.split("\n"))


def fitting(blocks: Iterable[Block], most: int) -> tuple[list[Block], bool]:
    """Return the first blocks that fit into a number of bytes, and whether some did not."""
    found: list[Block] = []
    for block in blocks:
        most -= len(block.html.encode("utf-8", "replace"))
        if most < 0:
            return found, True
        found.append(block)
    return found, False


def fitting_end(blocks: Iterable[Block], most: int) -> tuple[list[Block], bool]:
    """Return the last blocks that fit into a number of bytes, and whether some did not."""
    found, more = fitting(list(blocks)[::-1], most)
    return found[::-1], more


def fold(
    blocks: Sequence[Block], *, cut: bool = False, head: int = HEAD_LINES, tail: int = TAIL_LINES
) -> Folded:
    """Fold the middle of a long text. A text that is cut shows no end."""
    if sum(block.lines for block in blocks) <= head + tail + SPARE:
        return Folded(_joined(blocks), cut=cut)
    first, shown = 0, 0
    while first < len(blocks) and (shown < head or not first):
        shown += blocks[first].lines
        first += 1
    last, shown = len(blocks), 0
    while not cut and last > first and shown + blocks[last - 1].lines <= tail:
        last -= 1
        shown += blocks[last].lines
    hidden = sum(block.lines for block in blocks[first:last])
    if not hidden:
        return Folded(_joined(blocks), cut=cut)
    middle, end = _joined(blocks[first:last]), _joined(blocks[last:])
    return Folded(_joined(blocks[:first]), middle, end, hidden, cut)


def _joined(blocks: Iterable[Block]) -> Markup:
    return Markup("").join(block.html for block in blocks)
