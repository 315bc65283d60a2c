"""Prices of passes compared, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pennyweight.scoring.estimates import Estimate
from pennyweight.text.format import count, money, ratio

_PARTS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth", 6: "a sixth", 7: "a seventh",
          8: "an eighth", 9: "a ninth", 10: "a tenth"}  # fmt: skip


def lower_price(low: Estimate, high: Estimate) -> str:
    """Write how much less a pass costs than another, with both prices; "" unless that is shown.

    It is shown where the intervals do not overlap, or where no attempt cost anything.

    >>> lower_price(Estimate(0.00115, 0.001, 0.0014), Estimate(0.0419, 0.036, 0.052))
    '1/36 as much per pass: $0.00115 instead of $0.0419'
    >>> lower_price(Estimate(0.0, 0.0, 0.0), Estimate(0.01, 0.008, 0.012))
    'nothing per pass instead of $0.01'
    >>> lower_price(Estimate(0.008, 0.006, 0.011), Estimate(0.01, 0.008, 0.012))
    ''
    """
    if not _apart(low, high):
        return ""
    if low.value == 0:
        return f"nothing per pass instead of {money(_number(high))}"
    part = fraction(_number(low) / _number(high))
    return f"{part} per pass: {money(_number(low))} instead of {money(_number(high))}"


def higher_price(high: Estimate, low: Estimate) -> str:
    """Write how much more a pass costs than another, with both prices; "" unless that is shown.

    >>> higher_price(Estimate(0.0419, 0.036, 0.052), Estimate(0.0168, 0.014, 0.02))
    '2.5 times as much per pass: $0.0419 instead of $0.0168'
    """
    if not _apart(low, high):
        return ""
    if low.value == 0:
        return f"{money(_number(high))} per pass instead of nothing"
    times = ratio(_number(high) / _number(low))
    return f"{times} per pass: {money(_number(high))} instead of {money(_number(low))}"


MISSING_DECIDE = " (missing results decide)"
"""Follows two prices of which one is shown to be lower only if missing results are left out."""


def with_missing(price: Estimate, rate: Estimate, attempts: int) -> Estimate:
    """Let the interval of a price reach down to what it were had all missing results passed.

    `rate` is the pass rate, over those of the attempts that have a verdict. Where all missing
    results failed, the price is the same: what they cost counts.

    >>> with_missing(Estimate(0.03, 0.02, 0.04), Estimate(0.5, records=20), 30)
    Estimate(value=0.03, low=0.01, high=0.04, records=0, skipped=0, skewed=False, lacks=())
    """
    missing = attempts - rate.records
    if missing <= 0 or not rate.value or not isinstance(price.low, float):
        return price
    passes = rate.value * rate.records
    return replace(price, low=price.low * passes / (passes + missing))


def both_prices(first: Estimate, second: Estimate) -> str:
    """Write two prices of which neither is shown to be lower.

    >>> both_prices(Estimate(0.0465, 0.04, 0.06), Estimate(0.0474, 0.04, 0.06))
    '$0.0465 against $0.0474 (intervals overlap)'
    >>> both_prices(Estimate(0.01, 0.01, 0.01), Estimate(0.01, 0.01, 0.01))
    '$0.01 on both sides'
    """
    mine, other = money(_number(first)), money(_number(second))
    if mine == other:
        return f"{mine} on both sides"
    if first.low is None or second.low is None or _apart(first, second) or _apart(second, first):
        return f"{mine} against {other}"
    return f"{mine} against {other} (intervals overlap)"


def price_range(prices: Sequence[Estimate]) -> str:
    """Write the lowest and the highest of several prices.

    >>> price_range([Estimate(0.06), Estimate(0.028)]), price_range([Estimate(2.0), Estimate(2.0)])
    ('$0.028 to $0.06', '$2.00')
    """
    ends = [money(end(map(_number, prices))) for end in (min, max)]
    return " to ".join(dict.fromkeys(ends))


def _apart(low: Estimate, high: Estimate) -> bool:
    """Whether a price is shown to be below another one, which is finite."""
    if not 0 <= _number(low) < _number(high) < math.inf:
        return False
    if low.value == 0:  # no attempt cost anything, so chance has no part in it
        return True
    return isinstance(low.high, float) and isinstance(high.low, float) and low.high < high.low


def _number(price: Estimate) -> float:
    assert isinstance(price.value, float)
    return price.value


def own_tasks(common: int, *sides: Mapping[str, Any]) -> str:
    """Say that prices are not of the same tasks, where sides tried others than the common ones."""
    tasks = {common, *(side["tasks"] for side in sides)}
    return "" if len(tasks) == 1 else " (each over its own tasks)"


def fraction(share: float) -> str:
    """Write what part of another amount an amount is.

    >>> fraction(0.126), fraction(0.8), fraction(0.002)
    ('an eighth as much', '20 % less', '1/500 as much')
    """
    if share > 0.55:
        return f"{max(1, round(100 * (1 - share)))} % less"
    whole = round(1 / share)
    close = abs(1 / share - whole) <= 0.12 * whole / 2
    if whole in _PARTS and close:
        return f"{_PARTS[whole]} as much"
    return f"1/{count(whole)} as much" if whole > 10 else f"{round(100 * (1 - share))} % less"
