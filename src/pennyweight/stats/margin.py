"""Whether a side is no worse than another by more than a margin, or equivalent within it.

Equivalence is two one-sided tests (TOST): the difference is shown to be above the lower margin and
below the upper one, each at the level, which holds if the interval at 1 − 2 · level is inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pennyweight.stats.paired import Paired, interval
from pennyweight.stats.ratio import log_ratio_ends

Ends = Callable[[float], tuple[float, float] | None]


@dataclass(frozen=True, slots=True)
class MarginTest:
    """The interval that is held against a margin, and the tests of both of its ends."""

    low: float
    high: float
    p_above: float
    """The test of being at most the margin below."""
    p_below: float
    """The test of being at most the margin above."""

    @property
    def p_equivalent(self) -> float:
        """The test of being within the margin on both sides."""
        return max(self.p_above, self.p_below)


def margin_test(
    paired: Paired, margin: float, confidence: float, *, relative: bool
) -> MarginTest | None:
    """Test a difference against ± margin, or the ratio of means against 1 ± margin if `relative`.

    Each end of the interval is wrong with probability 1 − confidence. None if nothing varies.
    """
    if paired.tasks < 2 or paired.alike:
        return None
    log_margins = (math.log1p(-margin) if margin < 1 else -math.inf, math.log1p(margin))
    least, most = log_margins if relative else (-margin, margin)

    def ends(level: float) -> tuple[float, float] | None:
        found = log_ratio_ends if relative else interval
        return found(paired, 1 - 2 * level, one_sided=True)

    seen = ends(1 - confidence)
    if seen is None:
        return None
    low, high = (math.exp(end) for end in seen) if relative else seen
    return MarginTest(
        low,
        high,
        _touching(lambda level: _end(ends, level, 0) > least),
        _touching(lambda level: _end(ends, level, 1) < most),
    )


def _end(ends: Ends, level: float, which: int) -> float:
    found = ends(level)
    assert found is not None
    return found[which]


def _touching(shown: Callable[[float], bool]) -> float:
    """Return the smallest level at which something is shown; 0.5 or more if it is not even seen."""
    low, high = math.log(1e-12), math.log(0.5)
    if not shown(math.exp(high - 1e-9)):
        return 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if shown(math.exp(middle)) else (middle, high)
    return math.exp(high)
