"""The scales of charts, and the round numbers at their axes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

MIN_SPAN = 1e-300
"""Values that are closer to each other are drawn in one place."""


def ticks(low: float, high: float, about: int = 5, *, whole: bool = False) -> list[float]:
    """Choose round numbers between two ends; only integers if `whole`.

    >>> ticks(0, 9.3)
    [0.0, 2.0, 4.0, 6.0, 8.0]
    >>> ticks(0, 2, whole=True)
    [0.0, 1.0, 2.0]
    """
    if not high > low:
        return [low]
    step = _step(max(MIN_SPAN, high / about - low / about), whole=whole)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(float(i * step), 12) for i in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Choose round numbers for a logarithmic axis, a few for each power of ten.

    >>> log_ticks(0.003, 0.2)
    [0.005, 0.01, 0.02, 0.05, 0.1, 0.2]
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in ((1, 2, 5), (1, 3), (1,)):
        every = (float(f"{m}e{k}") for k in range(first, last + 1) for m in steps)
        inside = [tick for tick in every if low * 0.999 <= tick <= high * 1.001]
        if len(inside) <= 7:
            break
    return inside if len(inside) > 1 else [low, high]


def _step(raw: float, *, whole: bool) -> float:
    size = 10.0 ** math.floor(math.log10(raw))
    steps = (m * size for m in (1, 2, 2.5, 5, 10) if raw <= m * size * 1.0001)
    return max(1.0, next(s for s in steps if s % 1 == 0 or s < 1)) if whole else next(steps)


def top(high: float, about: int = 4) -> float:
    """Return the tick at or above the highest bar, at which an axis of counts ends.

    >>> top(1), top(9), top(21), top(130)
    (1.0, 10.0, 30.0, 150.0)
    """
    step = _step(max(high, 1.0) / about, whole=True)
    return step * math.ceil(high / step - 1e-9) or step


def around(values: Iterable[float], *, share: bool) -> tuple[float, float]:
    """Return the ends of an axis that shows what values cover; a share stays within 0 and 1.

    >>> around([0.62, 0.83], share=True), around([0.01, 0.99], share=True)
    ((0.6, 0.9), (0.0, 1.0))
    """
    known = list(values)
    low, high = min(known), max(known)
    step = _step(max(MIN_SPAN, (high - low) / 4 or abs(high) / 4 or 0.25), whole=False)
    low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
    low, high = (low, high) if high > low else (low - step, high + step)
    ends = (max(0.0, low), min(1.0, high)) if share else (low, high)
    return round(ends[0], 12), round(ends[1], 12)


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values to places, linearly or by their logarithm."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value; values outside the scale are placed at its edge."""
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            share = (math.log(max(value, self.low)) - low) / ((high - low) or 1.0)
            return round(self.start + min(1.0, share) * (self.end - self.start), 1)
        span = (self.high / 2 - self.low / 2) or 1.0  # half of it, so that nothing overflows
        share = min(1.0, max(0.0, (value / 2 - self.low / 2) / span))
        return round(self.start + share * (self.end - self.start), 1)
