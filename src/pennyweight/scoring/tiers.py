"""Statistics across tiers: uplift, variance, delta, frontier, and the cost of a further pass.

Pure functions of plain numbers; None is an unknown number, which they ignore.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import pvariance

Number = float | None


@dataclass(frozen=True, slots=True)
class Frontier:
    """The side whose pass is cheapest; without a name if nothing passed."""

    name: str | None
    cost_of_pass: float


@dataclass(frozen=True, slots=True)
class Step:
    """The cost of each further pass on the next more expensive side."""

    start: str
    end: str
    cost_difference: float
    pass_rate_difference: float
    cost_of_further_pass: float


@dataclass(frozen=True, slots=True)
class Dominated:
    """A side that costs at least as much as another and passes at most as often."""

    name: str
    by: str


@dataclass(frozen=True, slots=True)
class AcrossSides:
    """Statistics over all sides."""

    pass_rate_variance: Number
    cost_variance: Number
    cost_delta: Number
    frontier: Frontier | None


def uplift(score: Number, baseline: Number) -> Number:
    """Return the improvement over the baseline as a share of it; None where that is 0.

    >>> round(uplift(0.90, 0.75), 6)
    0.2
    """
    if score is None or not baseline:
        return None
    return (score - baseline) / baseline


def variance(values: Iterable[Number]) -> Number:
    """Return the population variance over sides; None for fewer than two.

    >>> round(variance([0.70, 0.80, 0.85, 0.90]), 5)
    0.00547
    """
    known = _known(values)
    if len(known) < 2:
        return None
    scale = max(1.0, *map(abs, known))  # the squares of large numbers overflow
    return pvariance([value / scale for value in known]) * scale * scale


def delta(values: Iterable[Number]) -> Number:
    """Return the range of the values; None for fewer than two.

    >>> delta([0.25, None, 1.0])
    0.75
    """
    known = _known(values)
    return max(known) - min(known) if len(known) > 1 else None


def frontier(costs: Mapping[str, Number]) -> Frontier | None:
    """Return the side whose pass is cheapest, the first of equals; None if no cost is known.

    >>> frontier({"T0": 0.5, "T1": 0.25, "T2": math.inf}).name
    'T1'
    """
    known = {name: cost for name, cost in costs.items() if cost is not None}
    if not known:
        return None
    name = min(known, key=lambda n: known[n])
    return Frontier(name if math.isfinite(known[name]) else None, known[name])


def steps(sides: Sequence[tuple[str, Number, Number]]) -> tuple[list[Step], list[Dominated]]:
    """Return what each further pass costs on the next more expensive side.

    `sides` has names, mean costs of an attempt and pass rates. A side that passes no more often
    than one that costs no more is not a step; it is dominated.

    >>> (step,), (worse,) = steps([("T0", 0.1, 0.5), ("T1", 0.2, 0.4), ("T2", 0.3, 0.75)])
    >>> step.start, step.end, step.cost_of_further_pass, worse.name, worse.by
    ('T0', 'T2', 0.8, 'T1', 'T0')
    """
    known = [(n, _digits(c), _digits(r)) for n, c, r in sides if c is not None and r is not None]
    found: list[Step] = []
    worse: list[Dominated] = []
    last: tuple[str, float, float] | None = None
    for side in sorted(known, key=lambda one: (one[1], -one[2])):
        if last is None:
            last = side
        elif side[2] > last[2]:
            paid, gained = side[1] - last[1], side[2] - last[2]
            price = round(paid / gained, 15)
            found.append(Step(last[0], side[0], paid, gained, price))
            last = side
        elif side[1:] != last[1:]:
            worse.append(Dominated(side[0], last[0]))
    return found, worse


def _digits(value: float) -> float:
    """Drop the last digits, in which sums of the same numbers can differ."""
    return float(f"{value:.12g}")


def _known(values: Iterable[Number]) -> list[float]:
    return [v for v in values if v is not None]
