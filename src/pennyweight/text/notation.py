"""How the numbers of one unit are written: how many digits, and which signs around them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

SHARE = "share"
POINTS = "points"
DOLLARS = "US$"
COUNT = "count"
_MILLISECONDS = {"ms": 1.0, "seconds": 1_000.0}
_SECONDS_FROM, _MINUTES_FROM, _HOURS_FROM = 10_000.0, 120_000.0, 7_200_000.0
"""The milliseconds from which a time is written in seconds, minutes and hours."""
HUGE = 1e15
"""Numbers from this size on are written with an exponent."""
MAX_PLACES = 9
"""Numbers that agree in this many decimal places are written alike."""


@dataclass(frozen=True, slots=True)
class Notation:
    """How the values of one unit are written."""

    factor: float = 1.0
    prefix: str = ""
    suffix: str = ""
    usual_places: int | None = None
    """The usual number of decimal places; None for significant digits."""
    rounded: bool = False
    """Whether the whole part, too, is rounded to the significant digits."""
    clock: bool = False
    """Whether values are milliseconds to be written in minutes or hours."""

    def value_places(self, value: float) -> int:
        """Choose the decimal places of a value by itself; an amount of money is not padded."""
        places = self.places(value)
        if self.rounded:
            while places > 2 and round(value, places - 1) == round(value, places):
                places -= 1
            if places == 1 and round(value) == round(value, 1):
                places = 0
        return places

    def end_places(self, low: float, high: float) -> tuple[int, int]:
        """Choose the decimal places of an interval's ends: the same, unless places are usual."""
        if self.usual_places is not None:
            return self.places(low), self.places(high)
        if math.isinf(low) or math.isinf(high):
            return (self.value_places(largest_of(low, high)),) * 2
        return (self.places(largest_of(low, high)),) * 2

    def places(self, value: float, digits: int = 3) -> int:
        """Choose the decimal places of a value: enough to tell it from 0 and from the whole."""
        if self.usual_places is None:
            return significant_places(value * self.factor, digits)
        places = self.usual_places
        while (
            places < MAX_PLACES
            and not (value == 0 or math.isclose(value, 1))  # sums are off in their last digits
            and (round(value * self.factor, places) in {0, self.factor})
        ):
            places += 1
        return places

    def write(self, value: float, places: int, *, signed: bool = False, bare: bool = False) -> str:
        """Write a value with its sign and unit."""
        if self.clock and math.isfinite(value):
            text = _clock(abs(value) * self.factor)
        else:
            text = self._digits(abs(value) * self.factor, places)
            if not bare and math.isfinite(value):
                text = f"{self.prefix}{text}{self.suffix}"
        zero = not any(sign in text for sign in "123456789∞")
        return text if zero else f"{'−' if value < 0 else '+' if signed else ''}{text}"

    def _digits(self, size: float, places: int) -> str:
        if self.usual_places is not None and round(size, self.usual_places) == round(size, places):
            places = self.usual_places
        if self.rounded and 1_000 <= size < math.inf:
            size = float(f"{size:.2e}")
        return fixed(size, places)

    def ends(
        self, low: float, high: float, places: tuple[int, int], *, signed: bool, bare: bool
    ) -> str:
        """Write an interval; a unit that follows its number is written once."""
        once = bool(self.suffix) and not self.clock and math.isfinite(low) and math.isfinite(high)
        first = replace(self, suffix="") if once else self
        return " to ".join(
            notation.write(end, digits, signed=signed, bare=bare)
            for notation, end, digits in zip((first, self), (low, high), places, strict=True)
        )


POINTS_NOTATION = Notation(100.0, suffix=" points", usual_places=1)


def notation_of(unit: str, size: float, largest: float = 0.0) -> Notation:
    """Choose how a value of this size is written in a column whose largest value is given."""
    if unit in {SHARE, POINTS}:
        return POINTS_NOTATION if unit == POINTS else Notation(100.0, suffix=" %", usual_places=1)
    if unit == DOLLARS:
        return Notation(prefix="$", rounded=True)
    if unit == COUNT:
        return Notation(usual_places=0)
    if unit in _MILLISECONDS:
        factor = _MILLISECONDS[unit]
        milliseconds = largest_of(size, largest) * factor
        if milliseconds < _SECONDS_FROM:
            return Notation(factor, suffix=" ms")
        if milliseconds < _MINUTES_FROM:
            return Notation(factor / 1_000, suffix=" s")
        return Notation(factor, clock=True)
    return Notation(usual_places=3) if not unit and abs(size) <= 1 else Notation()


def unit_word(unit: str) -> str:
    """Return the unit if it is a word, and not already part of how a value is written."""
    return "" if unit in {SHARE, POINTS, DOLLARS, COUNT, *_MILLISECONDS} else unit


def largest_of(*values: float) -> float:
    """Return the largest finite size among values; 0 if there is none."""
    return max((abs(value) for value in values if math.isfinite(value)), default=0.0)


def significant_places(value: float, digits: int) -> int:
    """Return the decimal places with which a number has this many significant digits."""
    if value == 0 or not math.isfinite(value):
        return 0
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    return max(0, digits - 1 - exponent)


def exact_places(value: float) -> int:
    """Return the decimal places that a number has, as far as its rounding errors do not count."""
    return next((n for n in range(MAX_PLACES) if math.isclose(round(value, n), value)), MAX_PLACES)


def fixed(value: float, places: int) -> str:
    """Write a number with this many decimal places."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return (f"{value:.2e}" if abs(value) >= HUGE else f"{value:,.{places}f}").replace("-", "−")


def _clock(milliseconds: float) -> str:
    """Write a long time in its two largest units.

    >>> _clock(125_000), _clock(7_200_000), _clock(1e300), _clock(float("inf"))
    ('2 min 5 s', '2 h 0 min', '2.78e+293 h', '∞ h')
    """
    if milliseconds >= HUGE * 3_600_000:
        return f"{fixed(milliseconds / 3_600_000, 0)} h"
    seconds = round(milliseconds / 1_000)
    if seconds < 60:
        return f"{seconds} s"
    if milliseconds < _HOURS_FROM:
        return f"{seconds // 60:,} min {seconds % 60} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60:,} h {minutes % 60} min"
