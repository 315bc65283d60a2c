"""Line-by-line differences of two texts, with a bounded amount of work.

Lines that occur once in both texts are matched first; the shortest change is computed between them.
Where that would take too long, the whole block is shown as replaced.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_STEPS = 3_000_000
"""Steps for all files of a workspace, which take about a second or two."""
MAX_DIFFERING_LINES = 600
"""Blocks that differ in more lines are shown as replaced. Memory grows with its square."""

Change = tuple[int, int, int, int]
"""A range of lines in the first text, and the range in the second that replaces it."""


@dataclass(slots=True)
class Effort:
    """The number of steps that remain."""

    left: int = MAX_STEPS


def changes(a: Sequence[str], b: Sequence[str], effort: Effort) -> Iterator[Change]:
    """Yield the blocks that differ, in order."""
    waiting = [(0, len(a), 0, len(b))]
    while waiting:
        i0, i1, j0, j1 = _trimmed(a, b, *waiting.pop())
        if i0 == i1 or j0 == j1:
            if (i0, j0) != (i1, j1):
                yield i0, i1, j0, j1
            continue
        effort.left -= i1 - i0 + j1 - j0
        if effort.left < 0:
            yield i0, i1, j0, j1
            continue
        anchors = _anchors(a, b, i0, i1, j0, j1)
        if anchors:
            starts = [(i0, j0), *((i + 1, j + 1) for i, j in anchors)]
            ends = [*anchors, (i1, j1)]
            between = [(i, k, j, m) for (i, j), (k, m) in zip(starts, ends, strict=True)]
            waiting += reversed(between)
        else:
            yield from _shortest(a, b, (i0, i1, j0, j1), effort)


def _trimmed(a: Sequence[str], b: Sequence[str], i0: int, i1: int, j0: int, j1: int) -> Change:
    """Leave out what is the same at both ends."""
    while i0 < i1 and j0 < j1 and a[i0] == b[j0]:
        i0, j0 = i0 + 1, j0 + 1
    while i0 < i1 and j0 < j1 and a[i1 - 1] == b[j1 - 1]:
        i1, j1 = i1 - 1, j1 - 1
    return i0, i1, j0, j1


def _anchors(
    a: Sequence[str], b: Sequence[str], i0: int, i1: int, j0: int, j1: int
) -> list[tuple[int, int]]:
    """Match the lines that occur once in both, as many as keep their order."""
    often_a, often_b = Counter(a[i0:i1]), Counter(b[j0:j1])
    at = {b[j]: j for j in range(j0, j1) if often_b[b[j]] == 1}
    pairs = [(i, at[a[i]]) for i in range(i0, i1) if often_a[a[i]] == 1 and a[i] in at]
    lowest: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, j) in enumerate(pairs):
        place = bisect_left(lowest, j)
        before.append(last[place - 1] if place else -1)
        if place == len(lowest):
            lowest.append(j)
            last.append(number)
        else:
            lowest[place], last[place] = j, number
    found = []
    number = last[-1] if last else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _shortest(
    a: Sequence[str], b: Sequence[str], block: Change, effort: Effort
) -> Iterator[Change]:
    """Find the fewest lines to remove and add (Myers); the whole block if that takes too long."""
    i0, i1, j0, j1 = block
    n, m = i1 - i0, j1 - j0
    front = {1: 0}
    past: list[dict[int, int]] = []
    for depth in range(min(n + m, MAX_DIFFERING_LINES) + 1):
        past.append(dict(front))
        effort.left -= depth + 1
        for k in range(-depth, depth + 1, 2):
            down = k == -depth or (k != depth and front[k - 1] < front[k + 1])
            x = begun = front[k + 1] if down else front[k - 1] + 1
            while x < n and x - k < m and a[i0 + x] == b[j0 + x - k]:
                x += 1
            front[k] = x
            effort.left -= x - begun
            if k == n - m and x >= n:
                yield from _joined(_steps(past, n, m), i0, j0)
                return
        if effort.left < 0:
            break
    yield block


def _steps(past: list[dict[int, int]], n: int, m: int) -> list[Change]:
    """Walk back from the end, with one line removed or added at each step."""
    found = []
    x, y = n, m
    for depth in range(len(past) - 1, 0, -1):
        front, k = past[depth], x - y
        down = k == -depth or (k != depth and front[k - 1] < front[k + 1])
        x = front[k + 1] if down else front[k - 1]
        y = x - (k + 1 if down else k - 1)
        found.append((x, x, y, y + 1) if down else (x, x + 1, y, y))
    return found[::-1]


def _joined(steps: list[Change], i0: int, j0: int) -> Iterator[Change]:
    """Join adjacent steps, and count them from the start of the texts."""
    block: Change | None = None
    for x0, x1, y0, y1 in steps:
        if block and (block[1], block[3]) == (x0 + i0, y0 + j0):
            block = (block[0], x1 + i0, block[2], y1 + j0)
        else:
            if block:
                yield block
            block = (x0 + i0, x1 + i0, y0 + j0, y1 + j0)
    if block:
        yield block
