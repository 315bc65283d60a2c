"""Rational numbers as pairs of whole numbers: exact, and quicker than fractions."""

from __future__ import annotations

from math import gcd, isqrt
from operator import index

Ratio = tuple[int, int]
"""A rational number: numerator and denominator, which is positive."""

LARGEST_POWER, LARGEST_ROOT = 64, 9
_DIGITS = 10**30


def written(value: Ratio) -> str:
    """Write a rational number in its lowest terms: `3`, `-1/2`.

    >>> written((4, 8)), written((6, 2))
    ('1/2', '3')
    """
    common = gcd(*value)
    top, bottom = value[0] // common, value[1] // common
    return str(top) if bottom == 1 else f"{top}/{bottom}"


def same(a: Ratio, b: Ratio) -> bool:
    """Whether two rational numbers are equal."""
    return a[0] * b[1] == b[0] * a[1]


def power(base: Ratio, exponent: Ratio) -> Ratio | None:
    """Return a power; None if the exponent is no whole number or the result is too large.

    >>> power((2, 3), (2, 1)), power((2, 1), (-1, 1)), power((2, 1), (1, 2))
    ((4, 9), (1, 2), None)
    """
    times, rest = divmod(exponent[0], exponent[1])
    top, bottom = base
    if rest or abs(times) > LARGEST_POWER or (times < 0 and top == 0):
        return None
    if max(abs(top), bottom).bit_length() * abs(times) > 4_096:
        return None
    if times < 0:
        top, bottom = (bottom, top) if top > 0 else (-bottom, -top)
    return top ** abs(times), bottom ** abs(times)


def root(value: Ratio, degree: Ratio = (2, 1)) -> tuple[Ratio, bool] | None:
    """Return a root and whether it is exact, else to 30 digits; None if there is none.

    >>> root((9, 4)), root((27, 8), (3, 1)), root((-1, 1))
    (((3, 2), True), ((3, 2), True), None)
    >>> root((2, 1))[0][0] // 10**27, root((2, 1))[1], root((2, 1), (3, 1))[0][0] // 10**27
    (1414, False, 1259)
    """
    times = index(degree[0])
    if value[0] < 0 or degree[1] != 1 or not 2 <= times <= LARGEST_ROOT:
        return None
    common = gcd(*value)
    top, bottom = (_whole_root(part // common, times) for part in value)
    if same((top**times, bottom**times), value):
        return (top, bottom), True
    return (_whole_root(value[0] * _DIGITS**times // value[1], times), _DIGITS), False


def _whole_root(value: int, times: int) -> int:
    """Return the largest whole number whose power is at most the value."""
    if times == 2 or value == 0:
        return isqrt(value)
    found = 1 << -(-value.bit_length() // times)  # above the root, from where the steps go down
    while (smaller := ((times - 1) * found + value // found ** (times - 1)) // times) < found:
        found = smaller
    return found
