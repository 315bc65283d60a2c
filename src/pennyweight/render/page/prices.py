"""Prices of passes compared, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pennyweight.scoring.estimates import Estimate
from pennyweight.text.format import count, money

CLOSE = 0.05
"""Prices that differ by less are called about the same."""
_PARTS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth", 6: "a sixth", 7: "a seventh",
          8: "an eighth", 9: "a ninth", 10: "a tenth"}  # fmt: skip


def compared_price(first: Estimate, second: Estimate) -> str:
    """Compare what a pass costs, as a clause about the second side.

    >>> exactly, about = Estimate(0.008, 0.008, 0.008), Estimate(0.001, 0.0004, 0.009)
    >>> compared_price(exactly, Estimate(0.001, 0.001, 0.001))
    ', which costs an eighth per pass'
    >>> compared_price(exactly, about)
    ', which costs $0.001 instead of $0.008 per pass (may be chance)'
    """
    mine, other = first.value, second.value
    if not isinstance(mine, float) or not isinstance(other, float) or mine == other == 0:
        return ""
    if math.isinf(other):
        return "" if math.isinf(mine) else f", which never passes; a pass costs {money(mine)}"
    if math.isinf(mine):
        return ""
    if math.isclose(mine, other, rel_tol=CLOSE):
        about = "" if mine == other else "about "
        return f", at {about}the same price: {money(mine)} per pass"
    if other < mine:
        return f", which costs {lower_price(second, first)}"
    return f", and costs {lower_price(first, second)}"


def lower_price(low: Estimate, high: Estimate) -> str:
    """Write a price as a part of a higher one; both as they are if their intervals overlap.

    >>> lower_price(Estimate(0.0, 0.0, 0.0), Estimate(0.01, 0.008, 0.012))
    'nothing instead of $0.01 per pass'
    """
    assert isinstance(low.value, float)
    assert isinstance(high.value, float)
    if low.value == 0:  # no attempt cost anything, so chance has no part in it
        return f"nothing instead of {money(high.value)} per pass"
    if isinstance(low.high, float) and isinstance(high.low, float) and low.high < high.low:
        return f"{fraction(low.value / high.value)} per pass"
    return f"{money(low.value)} instead of {money(high.value)} per pass (may be chance)"


def own_tasks(common: int, *sides: Mapping[str, Any]) -> str:
    """Say that prices are not of the same tasks, where sides tried others than the common ones."""
    tasks = {common, *(side["tasks"] for side in sides)}
    return "" if len(tasks) == 1 else " (each over its own tasks)"


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
