"""Pairs of sides held against a margin: no worse by more than that, or equivalent within it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pennyweight.stats.margin import margin_test
from pennyweight.stats.paired import Paired, holm

MarginOf = Literal["difference", "ratio"]
"""What is held against a margin: the difference, or how far the ratio of means is from 1."""


@dataclass(frozen=True, slots=True)
class HeldMargin:
    """What a pair shows about a margin."""

    margin: float
    margin_of: MarginOf
    low: float
    high: float
    p_equivalent: float
    p_no_worse: float | None
    """None if neither direction of the metric is better."""
    p_equivalent_adjusted: float = 1.0
    p_no_worse_adjusted: float | None = None
    level: float = 0.05

    @property
    def equivalent(self) -> bool:
        """Whether the sides are shown to be equivalent."""
        return self.p_equivalent_adjusted <= self.level

    @property
    def no_worse(self) -> bool | None:
        """Whether the second side is shown to be no worse by more than the margin."""
        p = self.p_no_worse_adjusted
        return None if p is None else p <= self.level

    def to_dict(self) -> dict[str, Any]:
        """Return the keys that a margin adds to an entry of `pairs`."""
        names = (
            *("margin", "margin_of", "p_no_worse", "p_no_worse_adjusted", "no_worse"),
            *("p_equivalent", "p_equivalent_adjusted", "equivalent"),
        )
        return {
            **{name: getattr(self, name) for name in names},
            "margin_interval": [self.low, self.high],
        }


def held(
    paired: Paired, margin: float, confidence: float, *, amount: bool, better: str | None
) -> HeldMargin | None:
    """Hold a pair against a margin: of the ratio for amounts, else of the difference.

    Other numbers are held against a share of the first side's mean. None if nothing varies.
    """
    if not paired.tasks:
        return None
    paired, unit = paired.rescaled()
    if paired.kind == "number" and not amount:
        margin *= abs(float(paired.a.mean()))
    found = margin_test(paired, margin, confidence, relative=amount)
    if found is None:
        return None
    by = 1.0 if amount else unit
    no_worse = {"higher": found.p_above, "lower": found.p_below}.get(better or "")
    of: MarginOf = "ratio" if amount else "difference"
    ends = found.low * by, found.high * by
    return HeldMargin(
        margin * by, of, *ends, found.p_equivalent, no_worse, level=round(1 - confidence, 12)
    )


def worst(tests: Sequence[HeldMargin | None]) -> HeldMargin | None:
    """Return the first test, with the largest p-values of all; 1 where a test shows nothing."""
    first = tests[0]
    if first is None or len(tests) == 1:
        return first
    equivalent = max(one.p_equivalent if one else 1.0 for one in tests)
    no_worse = first.p_no_worse
    if no_worse is not None:
        no_worse = max(
            1.0 if one is None or one.p_no_worse is None else one.p_no_worse for one in tests
        )
    return replace(first, p_equivalent=equivalent, p_no_worse=no_worse)


def adjusted(tests: Sequence[HeldMargin | None]) -> list[HeldMargin | None]:
    """Correct the tests of all pairs by Holm's method, those of each question together."""
    equivalent = iter(holm([one.p_equivalent for one in tests if one]))
    worse = [one.p_no_worse for one in tests if one and one.p_no_worse is not None]
    no_worse = iter(holm(worse))
    return [
        one
        and replace(
            one,
            p_equivalent_adjusted=next(equivalent),
            p_no_worse_adjusted=None if one.p_no_worse is None else next(no_worse),
        )
        for one in tests
    ]
