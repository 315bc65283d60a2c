"""Flipped signs agree with scipy, and with going through all of them."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from pennyweight.stats.sign_flips import sign_flip, step

EXACT, DRAWN = "exact sign-flip permutation", "sign-flip permutation"


def of_scipy(values, resamples=np.inf):
    return stats.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=resamples, rng=1
    ).pvalue


@pytest.mark.parametrize(
    "values",
    [
        [0.3, -0.1, 0.4, 0.25, 0.0, 0.5, -0.2, 0.35, 0.1],
        [1 / 3, 1 / 3, -2 / 3, 1.0, 0.0, 1 / 3, 2 / 3, 2 / 3],
        [np.pi, -np.e, np.sqrt(2), 2.0, 3.3],
        [120.0, -3.0, 45.0, 77.0, 12.0],
        [0.5] * 6,
    ],
)
def test_flips_of_few_tasks_are_those_of_scipy(values):
    p, method = sign_flip(np.array(values), seed=0)
    assert p == pytest.approx(of_scipy(np.array(values)))
    assert method == EXACT


@pytest.mark.parametrize(("more", "less"), [(5, 0), (9, 2), (40, 25), (600, 510), (30, 30)])
def test_flips_of_single_tries_are_mcnemars_test(more, less):
    values = np.array([1.0] * more + [-1.0] * less + [0.0] * 7)
    p, method = sign_flip(values, seed=0)
    assert p == pytest.approx(stats.binomtest(more, more + less, 0.5).pvalue)
    assert method == EXACT


def test_flips_of_passes_are_counted_for_any_number_of_tasks():
    rng = np.random.default_rng(4)
    values = (rng.binomial(3, 0.6, 200) - rng.binomial(3, 0.52, 200)) / 3
    p, method = sign_flip(values, seed=0)
    assert p == pytest.approx(of_scipy(values, 20_000), abs=0.01)
    assert method == EXACT
    assert sign_flip(values, seed=1)[0] == p


def test_flips_of_many_tasks_come_near_to_those_of_scipy():
    values = np.random.default_rng(3).normal(0.25, 1, 80)
    p, method = sign_flip(values, seed=0)
    assert p == pytest.approx(of_scipy(values, 20_000), abs=0.01)
    assert method == DRAWN
    assert sign_flip(values, seed=0) == (p, method)


def test_flips_in_blocks_come_near_to_students_test():
    values = np.random.default_rng(5).normal(0.03, 1, 5_000)
    p, _ = sign_flip(values, seed=0)
    assert p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, abs=0.02)


def test_a_p_beyond_the_first_draws_is_near_the_true_one():
    """Twenty signs: all patterns can be gone through."""
    values = np.concatenate([np.linspace(1, np.sqrt(2), 18), [-0.25, -0.5]])
    signs = 1 - 2 * ((np.arange(2**20)[:, None] >> np.arange(20)) & 1).astype(np.int8)
    true = float(np.mean(np.abs(signs @ values) >= values.sum() - 1e-9))
    for seed in range(3):
        p, method = sign_flip(values, seed, bar=0.05 / 2_000)
        assert method == DRAWN
        assert true / 5 <= p < 0.05 / 2_000


def test_counted_flips_are_those_of_a_double_loop():
    values = np.array([0.25, 0.5, -0.75, 1.0, 0.25])
    sums = [abs(np.dot(signs, values)) for signs in product((-1, 1), repeat=5)]
    p, _ = sign_flip(values, seed=0)
    assert p == np.mean(np.array(sums) >= abs(values.sum()) - 1e-9)


def test_a_certain_difference_has_the_smallest_p_there_is():
    assert sign_flip(np.full(40, 1 / 3), seed=0)[0] == pytest.approx(2.0**-39)
    assert 0 < sign_flip(np.full(3_000, 0.5), seed=0)[0] < 1e-200


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0.1, 0.3, -0.25], 0.05), ([2.0, 4.0], 2.0), ([1 / 3, 0.5], 1 / 6), ([0.0], None)],
)
def test_the_step_is_the_largest_that_fits(values, expected):
    found = step(np.array(values))
    assert found == (None if expected is None else pytest.approx(expected))
