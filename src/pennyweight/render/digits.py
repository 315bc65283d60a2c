"""Digits enough that rounding makes no end of an interval look like its value."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pennyweight.scoring.estimates import Value

MOST = 9
"""What differs only beyond so many digits is the same."""


def digits_apart(
    value: Value, ends: Iterable[Value], fewest: int, write: Callable[[float, int], str]
) -> int:
    """Find the fewest digits with which every end that differs from the value is written otherwise.

    >>> digits_apart(1.0, (0.99962, 1.0), 3, decimals), digits_apart(1.0, (0.72, 1.0), 3, decimals)
    (4, 3)
    """
    if not isinstance(value, float):
        return fewest
    floats = [end for end in ends if isinstance(end, float)]

    def apart(digits: int) -> set[float]:
        return {end for end in floats if write(end, digits) != write(value, digits)}

    wanted = apart(MOST)
    return next((n for n in range(fewest, MOST) if apart(n) >= wanted), MOST)


def decimals(value: float, digits: int, usual: int = 3) -> str:
    """Write a share with so many digits; zeros beyond the usual number are dropped.

    >>> decimals(0.99962, 4), decimals(1.0, 4), decimals(0.5, 3)
    ('0.9996', '1.000', '0.500')
    """
    text, short = f"{value:.{digits}f}", f"{value:.{usual}f}"
    return short if digits > usual and float(short) == float(text) else text
