"""Paired differences of tasks that count differently: right as often as stated."""

import numpy as np
import pytest

from pennyweight.stats.paired import Paired, interval
from pennyweight.stats.weighted_difference import weighted_interval


def pair(a, b, kind="rate"):
    flat = np.ones(len(a))
    return Paired(np.asarray(a, float), np.asarray(b, float), flat, flat, kind)


def test_equal_weights_give_hardly_more_than_none_do():
    rng = np.random.default_rng(1)
    a, b = rng.random(200) < 0.8, rng.random(200) < 0.7
    plain = interval(pair(a, b), 0.9)
    weighted = weighted_interval(pair(a, b), np.full(200, 3.0), 0.9)
    assert weighted == pytest.approx(plain, abs=0.005)
    assert weighted[0] <= plain[0] < plain[1] <= weighted[1]


def test_tasks_of_weight_0_do_not_count():
    a, b = np.ones(60), np.ones(60)
    b[50:] = 0
    weights = np.where(np.arange(60) < 50, 2.0, 0.0)
    some = weighted_interval(pair(a[:50], b[:50]), weights[:50], 0.9)
    assert weighted_interval(pair(a, b), weights, 0.9) == pytest.approx(some)


def test_a_task_that_outweighs_the_others_leaves_it_open():
    weights = np.ones(100)
    weights[0] = 10_000
    low, high = weighted_interval(pair(np.ones(100), np.ones(100)), weights, 0.9)
    assert low < -0.7
    assert high > 0.7


@pytest.mark.parametrize("kind", ["rate", "score"])
def test_each_end_is_wrong_as_seldom_as_stated(kind):
    rng = np.random.default_rng(5)
    tasks, times = 120, 600
    weights = np.where(np.arange(tasks) < 30, 4.0, 1.0)
    chance = np.where(np.arange(tasks) < 30, 0.7, 0.9)  # both sides, so the truth is 0
    below = above = 0
    for _ in range(times):
        sides = [rng.random(tasks) < chance for _ in range(2)]
        if kind == "score":
            sides = [rng.beta(8 * chance, 8 * (1 - chance)) for _ in range(2)]
        low, high = weighted_interval(pair(*sides, kind), weights, 0.9)
        below += high < 0
        above += low > 0
    assert below <= 0.075 * times
    assert above <= 0.075 * times
    assert below + above >= 0.01 * times  # and it is not just wide
