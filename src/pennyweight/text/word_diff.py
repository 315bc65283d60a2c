"""Words that two texts do not share, marked within a limit of time."""

from __future__ import annotations

import difflib
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MarkedWords = list[tuple[str, bool]]
"""Pieces of a text, and whether each differs from the other text."""

MAX_EQUAL_PAIRS = 1_000_000
"""Pairs of equal words that one step may compare; a larger step cannot be ended in time."""


class _OutOfTimeError(Exception):
    """A difference takes too long."""


@dataclass(slots=True)
class WordDiff:
    """Marks differences until its time is used up; later texts stay unmarked."""

    seconds: float = 1.0
    _until: float = field(init=False)

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.seconds

    def mark(self, first: str, second: str) -> tuple[MarkedWords, MarkedWords] | None:
        """Mark the words that are not in both texts; None where that takes too long.

        >>> WordDiff().mark("it is 7", "it is 8")
        ([('it is ', False), ('7', True)], [('it is ', False), ('8', True)])
        """
        words = [re.findall(r"\s+|\w+|[^\w\s]", text) for text in (first, second)]
        counts = [Counter(of_text) for of_text in words]
        if sum(n * counts[1][word] for word, n in counts[0].items()) > MAX_EQUAL_PAIRS:
            return None
        try:
            steps = _TimedMatcher(words[0], words[1], self._until).get_opcodes()
        except _OutOfTimeError:
            return None
        sides: tuple[MarkedWords, MarkedWords] = ([], [])
        for kind, a, b, c, d in steps:
            for side, part in zip(sides, (words[0][a:b], words[1][c:d]), strict=True):
                if part:
                    side.append(("".join(part), kind != "equal"))
        return sides


class _TimedMatcher(difflib.SequenceMatcher[str]):
    """A matcher that gives up: two texts that repeat a few words would take minutes."""

    def __init__(self, a: Sequence[str], b: Sequence[str], until: float) -> None:
        self.until = until
        super().__init__(None, a, b, autojunk=False)

    def find_longest_match(self, *args: Any, **more: Any) -> Any:
        if time.monotonic() > self.until:
            raise _OutOfTimeError
        return super().find_longest_match(*args, **more)
