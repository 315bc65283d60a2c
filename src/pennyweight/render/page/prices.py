"""Prices of passes compared, in words."""

from __future__ import annotations

import math

from pennyweight.text.format import count, money

CLOSE = 0.05
"""Prices that differ by less are called about the same."""
_PARTS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth", 6: "a sixth", 7: "a seventh",
          8: "an eighth", 9: "a ninth", 10: "a tenth"}  # fmt: skip


def compared_price(first: float | None, second: float | None) -> str:
    """Compare what a pass costs, as a clause about the second side.

    >>> compared_price(0.008, 0.001), compared_price(0.001, 0.0024)
    (', which costs an eighth per pass', ', and costs 58 % less per pass')
    """
    if first is None or second is None or not first or not second:
        return ""
    if math.isinf(second):
        return "" if math.isinf(first) else f", which never passes; a pass costs {money(first)}"
    if math.isinf(first):
        return ""
    if math.isclose(first, second, rel_tol=CLOSE):
        about = "" if first == second else "about "
        return f", at {about}the same price: {money(first)} per pass"
    if second < first:
        return f", which costs {fraction(second / first)} per pass"
    return f", and costs {fraction(first / second)} per pass"


def fraction(share: float) -> str:
    """Write what part of another amount an amount is.

    >>> fraction(0.126), fraction(0.8), fraction(0.002)
    ('an eighth', '20 % less', '1/500 as much')
    """
    if share > 0.55:
        return f"{max(1, round(100 * (1 - share)))} % less"
    whole = round(1 / share)
    close = abs(1 / share - whole) <= 0.12 * whole / 2
    if whole in _PARTS and close:
        return _PARTS[whole]
    return f"1/{count(whole)} as much" if whole > 10 else f"{round(100 * (1 - share))} % less"
