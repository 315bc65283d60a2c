"""Numbers as people read them: the one place that writes counts, shares, money, times and ranges.

It lies below everything that writes a sentence, because the reasons of gates and checks contain
numbers too. `render/format.py` offers the same functions to commands and pages, together with
those that know how a metric is declared.

A unit is the text that a metric declares: `share` (0 to 1, written in percent), `US$`, `ms`,
`seconds`, or a word such as `tokens`. JSON and CSV for programs hold raw numbers instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pennyweight.text.notation import (
    DOLLARS,
    HUGE,
    MAX_PLACES,
    POINTS_NOTATION,
    SHARE,
    Notation,
    exact_places,
    fixed,
    largest_of,
    notation_of,
    significant_places,
    unit_word,
)

MISSING = "—"
TIMES = 1.5
"""From this quotient on an amount is so many times as much as another, below it so much more."""


def count(number: int | None) -> str:
    """Write a count.

    >>> count(12_345), count(None)
    ('12,345', '—')
    """
    return MISSING if number is None else f"{number:,}"


def plural(number: int, singular: str, several: str = "") -> str:
    """Write a count with its noun.

    >>> plural(1, "task"), plural(1_200, "task"), plural(2, "entry", "entries")
    ('1 task', '1,200 tasks', '2 entries')
    """
    return f"{number:,} {singular if number == 1 else several or singular + 's'}"


def share(value: float | None) -> str:
    """Write a share in percent; nothing but 0 and 1 is written as 0 and 100 %.

    >>> share(0.86), share(0.99962), share(0), share(None)
    ('86.0 %', '99.96 %', '0.0 %', '—')
    """
    return quantity(value, SHARE)


def points(difference: float | None, *, signed: bool = True) -> str:
    """Write a difference of shares.

    >>> points(0.123), points(-0.01), points(0.01, signed=False), points(0.00001)
    ('+12.3 points', '−1.0 points', '1.0 points', '0.0 points')
    """
    return MISSING if difference is None else POINTS_NOTATION.write(difference, 1, signed=signed)


def money(value: float | None) -> str:
    """Write an amount of dollars with at most three significant digits.

    >>> money(1_234.5), money(0.00142), money(45), money(0), money(-0.25), money(float("inf"))
    ('$1,230', '$0.00142', '$45', '$0', '−$0.25', '∞')
    """
    return quantity(value, DOLLARS)


def duration(milliseconds: float | None) -> str:
    """Write a time in the unit that suits it.

    >>> duration(3.42), duration(5_410), duration(31_240), duration(125_000), duration(7_260_000)
    ('3.42 ms', '5,410 ms', '31.2 s', '2 min 5 s', '2 h 1 min')
    """
    return quantity(milliseconds, "ms")


def probability(p: float | None) -> str:
    """Write a p-value in a column of p-values.

    >>> probability(0.0443), probability(0.44), probability(1.4e-9), probability(None)
    ('0.044', '0.440', '< 0.001', '—')
    """
    return MISSING if p is None else f"{p:.3f}" if p >= 0.001 else "< 0.001"


def p_value(p: float | None) -> str:
    """Write a p-value in a sentence.

    >>> p_value(0.0321), p_value(0.0001), p_value(None)
    ('p = 0.032', 'p < 0.001', 'without a test')
    """
    if p is None:
        return "without a test"
    return f"p = {p:.3f}" if p >= 0.001 else "p < 0.001"


def level(confidence: float) -> str:
    """Write a confidence level.

    >>> level(0.95), level(0.999)
    ('95 %', '99.9 %')
    """
    return f"{confidence * 100:g} %"


def ratio(quotient: float) -> str:
    """Write how much larger or smaller one amount is than another, given their quotient.

    >>> ratio(2.34), ratio(1.2), ratio(0.75), ratio(1_234)
    ('2.3 times as much', '20.0 % more', '25.0 % less', '1,234 times as much')
    """
    if quotient >= TIMES:
        return f"{number(quotient, 2)} times as much"
    return f"{share(abs(quotient - 1))} {'more' if quotient >= 1 else 'less'}"


def times(quotient: float | None, low: float | None = None, high: float | None = None) -> str:
    """Write a ratio of two amounts with its interval.

    >>> times(1.774, 1.733, 1.816), times(12.3, 9.876, 15.2), times(2), times(None)
    ('1.77 × (1.73 to 1.82)', '12.3 × (9.9 to 15.2)', '2.00 ×', '')
    """
    if quotient is None:
        return ""
    places = significant_places(quotient, 3)
    if low is None or high is None:
        return f"{fixed(quotient, places)} ×"
    return f"{fixed(quotient, places)} × ({fixed(low, places)} to {fixed(high, places)})"


def number(value: float | None, digits: int = 3) -> str:
    """Write a number with this many significant digits, or all digits of its whole part.

    >>> number(0.012345), number(2.7), number(1_234.5), number(0), number(-0.5)
    ('0.0123', '2.70', '1,234', '0', '−0.500')
    """
    return MISSING if value is None else fixed(value, significant_places(value, digits))


def tick(value: float, unit: str = "") -> str:
    """Write a number at an axis, as short as possible.

    >>> tick(1_500), tick(0.25), tick(2_000_000), tick(0.00004)
    ('1.5k', '0.25', '2M', '0.00004')
    >>> tick(0.5, "share"), tick(0.00025, "US$"), tick(2, "US$"), tick(0)
    ('50 %', '$0.00025', '$2', '0')
    """
    if unit == SHARE:
        return f"{tick(value * 100)} %"
    if unit == DOLLARS:
        return f"${tick(value)}"
    if abs(value) >= HUGE:
        return f"{value:.0e}".replace("-", "−")
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{tick(value / size)}{letter}"
    return fixed(value, min(significant_places(value, 3), exact_places(value)))


def tick_points(difference: float) -> str:
    """Write a difference of shares at an axis, in points.

    >>> tick_points(0.1), tick_points(-0.025), tick_points(0)
    ('+10', '−2.5', '0')
    """
    return f"{'+' if difference > 0 else ''}{tick(difference * 100)}"


def quantity(value: float | None, unit: str = "", *, largest: float = 0.0) -> str:
    """Write a measured value: a share, money or a time with its unit, anything else without.

    Values without a unit are scores, such as a calibration error: three decimal places up to 1.
    `largest` is the largest value of the same column, so that all times in it have one unit.

    >>> quantity(0.722, "share"), quantity(0.002239, "US$"), quantity(124.3, "tokens")
    ('72.2 %', '$0.00224', '124')
    >>> quantity(0.05634), quantity(10.92), quantity(1.0), quantity(0.00042)
    ('0.056', '10.9', '1.000', '0.0004')
    """
    if value is None:
        return MISSING
    notation = notation_of(unit, value, largest)
    return notation.write(value, notation.value_places(value))


def column(values: Sequence[float | None], unit: str = "") -> list[str]:
    """Write the values of one column, all times in the unit that suits the longest.

    >>> column([410.0, 31_240.0, None], "ms"), column([3_000.0, 125_000.0], "ms")
    (['0.410 s', '31.2 s', '—'], ['3 s', '2 min 5 s'])
    """
    largest = largest_of(*(value for value in values if value is not None))
    return [quantity(value, unit, largest=largest) for value in values]


def with_unit(value: float | None, unit: str = "") -> str:
    """Write a measured value in a sentence, with its unit.

    >>> with_unit(1, "tokens"), with_unit(1.5, "tokens"), with_unit(0.85, "share")
    ('1 token', '1.50 tokens', '85.0 %')
    """
    if isinstance(value, int) and unit_word(unit):
        return declared(value, unit)
    return f"{quantity(value, unit)} {unit_word(unit)}".strip()


def declared(value: float, unit: str = "") -> str:
    """Write a value that a person chose, such as a threshold, without rounding it.

    >>> declared(0.85, "share"), declared(0.9725, "share"), declared(0.0125, "US$")
    ('85.0 %', '97.25 %', '$0.0125')
    >>> declared(5_000, "ms"), declared(30_000, "ms"), declared(1, "tokens"), declared(0.05)
    ('5,000 ms', '30 s', '1 token', '0.05')
    """
    notation = replace(notation_of(unit, value), rounded=False) if unit else Notation()
    places = max(exact_places(value * notation.factor), notation.usual_places or 0)
    text = notation.write(value, places)
    word = unit_word(unit)
    return f"{text} {word.removesuffix('s') if text == '1' else word}".strip()


def declared_points(difference: float) -> str:
    """Write a difference of shares that a person chose, without rounding it.

    >>> declared_points(0.01), declared_points(0.025), declared_points(0.02)
    ('1 point', '2.5 points', '2 points')
    """
    text = fixed(difference * 100, exact_places(difference * 100))
    return f"{text} {'point' if text in {'1', '−1'} else 'points'}"


def difference(value: float | None, unit: str = "") -> str:
    """Write a difference of two values with its sign; of shares in points.

    >>> difference(0.123, "share"), difference(-0.0005, "US$"), difference(0.0, "ms")
    ('+12.3 points', '−$0.0005', '0 ms')
    """
    if value is None:
        return MISSING
    notation = POINTS_NOTATION if unit == SHARE else notation_of(unit, value)
    return notation.write(value, notation.value_places(value), signed=True)


def interval(
    low: float, high: float, unit: str = "", *, signed: bool = False, bare: bool = False
) -> str:
    """Write an interval; `signed` for a difference, `bare` without the unit, next to the value.

    >>> interval(0.714, 0.95, "share"), interval(0.714, 0.95, "share", bare=True)
    ('71.4 to 95.0 %', '71.4 to 95.0')
    >>> interval(-0.027, 0.335, "share", signed=True), interval(0.00128, 0.0151, "US$")
    ('−2.7 to +33.5 points', '$0.0013 to $0.0151')
    >>> interval(492, float("inf"), "ms")
    '492 ms to ∞'
    """
    largest = largest_of(low, high)
    notation = POINTS_NOTATION if signed and unit == SHARE else notation_of(unit, largest)
    return notation.ends(low, high, notation.end_places(low, high), signed=signed, bare=bare)


def estimate(
    value: float,
    low: float,
    high: float,
    unit: str = "",
    *,
    signed: bool = False,
    bare: bool = False,
    largest: float = 0.0,
) -> tuple[str, str]:
    """Write a value and its interval, so that no end looks like the value unless it is equal to it.

    An infinite value, such as the cost of a pass that never happened, has a lower bound only. A
    bare interval, for a narrow cell, has no unit, and small amounts have two digits.

    >>> estimate(0.722, 0.484, 0.863, "share"), estimate(1.0, 0.99962, 1.0, "share")
    (('72.2 %', '48.4 to 86.3 %'), ('100.0 %', '99.96 to 100.0 %'))
    >>> estimate(0.00142, 0.0011, 0.0023, "US$", bare=True)
    ('$0.00142', '0.0011 to 0.0023')
    >>> estimate(0.75, 0.0037, 0.99962, "share"), estimate(1 - 1e-15, 0.139451728, 1 - 1e-15)
    (('75.0 %', '0.4 to 99.96 %'), ('1.000', '0.139 to 1.000'))
    >>> estimate(float("inf"), 2.0, float("inf"), "US$")
    ('∞', 'more than $2.00')
    """
    if math.isinf(value):
        bound = f"more than {quantity(low, unit)}" if math.isfinite(low) else ""
        return quantity(value, unit), bound
    end = largest_of(low, high)
    size = largest_of(value, low, high)
    notation = POINTS_NOTATION if signed and unit == SHARE else notation_of(unit, size, largest)
    own, places = notation.value_places(value), list(notation.end_places(low, high))
    if notation.usual_places is None and bare and end < 0.1:
        places = [min(places[0], notation.places(low or high, 2))] * 2
    whole = value * notation.factor
    differing = [
        (index, e * notation.factor)
        for index, e in enumerate((low, high))
        if math.isfinite(e) and not math.isclose(e, value)  # sums are off in their last digits
    ]
    while max(places) < MAX_PLACES and any(
        round(whole, own) == round(e, places[index]) for index, e in differing
    ):
        own, places = own + 1, [n + 1 for n in places]
    ends = notation.ends(low, high, (places[0], places[1]), signed=signed, bare=bare)
    return notation.write(value, own, signed=signed), ends


def byte_count(number: int) -> str:
    """Write a size for people.

    >>> byte_count(820), byte_count(34_200), byte_count(1_250_000), byte_count(2_340_000_000)
    ('820 bytes', '34 kB', '1.2 MB', '2.3 GB')
    """
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= size:
            value = number / size
            return f"{value:,.1f} {unit}" if value < 10 and unit != "kB" else f"{value:,.0f} {unit}"
    return f"{number} bytes"
