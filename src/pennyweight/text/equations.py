"""Equations in a chain of thought: found, read exactly, and checked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from pennyweight.text.arithmetic import LONGEST_LINE, Reader
from pennyweight.text.arithmetic_tokens import NumberOf, Token, tokens_of
from pennyweight.text.arithmetic_values import Value
from pennyweight.text.equation_plans import Equation, Plans
from pennyweight.text.rational import Ratio, same
from pennyweight.text.units import mixed

ABOUT = "≈"
SIGNS = r"=|≈|\\approx|equals|equal to"
"""What the sides of an equation are joined by."""
_SIGN = re.compile(SIGNS)
_BARE = frozenset({"number", "money", "percent", "minus", "end"})
_CONTINUED = re.compile(r"\n[ \t]*&?[ \t]*(?:[=≈]|\\approx)")
_BULLET = re.compile(r"[ \t]*(?:[-*•–]|\d+[.)]|\(\d+\))[ \t]+")

_OTHER = re.compile(r"(?i)[,;]? ?\\?\b[pb]?mod(?:ulo)?\b|(?:\bin |\()(?:base \d|binary|octal)")
"""Arithmetic of another kind: nothing from here to the end of the line is read."""


def equations(text: str) -> list[Equation]:
    """List the equations of a text that can be read with certainty.

    One side at least must be a calculation. It holds if both sides are equal, within half a unit of
    the last digit where a side is one number. `5 + 3 = 8 * 2 = 16` is read as two steps.

    >>> [e.holds for e in equations("5 + 3 = 8, so 8 * 2 = 17. 2x + 1 = 7. 10/3 = 3.33")]
    [True, False, True]
    """
    return [
        e
        for start, end in _lines(text)
        if end - start <= LONGEST_LINE
        for e in _PLANS.equations(text[start:end], start)
    ]


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Find the lines with an equals sign; a line that begins with one continues the line before."""
    end, continued = 0, _CONTINUED.search(text) is not None
    rare = "≈" in text or "equal" in text or "\\approx" in text
    while (at := _next(text, end) if rare else text.find("=", end)) >= 0:
        start = text.rfind("\n", end, at) + 1 or end
        if continued and start > end and _CONTINUED.match(text, start - 1):
            start = text.rfind("\n", end, start - 1) + 1 or end
        end = text.find("\n", at)
        while continued and end >= 0 and (more := _CONTINUED.match(text, end)):
            end = text.find("\n", more.end())
        if end < 0:
            end = len(text)
        yield start, end


def _next(text: str, start: int) -> int:
    found = _SIGN.search(text, start)
    return found.start() if found else -1


def of_line(line: str, number: NumberOf) -> Iterator[Equation]:
    """Read the equations of a line; their places are counted from its start."""
    bullet = _BULLET.match(line)
    sides: list[list[Token]] = [[]]
    links = ""
    other = _OTHER.search(line)
    end = other.start() if other else len(line)
    for token in tokens_of(line, bullet.end() if bullet else 0, end):
        if token.kind in {"equals", "about"}:
            sides.append([])
            links += ABOUT if token.kind == "about" else "="
        elif token.kind == "stop":
            yield from _compared(sides, links, number)
            sides, links = [[]], ""
        else:
            sides[-1].append(token)
    if other:  # what it is about is not read
        sides, links = sides[:-1], links[:-1]
    yield from _compared(sides, links, number)


_PLANS = Plans(of_line)


def _compared(sides: Sequence[list[Token]], links: str, number: NumberOf) -> Iterator[Equation]:
    """Compare each side with the next one, where both can be read."""
    before: Value | None = None
    """The calculation whose value the left side states, if it is a number and nothing else."""
    for (left, right), link in zip(pairwise(sides), links, strict=True):
        calculated, before = before, None
        reader = Reader(right, number)
        second = reader.beginning() if right else None
        first = Reader(left, number).end() if second and left else None
        if not first or not second:
            continue
        alone = second.first is None and _BARE.issuperset(reader.kinds)
        if _comparable(first, second, len(left)):
            calculated = first if first.first else second
            step = second.first and same(first.ratio, second.first)
            holds: bool | None = bool(step) or _near(first, second)
        elif calculated and alone and first.units == second.units:  # 3 + 4 = 7 = 8
            holds = _near(first, second) or _near(calculated, second)
            holds = None if first.percent != second.percent and not holds else holds
        else:
            continue
        if link == ABOUT and not holds:
            holds = _about(calculated, second)
        if holds is None:
            continue
        before = calculated if alone else None
        yield Equation(first.span[0], second.span[1], second.ratio, holds, calculated.ratio)


def _comparable(left: Value, right: Value, tokens: int) -> bool:
    """Whether an equation states that two values are equal, and a side is a calculation."""
    if mixed(left.units, right.units):
        return False
    if left.rounded or right.rounded:
        return left.scale is not None or right.scale is not None
    if left.first and right.first:
        return set(map(str, left.fractions)) == set(map(str, right.fractions))
    if left.first:
        return True
    # «3 shirts = 3 * 20» states a price; a number alone states a value
    return right.first is not None and tokens == 1


def _about(left: Value, right: Value) -> bool | None:
    """Whether a number is about a value: cut off or rounded it is.

    None if that cannot be told: it is an estimate by another calculation, or a number with at most
    one decimal place that is 10 % beside the value at most.
    """
    if right.scale is None or left.percent != right.percent:
        return None
    unit = (1, right.scale * (100 if right.percent else 1))
    if _within(left.ratio, right.ratio, unit):
        return True
    (a, b), (c, d) = left.ratio, right.ratio
    rough = right.scale < 100 and abs(a * d - c * b) * 10 <= abs(a * d)
    return None if rough else False


def _near(left: Value, right: Value) -> bool:
    """Whether two sides are equal, within half a unit of the last digit of one that is a number.

    If only one of them is in per cent, its sign may also be a unit: 5/20 * 100 = 25%.
    """
    number = left if right.scale is None else right
    tolerance = (0, 1) if number.scale is None else (1, 2 * number.scale)
    if number.percent:
        tolerance = tolerance[0], tolerance[1] * 100
    if _within(left.ratio, right.ratio, tolerance):
        return True
    if left.percent == right.percent:
        return False
    a, b = ((100 * v.ratio[0], v.ratio[1]) if v.percent else v.ratio for v in (left, right))
    if number.percent:
        tolerance = 100 * tolerance[0], tolerance[1]
    return _within(a, b, tolerance)


def _within(a: Ratio, b: Ratio, tolerance: Ratio) -> bool:
    return abs(a[0] * b[1] - b[0] * a[1]) * tolerance[1] <= tolerance[0] * a[1] * b[1]
