"""Several tiers side by side: uplift, variance, delta, frontier, and what a further pass costs.

Pure functions of plain numbers; None is a number that is not known, and stays out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Number = float | None


@dataclass(frozen=True, slots=True)
class Frontier:
    """The cheapest way to a pass; without a name where nothing passed."""

    name: str | None
    cost_of_pass: float


@dataclass(frozen=True, slots=True)
class Step:
    """The price of each further pass on the next more expensive side."""

    start: str
    end: str
    cost_difference: float
    pass_rate_difference: float
    cost_of_further_pass: float


@dataclass(frozen=True, slots=True)
class Dominated:
    """A side that costs no less than another one and passes no more often."""

    name: str
    by: str


@dataclass(frozen=True, slots=True)
class Across:
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


def difference(score: Number, baseline: Number) -> Number:
    """Return the plain difference from the baseline."""
    return None if score is None or baseline is None else score - baseline


def variance(values: Iterable[Number]) -> Number:
    """Return the population variance over sides; None for fewer than two.

    >>> round(variance([0.70, 0.80, 0.85, 0.90]), 5)
    0.00547
    """
    known = _known(values)
    if len(known) < 2:
        return None
    mean = math.fsum(known) / len(known)
    return math.fsum((v - mean) ** 2 for v in known) / len(known)


def delta(values: Iterable[Number]) -> Number:
    """Return the distance from the smallest to the largest; None for fewer than two.

    >>> delta([0.25, None, 1.0])
    0.75
    """
    known = _known(values)
    return max(known) - min(known) if len(known) > 1 else None


def frontier(costs: Mapping[str, Number]) -> Frontier | None:
    """Find the side whose pass is cheapest, the first of equal ones; None if no cost is known.

    >>> frontier({"T0": 0.5, "T1": 0.25, "T2": math.inf}).name
    'T1'
    """
    known = {name: cost for name, cost in costs.items() if cost is not None}
    if not known:
        return None
    name = min(known, key=lambda n: known[n])
    return Frontier(name if math.isfinite(known[name]) else None, known[name])


def steps(sides: Sequence[tuple[str, Number, Number]]) -> tuple[list[Step], list[Dominated]]:
    """Return what each further pass costs from one side to the next dearer one.

    `sides` are names with the mean cost of an attempt and the pass rate. A side that passes no more
    often than one that costs no more is no step on the way; it is named instead.

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
    """Drop the last digits, in which sums of the same numbers may differ."""
    return float(f"{value:.12g}")


def _known(values: Iterable[Number]) -> list[float]:
    return [v for v in values if v is not None]
