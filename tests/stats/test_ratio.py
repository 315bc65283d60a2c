"""The ratio of means holds its interval, and agrees with the test of the difference."""

import math

import numpy as np
import pytest

from pennyweight.stats.paired import Paired, compare
from pennyweight.stats.ratio import log_ratio_ends, ratio_of


def numbers(a, b):
    ones = np.ones(len(a))
    return Paired(np.asarray(a, float), np.asarray(b, float), ones, ones, "number")


def test_the_ratio_is_that_of_the_sums():
    found = ratio_of(numbers([1, 2, 3, 0], [4, 2, 6, 0]), 0.95, 1.0)
    assert found.value == 2
    assert found.low <= 1
    assert found.high >= 2


def test_swapped_sides_have_the_inverse_ratio():
    rng = np.random.default_rng(1)
    a, b = rng.lognormal(size=(2, 20))
    one, other = (ratio_of(numbers(*sides), 0.95, 0.2) for sides in ((a, b), (b, a)))
    assert (one.value, one.low, one.high) == pytest.approx(
        (1 / other.value, 1 / other.high, 1 / other.low)
    )


def test_the_unit_does_not_matter():
    rng = np.random.default_rng(2)
    a, b = rng.lognormal(size=(2, 20))
    assert ratio_of(numbers(a, b), 0.95, 0.2).high == pytest.approx(
        ratio_of(numbers(1000 * a, 1000 * b), 0.95, 0.2).high
    )


@pytest.mark.parametrize(("tasks", "factor"), [(8, 1.3), (20, 1.5), (50, 1.2)])
def test_test_and_ratio_never_contradict_each_other(tasks, factor):
    rng = np.random.default_rng(tasks)
    for _ in range(60):
        base = rng.lognormal(size=tasks)
        values = numbers(base, factor * base * rng.lognormal(sigma=0.5, size=tasks))
        p = compare(values, 0.95, 0).p
        found = ratio_of(values, 0.95, p)
        assert found.low <= found.value <= found.high
        assert (found.low <= 1 <= found.high) == (p > 0.05) or 1 in {found.low, found.high}


@pytest.mark.parametrize(("tasks", "spreads"), [(10, (0.2, 1)), (20, (1, 1)), (50, (0, 1.5))])
def test_the_interval_holds_the_true_ratio(tasks, spreads):
    rng = np.random.default_rng(tasks)
    held = 0
    for _ in range(300):
        a, b = (rng.lognormal(-(s**2) / 2, s, tasks) for s in spreads)
        low, high = log_ratio_ends(numbers(a, 1.8 * b), 0.95)
        held += low <= math.log(1.8) <= high
    assert held >= 0.92 * 300


def test_no_ratio_without_two_positive_means():
    assert ratio_of(numbers([0, 0, 0], [1, 2, 3]), 0.95, 1.0) is None
    assert ratio_of(numbers([1, 2, 3], [0, 0, 0]), 0.95, 1.0) is None
    assert ratio_of(numbers([1, 2, -1], [1, 2, 3]), 0.95, 1.0) is None


def test_a_ratio_that_never_varies_has_no_interval():
    found = ratio_of(numbers([1, 2, 3], [2, 4, 6]), 0.95, 0.2)
    assert (found.value, found.low, found.high) == (2, None, None)
    assert ratio_of(numbers([1], [3]), 0.95, 1.0).low is None


def test_few_tasks_have_finite_ends():
    found = ratio_of(numbers([1, 1, 1], [1e-3, 1, 1e3]), 0.95, 1.0)
    assert 0 < found.low < found.high < math.inf
