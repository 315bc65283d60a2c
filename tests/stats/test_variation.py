"""How values vary: the variances and the typical samples, against draws from the same model."""

import math

import numpy as np
import pytest
from scipy import stats

from pennyweight.stats.variation import Variation


def drawn(variation, tasks, runs, seed=0):
    """Draw the tasks' means of two sides: a share of the tasks is as hard for both."""
    rng = np.random.default_rng(seed)
    first, other = rng.standard_normal((2, tasks))
    same = rng.random(tasks) < variation.correlation
    ease = np.stack([first, np.where(same, first, other)])
    if variation.kind == "rate":
        size = 1 / variation.task_share - 1
        rates = stats.beta.ppf(
            stats.norm.cdf(ease), variation.mean * size, (1 - variation.mean) * size
        )
        return rng.binomial(runs, rates) / runs
    whole = variation.log_sd**2
    between, within = whole * variation.task_share, whole * (1 - variation.task_share)
    level = math.log(variation.mean) - whole / 2
    noise = rng.standard_normal((2, tasks, runs)) * math.sqrt(within)
    return np.exp(level + math.sqrt(between) * ease[..., None] + noise).mean(axis=2)


@pytest.mark.parametrize("runs", [1, 4])
def test_rates_vary_as_drawn_ones_do(runs):
    variation = Variation.of_rate(0.8, 0.6, 0.7)
    a, b = drawn(variation, 100_000, runs)
    assert a.var() == pytest.approx(variation.of_task(runs), rel=0.03)
    assert (a - b).var() == pytest.approx(variation.of_difference(runs), rel=0.06)
    if runs == 1:
        assert np.mean(a != b) == pytest.approx(variation.discordance, rel=0.06)


@pytest.mark.parametrize("runs", [1, 4])
def test_costs_vary_as_drawn_ones_do(runs):
    variation = Variation.of_number(0.02, 0.016, 0.6, 0.7)
    a, b = drawn(variation, 100_000, runs)
    assert a.var() == pytest.approx(variation.of_task(runs), rel=0.05)
    assert np.log(a / b).var() == pytest.approx(variation.of_difference(runs), rel=0.05)


@pytest.mark.parametrize("runs", [1, 5])
def test_a_typical_sample_has_the_mean_and_the_variance(runs):
    for variation in (
        Variation.of_rate(0.9, 0.5, 0.7),
        Variation("score", 0.7, 0.2, 0.5, 0.7),
        Variation.of_number(0.02, 0.01, 0.5, 0.7),
    ):
        values = variation.typical(2_000, runs)
        assert values.mean() == pytest.approx(variation.mean, rel=0.01)
        assert values.var() == pytest.approx(variation.of_task(runs), rel=0.05)


def test_the_mean_of_a_sample_is_below_a_limit_as_often_as_drawn():
    variation = Variation.of_rate(0.9, 0.5, 0.7)
    means = [drawn(variation, 60, 3, seed)[0].mean() for seed in range(1_000)]
    for limit in (0.85, 0.9, 0.94):
        share = np.mean(np.array(means) <= limit)
        assert variation.mean_below(limit, 60, 3) == pytest.approx(share, abs=0.04)


def test_another_mean_keeps_the_shape():
    assert Variation.of_rate(0.8, 0.6, 0.7).at(0.5).sd == pytest.approx(0.5)
    cost = Variation.of_number(0.02, 0.03, 0.6, 0.7)
    assert cost.at(0.04).sd == pytest.approx(0.06)
    assert cost.at(0.04).log_sd == cost.log_sd
