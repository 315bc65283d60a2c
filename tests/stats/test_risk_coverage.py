"""The risk–coverage curve, in slices of any size and against a plain loop."""

import random

import numpy as np
import pytest

from pennyweight.stats import risk_coverage
from pennyweight.stats.risk_coverage import RiskCoverage


def drawn(count: int, levels: int) -> tuple[list[float], list[float]]:
    rng = random.Random(count)
    stated = [rng.randrange(levels) / levels for _ in range(count)]
    return stated, [float(rng.random() < p) for p in stated]


def plain_area(stated: list[float], hits: list[float]) -> float:
    """Sort by confidence; each record has the error rate of its level."""
    rates = {
        p: sum(1 - y for q, y in zip(stated, hits, strict=True) if q == p) / stated.count(p)
        for p in stated
    }
    ordered = [rates[p] for p in sorted(stated, reverse=True)]
    return sum(sum(ordered[:k]) / k for k in range(1, len(ordered) + 1)) / len(ordered)


@pytest.mark.parametrize(("count", "levels"), [(1, 5), (60, 4), (90, 10_000)])
@pytest.mark.parametrize("size", [1, 7, 1_000_000])
def test_slices_change_nothing(
    monkeypatch: pytest.MonkeyPatch, size: int, count: int, levels: int
) -> None:
    given = drawn(count, levels)
    stated, hits = map(np.array, given)
    curve = RiskCoverage.of(stated, hits)
    whole = curve.area(), curve.moved(stated, hits)
    assert whole[0] == pytest.approx(plain_area(*given), rel=1e-12)
    monkeypatch.setattr(risk_coverage, "SLICE", size)
    assert curve.area() == pytest.approx(whole[0], rel=1e-12)
    assert curve.moved(stated, hits) == pytest.approx(whole[1], rel=1e-9, abs=1e-12)
