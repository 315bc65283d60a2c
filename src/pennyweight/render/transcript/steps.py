"""Wrong steps in a text: equations that do not hold, each with the value that was computed."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext

from pennyweight.render.transcript.markdown import WRONG, MarkedText
from pennyweight.text.equations import equations
from pennyweight.text.rational import Ratio, written


def with_wrong_steps(pieces: Sequence[MarkedText]) -> list[MarkedText]:
    """Mark the equations that do not hold, in what has no other mark.

    >>> with_wrong_steps([("So 5 + 3 = 9, ", ""), ("9", "found")])
    [('So ', ''), ('5 + 3 = 9', 'wrong:computed: 8'), (', ', ''), ('9', 'found')]
    """
    found: list[MarkedText] = []
    for text, kind in pieces:
        done = 0
        for one in () if kind else equations(text):
            if not one.holds and one.start >= done:
                found.append((text[done : one.start], ""))
                found.append((text[one.start : one.end], f"{WRONG}{_value(one.computed)}"))
                done = one.end
        found.append((text[done:], kind))
    return [piece for piece in found if piece[0]]


def _value(value: Ratio) -> str:
    """Write a computed value as a decimal number, or as a fraction and about."""
    whole = written(value)
    if "/" not in whole:
        return f"computed: {whole}"
    with localcontext(prec=6):
        about = Decimal(value[0]) / Decimal(value[1])
        exact = about * Decimal(value[1]) == Decimal(value[0])
    return f"computed: {about.normalize():f}" if exact else f"computed: about {about:f}"
