"""What is read of arithmetic in running text: a value, with how it is written and its units."""

from __future__ import annotations

from dataclasses import dataclass

from pennyweight.text.rational import Ratio
from pennyweight.text.units import NONE, Units, mixed


@dataclass(slots=True)
class Value:
    """An expression that was read, or a part of one."""

    ratio: Ratio
    scale: int | None = None
    """Ten to the power of its decimal places, if it is one number as it is written."""
    percent: bool = False
    units: Units = NONE
    """Its units that can be converted."""
    rates: Units = NONE
    """The units that it is per, as in $12.50/hour."""
    first: Ratio | None = None
    """The first operand of a calculation."""
    fractions: tuple[object, ...] = ()
    """The texts of the numbers with decimal places in a calculation."""
    span: tuple[int, int] = (0, 0)
    rounded: bool = False
    """Whether it has a root that is no fraction, so that its last digits are not exact."""


def product(ratio: Ratio, a: Value, b: Value) -> Value | None:
    """Return a product or quotient with the units of both; None if a rate is per another unit.

    >>> from pennyweight.text.units import DIMENSIONS
    >>> rate, time = Value((60, 1), rates=DIMENSIONS["hour"]), Value((30, 1))
    >>> product((1800, 1), rate, time).ratio
    (1800, 1)
    >>> time.units = DIMENSIONS["minutes"]
    >>> product((1800, 1), rate, time) is None
    True
    """
    if mixed(a.rates, b.units) or mixed(b.rates, a.units):
        return None
    units = a.units | b.units
    return Value(ratio, units=units, rates=(a.rates | b.rates) - units)
