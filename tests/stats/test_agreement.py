import numpy as np
import pytest

from pennyweight.stats.agreement import (
    alpha,
    alpha_interval,
    mean_absolute_difference,
    mean_absolute_difference_interval,
)

GAP = np.nan


def plain_alpha(table):
    """Observed over expected disagreement, pair by pair, as the definition has it."""
    units = [[v for v in row if not np.isnan(v)] for row in table]
    units = [u for u in units if len(u) > 1]
    values = [v for u in units for v in u]
    n = len(values)
    observed = (
        sum(
            (a - b) ** 2 / (len(u) - 1)
            for u in units
            for i, a in enumerate(u)
            for j, b in enumerate(u)
            if i != j
        )
        / n
    )
    expected = sum(
        (a - b) ** 2 for i, a in enumerate(values) for j, b in enumerate(values) if i != j
    ) / (n * (n - 1))
    return 1 - observed / expected


KNOWN = np.array(
    [
        [1, 1, GAP, 1],
        [2, 2, 3, 2],
        [3, 3, 3, 3],
        [3, 3, 3, 3],
        [2, 2, 2, 2],
        [1, 2, 3, 4],
        [4, 4, 4, 4],
        [1, 1, 2, 1],
        [2, 2, 2, 2],
        [GAP, 5, 5, 5],
        [GAP, GAP, 1, 1],
        [GAP, GAP, 3, GAP],
    ]
)
"""Krippendorff's own example of four observers and twelve units; its interval alpha is 0.849."""


def test_alpha_of_the_known_example():
    assert alpha(KNOWN) == pytest.approx(0.849, abs=0.0005)
    assert alpha(KNOWN) == pytest.approx(plain_alpha(KNOWN.tolist()))


def test_alpha_of_judges_with_gaps_is_that_of_the_definition():
    rng = np.random.default_rng(2)
    table = rng.random((40, 1)) + rng.normal(0, 0.2, (40, 3))
    table[rng.random((40, 3)) < 0.25] = GAP
    assert alpha(table) == pytest.approx(plain_alpha(table.tolist()))
    assert alpha(table + 1e6) == pytest.approx(alpha(table), abs=1e-4)


def test_agreement_contradiction_and_what_cannot_be_told():
    assert alpha(np.array([[0.1, 0.1], [0.9, 0.9]])) == 1
    assert alpha(np.array([[0.0, 1.0], [1.0, 0.0]])) < 0
    assert alpha(np.array([[0.5, 0.5], [0.5, 0.5]])) is None
    assert alpha(np.array([[0.5, GAP], [GAP, 0.7]])) is None
    assert alpha(np.empty((0, 3))) is None
    assert alpha_interval(np.array([[0.1, 0.2]])) is None
    assert alpha_interval(np.array([[0.1, 0.1], [0.9, 0.9]])) is None


def test_intervals_hold_the_value_and_repeat_by_their_seed():
    low, high = alpha_interval(KNOWN, seed=3)
    assert low <= alpha(KNOWN) <= high <= 1
    assert alpha_interval(KNOWN, seed=3) == (low, high) != alpha_interval(KNOWN, seed=4)
    wide = alpha_interval(KNOWN, confidence=0.99, seed=3)
    assert wide[0] <= low


def test_mean_absolute_difference():
    table = np.array([[0.0, 1.0, GAP], [0.5, 0.5, 0.8], [0.3, GAP, GAP]])
    assert mean_absolute_difference(table) == pytest.approx((1.0 + 0.2) / 2)
    low, high = mean_absolute_difference_interval(table)
    assert low <= 0.6 <= high
    assert mean_absolute_difference(table[2:]) is None
