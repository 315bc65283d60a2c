"""Words that two texts do not share, marked within a limit of time."""

from __future__ import annotations

import difflib
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

MarkedWords = list[tuple[str, bool]]
"""Pieces of a text, and whether each differs from the other text."""

BothMarked = tuple[MarkedWords, MarkedWords]
"""Both texts in pieces."""

MAX_EQUAL_PAIRS = 1_000_000
"""Pairs of equal words that one step may compare; a larger step cannot be ended in time.

The words of texts with more are compared only within the lines that differ.
"""
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


class _OutOfTimeError(Exception):
    """A difference takes too long."""


@dataclass(slots=True)
class WordDiff:
    """Marks differences until its time is used up; later texts stay unmarked."""

    seconds: float = 1.0
    _until: float = field(init=False)

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.seconds

    def mark(self, first: str, second: str) -> BothMarked | None:
        """Mark the words that are not in both texts; None where that takes too long.

        >>> WordDiff().mark("it is 7", "it is 8")
        ([('it is ', False), ('7', True)], [('it is ', False), ('8', True)])
        """
        try:
            return self._by_words(first, second) or self._by_lines(first, second)
        except _OutOfTimeError:
            return None

    def _by_words(self, first: str, second: str) -> BothMarked | None:
        words = [_WORDS.findall(text) for text in (first, second)]
        return None if _has_too_many_pairs(*words) else self._marked(*words)

    def _by_lines(self, first: str, second: str) -> BothMarked | None:
        """Mark the words of the lines that differ; None where all lines do."""
        lines = [text.splitlines(keepends=True) for text in (first, second)]
        if _has_too_many_pairs(*lines):
            return None
        sides: BothMarked = ([], [])
        steps = _TimedMatcher(lines[0], lines[1], self._until).get_opcodes()
        for kind, a, b, c, d in steps:
            parts = "".join(lines[0][a:b]), "".join(lines[1][c:d])
            inner = self._by_words(*parts) if kind == "replace" else None
            for side, part, marked in zip(sides, parts, inner or ((), ()), strict=True):
                side.extend(marked or ([(part, kind != "equal")] if part else []))
        equal = any(kind == "equal" for kind, *_ in steps)
        return (_joined(sides[0]), _joined(sides[1])) if equal else None

    def _marked(self, first: Sequence[str], second: Sequence[str]) -> BothMarked:
        sides: BothMarked = ([], [])
        for kind, a, b, c, d in _TimedMatcher(first, second, self._until).get_opcodes():
            for side, part in zip(sides, (first[a:b], second[c:d]), strict=True):
                if part:
                    side.append(("".join(part), kind != "equal"))
        return sides


def _has_too_many_pairs(first: Sequence[str], second: Sequence[str]) -> bool:
    counts = Counter(first), Counter(second)
    return sum(n * counts[1][word] for word, n in counts[0].items()) > MAX_EQUAL_PAIRS


def _joined(pieces: MarkedWords) -> MarkedWords:
    """Join neighbours that differ, or do not, to one piece."""
    groups = groupby(pieces, key=lambda piece: piece[1])
    return [("".join(text for text, _ in group), differs) for differs, group in groups]


class _TimedMatcher(difflib.SequenceMatcher[str]):
    """A matcher that gives up: two texts that repeat a few words would take minutes."""

    def __init__(self, a: Sequence[str], b: Sequence[str], until: float) -> None:
        self.until = until
        super().__init__(None, a, b, autojunk=False)

    def find_longest_match(self, *args: Any, **more: Any) -> Any:
        if time.monotonic() > self.until:
            raise _OutOfTimeError
        return super().find_longest_match(*args, **more)
