"""Replies with their differences: long parts that are equal are folded, and so are long texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pennyweight.render.transcript.folds import HEAD_LINES, SPARE, TAIL_LINES

CONTEXT = 2
"""Lines beside a difference that stay visible."""
MIN_FOLDED = 4
"""Fewer equal lines are not folded."""


@dataclass(frozen=True, slots=True)
class ReplyPart:
    """A part of a reply: a difference or equal text, as it is or folded."""

    text: str
    differs: bool = False
    lines: int = 0
    """How many lines are folded; 0 if the part is shown."""
    equal: bool = False
    """Whether it is folded because the other reply has it too."""


def reply_parts(pieces: Sequence[tuple[str, bool]]) -> Iterator[ReplyPart]:
    r"""Fold equal lines that are away from differences, and the middle of any other long part.

    >>> text = "\n".join("abcdefgh") + "\n"
    >>> [(p.text, p.lines) for p in reply_parts([(text, False), ("x", True)])]
    [('a\nb\nc\nd\ne\nf\n', 6), ('g\nh\n', 0), ('x', 0)]
    """
    several = any(differs for _, differs in pieces)
    for number, (text, differs) in enumerate(pieces):
        lines = text.splitlines(keepends=True)
        equal = several and not differs
        if equal:
            first = CONTEXT + 1 if number else 0
            last = len(lines) - (CONTEXT if number < len(pieces) - 1 else 0)
        else:
            first, last = HEAD_LINES, len(lines) - TAIL_LINES
        if last - first < (MIN_FOLDED if equal else SPARE):
            yield ReplyPart(text, differs)
            continue
        for part, folded in ((lines[:first], 0), (lines[first:last], last - first),
                             (lines[last:], 0)):  # fmt: skip
            if part:
                yield ReplyPart("".join(part), differs, folded, equal and folded > 0)
