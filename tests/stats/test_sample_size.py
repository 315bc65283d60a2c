"""Sample sizes: against textbook formulas, and against the tests that they are for."""

import math

import numpy as np
import pytest
from scipy import stats

from pennyweight.stats import paired
from pennyweight.stats.paired import Paired, interval
from pennyweight.stats.sample_size import fewest, tasks_for_difference, tasks_for_margin
from pennyweight.stats.variation import Variation
from stats.test_variation import drawn

Z = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
RATE = Variation.of_rate(0.8, 0.6, 0.6)
COST = Variation.of_number(0.02, 0.02, 0.6, 0.6)


def test_fewest_is_none_if_nothing_is_enough():
    assert fewest(lambda _: False) is None
    assert fewest(lambda _: True) == 2


def test_a_difference_of_rates_is_near_the_textbook():
    """Connor (1987), for McNemar's test; the exact test needs a little more."""
    apart, d = RATE.discordance, 0.05
    plain = (1.96 * math.sqrt(apart) + 0.8416 * math.sqrt(apart - d**2)) ** 2 / d**2
    found = tasks_for_difference(RATE, d, 1, 0.05, 0.8)
    assert plain < found < 1.12 * plain


def test_a_ratio_of_many_costs_is_near_the_textbook():
    """The difference of means, with the variance of log-normal differences."""
    a, b = drawn(COST, 400_000, 1)
    found = tasks_for_difference(COST, 0.1, 1, 0.05, 0.8)
    plain = (1.1 * b - a).var() * (Z / (0.1 * COST.mean)) ** 2
    assert found == pytest.approx(plain, rel=0.06)


@pytest.mark.parametrize("runs", [1, 5])
def test_a_ratio_of_costs_is_shown_as_often_as_planned(runs):
    tasks = tasks_for_difference(COST, 0.5, runs, 0.05, 0.8)
    tries = np.full(tasks, float(runs))
    shown = 0
    for seed in range(200):
        a, b = drawn(COST, tasks, runs, seed)
        shown += paired.tested(Paired(a, 1.5 * b, tries, tries, "number"), 0, 0.05)[0] <= 0.05
    assert shown / 200 == pytest.approx(0.8, abs=0.08)


def test_more_power_more_certainty_and_smaller_differences_need_more_tasks():
    needed = tasks_for_difference(RATE, 0.1, 1, 0.05, 0.8)
    assert tasks_for_difference(RATE, 0.1, 1, 0.05, 0.9) > needed
    assert tasks_for_difference(RATE, 0.1, 1, 0.01, 0.8) > needed
    assert tasks_for_difference(RATE, 0.05, 1, 0.05, 0.8) > 3.5 * needed
    assert tasks_for_difference(RATE, 0.1, 5, 0.05, 0.8) < needed


@pytest.mark.parametrize("runs", [1, 5])
def test_a_margin_is_shown_as_often_as_planned(runs):
    tasks = tasks_for_margin(RATE, 0.08, runs, 0.05, 0.8)
    tries = np.full(tasks, float(runs))
    lows = [
        interval(Paired(*drawn(RATE, tasks, runs, seed), tries, tries, "rate"), 0.9)[0]
        for seed in range(400)
    ]
    assert np.mean(np.array(lows) >= -0.08) == pytest.approx(0.8, abs=0.06)


@pytest.mark.parametrize("runs", [1, 5])
def test_a_difference_is_shown_as_often_as_planned(runs):
    tasks = tasks_for_difference(RATE, 0.15, runs, 0.05, 0.8)
    tries = np.full(tasks, float(runs))
    better, worse = RATE.at(0.875), RATE.at(0.725)
    shown = 0
    for seed in range(400):
        a, b = drawn(worse, tasks, runs, seed)[0], drawn(better, tasks, runs, seed)[1]
        shown += paired.tested(Paired(a, b, tries, tries, "rate"), 0, 0.05)[0] <= 0.05
    assert shown / 400 == pytest.approx(0.8, abs=0.06)
