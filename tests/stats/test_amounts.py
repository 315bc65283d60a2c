"""The stated power to tell amounts apart is what simulated comparisons find."""

import numpy as np
import pytest

from pennyweight.stats.amounts import FEW, MOST_TASKS, Amounts
from pennyweight.stats.paired import Paired, compare
from pennyweight.stats.power import Design

SURE = 10**9


def drawn(rng, tasks, spread, shared=0.0):
    base = rng.lognormal(-(shared**2) / 2, shared, tasks)
    return [base * rng.lognormal(-(spread**2) / 2, spread, tasks) for _ in range(2)]


def numbers(a, b):
    ones = np.ones(len(a))
    return Paired(a, b, ones, ones, "number")


@pytest.mark.parametrize("tasks", [8, 20])
def test_power_is_what_comparisons_of_draws_find(tasks):
    rng, spread, factor = np.random.default_rng(tasks), 0.5, 2.2 if tasks == 8 else 1.6
    known = Amounts(1.0, 2 * spread**2, 2 * spread**2, 0.0, SURE)
    found = []
    for _ in range(300):
        a, b = drawn(rng, tasks, spread)
        found.append(compare(numbers(a, factor * b), 0.95, 0).p <= 0.05)
    assert known.power(tasks, factor - 1, 0.05) == pytest.approx(np.mean(found), abs=0.08)


def test_few_and_many_tasks_join_smoothly():
    known = Amounts(1.0, 0.5, 0.5, 0.0, SURE)
    below, above = (known.power(tasks, 0.12, 0.05) for tasks in (MOST_TASKS, MOST_TASKS + 1))
    assert above == pytest.approx(below, abs=0.08)
    powers = [known.power(tasks, 0.5, 0.05) for tasks in (FEW, 2 * FEW, 40, 200)]
    assert powers == sorted(powers)


def test_a_stated_difference_is_found_in_four_of_five_cases():
    rng, found = np.random.default_rng(3), []
    for _ in range(150):
        stated = Design.of(numbers(*drawn(rng, 20, 0.5, 0.7))).detectable(20)
        a, b = drawn(rng, 20, 0.5, 0.7)
        found.append(compare(numbers(a, (1 + stated) * b), 0.95, 0).p <= 0.05)
    assert np.mean(found) == pytest.approx(0.8, abs=0.1)  # of 150 draws


def test_zeros_and_negative_numbers_have_the_power_of_plain_means():
    ones = np.ones(10)
    assert Amounts.of(np.arange(10.0), ones) is None
    assert Amounts.of(-ones, ones) is None
    assert Amounts.of(ones, 2 * ones) is None
    design = Design.of(numbers(np.arange(10.0), np.arange(10.0)[::-1]))
    assert design.amounts is None
    assert design.detectable(10) > 0
