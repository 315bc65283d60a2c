"""Replies with their differences: long parts that are equal are folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

CONTEXT = 2
"""Lines beside a difference that stay visible."""
MIN_FOLDED = 4
"""Fewer equal lines are not folded."""


@dataclass(frozen=True, slots=True)
class ReplyPart:
    """A part of a reply: a difference, equal text, or equal lines that are folded."""

    text: str
    differs: bool = False
    lines: int = 0
    """How many lines are folded; 0 if the part is shown."""


def reply_parts(pieces: Sequence[tuple[str, bool]]) -> Iterator[ReplyPart]:
    r"""Fold equal lines that are away from differences.

    >>> text = "\n".join("abcdefgh") + "\n"
    >>> [(p.text, p.lines) for p in reply_parts([(text, False), ("x", True)])]
    [('a\nb\nc\nd\ne\nf\n', 6), ('g\nh\n', 0), ('x', 0)]
    """
    several = any(differs for _, differs in pieces)
    for number, (text, differs) in enumerate(pieces):
        if differs or not several:
            yield ReplyPart(text, differs)
            continue
        lines = text.splitlines(keepends=True)
        first = CONTEXT + 1 if number else 0
        last = len(lines) - (CONTEXT if number < len(pieces) - 1 else 0)
        if last - first < MIN_FOLDED:
            yield ReplyPart(text)
            continue
        for part, folded in ((lines[:first], 0), (lines[first:last], last - first),
                             (lines[last:], 0)):  # fmt: skip
            if part:
                yield ReplyPart("".join(part), lines=folded)
