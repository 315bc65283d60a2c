"""Words that two texts do not share, marked for as long as there is time for it."""

from __future__ import annotations

import difflib
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

Piece = tuple[str, bool]

SECONDS = 1.0
"""Time for all differences of a page."""
PAIRS = 1_000_000
"""Equal words that one step may look at: what takes longer cannot be ended in time."""


class _OutOfTimeError(Exception):
    """A difference takes too long."""


@dataclass(slots=True)
class Marker:
    """Marks the differences of a page; when its time is over the rest stays unmarked."""

    seconds: float = SECONDS
    _until: float = field(init=False)

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.seconds

    def mark(self, first: str, second: str) -> tuple[list[Piece], list[Piece]] | None:
        """Mark the words of two texts that are not in both; null where that takes too long.

        >>> Marker().mark("it is 7", "it is 8")
        ([('it is ', False), ('7', True)], [('it is ', False), ('8', True)])
        """
        words = [re.findall(r"\s+|\w+|[^\w\s]", text) for text in (first, second)]
        counts = [Counter(found) for found in words]
        if sum(n * counts[1][word] for word, n in counts[0].items()) > PAIRS:
            return None
        try:
            steps = _Timed(words[0], words[1], self._until).get_opcodes()
        except _OutOfTimeError:
            return None
        sides: tuple[list[Piece], list[Piece]] = ([], [])
        for kind, a, b, c, d in steps:
            for side, part in zip(sides, (words[0][a:b], words[1][c:d]), strict=True):
                if part:
                    side.append(("".join(part), kind != "equal"))
        return sides


class _Timed(difflib.SequenceMatcher[str]):
    """A matcher that gives up: two texts of few words, repeated, would keep it for minutes."""

    def __init__(self, a: Sequence[str], b: Sequence[str], until: float) -> None:
        self.until = until
        super().__init__(None, a, b, autojunk=False)

    def find_longest_match(self, *args: Any, **more: Any) -> Any:
        if time.monotonic() > self.until:
            raise _OutOfTimeError
        return super().find_longest_match(*args, **more)
