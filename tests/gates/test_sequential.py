"""Levels of successive looks: together they spend the error rate, and the last one most of it."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, multivariate_normal, norm

from pennyweight.gates.sequential import Walk, boundary, horizon, rate_look, sizes, spent

LEVELS = (0.05, 0.05)


@pytest.mark.parametrize("claim", [0.1, 0.5, 0.8, 0.95])
def test_a_boundary_spends_its_error_rate_over_every_possible_run(claim):
    """Each of the 4,096 runs of twelve tasks, with its probability."""
    least = boundary(claim, 0.05, np.inf, 12, 12, whole=True).least
    wrong, still_open = 0.0, dict.fromkeys(range(13), 0.0)
    for run in product((0, 1), repeat=12):
        hits = np.cumsum(run)
        chance = claim ** hits[-1] * (1 - claim) ** (12 - hits[-1])
        if (hits >= least).any():
            wrong += chance
        else:
            still_open[hits[-1]] += chance
    most = max(n for n, chance in still_open.items() if chance)
    assert wrong <= 0.05 < wrong + still_open[most]  # one pass fewer would not suffice


@pytest.mark.parametrize("claim", [0.5, 0.8, 0.95])
def test_a_true_claim_is_hardly_ever_ruled_out_although_every_task_is_looked_at(claim):
    rng = np.random.default_rng(7)
    hits = np.cumsum(rng.random((2000, 600)) < claim, axis=1)
    for planned in (600, 200):
        least = boundary(claim, 0.05, 300, planned, planned, whole=True).least
        assert (hits[:, :planned] >= least).any(axis=1).mean() <= 0.06


def test_a_fixed_test_that_looks_as_often_would_be_wrong_far_oftener():
    rng = np.random.default_rng(7)
    means = np.cumsum(rng.random((2000, 600)) < 0.8, axis=1) / np.arange(1, 601)
    error = np.sqrt(0.16 / np.arange(1, 601))
    assert (means - 0.8 > 1.645 * error)[:, 20:].any(axis=1).mean() > 0.25


@pytest.mark.parametrize("tasks", [20, 50, 200])
@pytest.mark.parametrize("threshold", [0.8, 0.9, 0.95])
def test_the_last_look_has_nearly_the_power_of_a_test_that_looks_once(tasks, threshold):
    least = boundary(1 - threshold, 0.05, np.inf, tasks, tasks, whole=True).least
    once = next(n for n in range(tasks + 2) if binom.sf(n - 1, tasks, 1 - threshold) <= 0.05)
    for rate in (threshold - 0.1, threshold - 0.2, threshold - 0.3):
        open_, power = np.ones(1), 0.0
        for n in range(1, tasks + 1):
            open_ = np.convolve(open_, [rate, 1 - rate])
            out = np.arange(n + 1) >= least[n - 1]
            power += open_[out].sum()
            open_ = np.where(out, 0, open_)
        assert power >= binom.sf(once - 1, tasks, 1 - rate) - 0.035


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=80), st.floats(0.3, 0.95))
def test_more_tasks_never_take_a_decision_back(values, good):
    whole, claims = np.array(values), (good - 0.1, good)
    found = [rate_look(whole[:n], claims, LEVELS, 100, whole=False) for n in range(1, len(whole))]
    decided = [f for f in found if f.verdict != "inconclusive"]
    assert len({(f.verdict, f.tasks) for f in decided}) <= 1


def test_nine_in_ten_is_told_from_85_percent_with_half_the_tasks_of_a_fixed_test():
    rng, taken = np.random.default_rng(1), []
    for rate, word in ((0.9, "pass"), (0.85, "fail")):
        runs = (rng.random((300, 2000)) < rate).astype(float)
        found = [rate_look(run, (0.85, 0.9), LEVELS, 2000, whole=True) for run in runs]
        assert np.mean([f.verdict == word for f in found]) > 0.92
        taken += [f.tasks for f in found]
    assert np.mean(taken) < 0.6 * 474


def test_levels_of_a_mean_spend_the_error_rate():
    """Checked against the distribution function of the normal means at three looks."""
    times, totals, walk, ends = [10.0, 20.0, 40.0], [0.01, 0.02, 0.05], Walk.start(), []
    for time, total in zip(times, totals, strict=True):
        level, walk = walk.look(time, total)
        ends.append(-norm.ppf(level))
    shared = np.sqrt(np.minimum.outer(times, times) / np.maximum.outer(times, times))
    for n in (1, 2, 3):
        within = multivariate_normal(cov=shared[:n, :n]).cdf(ends[:n])
        assert 1 - within == pytest.approx(totals[n - 1], abs=2e-5)


def test_many_looks_at_a_mean_spend_the_error_rate_too():
    looks, walk, ends = list(sizes(400)), Walk.start(), []
    for size in looks:
        level, walk = walk.look(float(size), spent(size, np.inf, 400, 0.05))
        ends.append(-norm.ppf(level))
    steps = np.diff([0, *looks])
    paths = np.random.default_rng(2).normal(size=(40_000, len(looks))) * np.sqrt(steps)
    reached = np.cumsum(paths, axis=1) / np.sqrt(looks) > ends
    assert reached.any(axis=1).mean() == pytest.approx(0.05, abs=0.004)
    assert level > 0.03  # the last look keeps most of it


def test_a_horizon_is_the_size_of_a_fixed_test_and_a_half_more():
    claims, z = (0.85, 0.9), norm.ppf(0.95)
    once = (z * sum(np.sqrt(p * (1 - p)) for p in claims) / 0.05) ** 2
    sides = tuple(float(np.sqrt(p * (1 - p))) for p in claims)
    assert horizon(sides, 0.05, LEVELS) == pytest.approx(1.5 * once)


def test_a_suite_that_is_larger_than_needed_keeps_a_reserve():
    assert spent(500, 500, 2000, 0.05) == pytest.approx(0.0475 + 0.0025 / 16)
    assert spent(250, 500, 2000, 0.05) == pytest.approx(0.02375 + 0.0025 / 64)
    assert spent(2000, 500, 2000, 0.05) == pytest.approx(0.05)
    assert spent(100, 500, 100, 0.05) == pytest.approx(0.05)
