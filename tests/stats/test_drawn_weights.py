"""Ends of means over few tasks that were tried often: exact, monotone, and never too sure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pennyweight.stats.drawn_weights import drawn_ends


def reference(values, level, draws=40_000):
    """Draw the weights themselves, one task of the worst value added."""
    rng = np.random.default_rng(3)
    weights = rng.dirichlet(np.ones(len(values) + 1), draws)[:, 1:]
    return np.quantile(weights @ values, level), 1 - np.quantile(weights @ (1 - values), level)


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (2, 2), (9, 10), (50, 100), (9_990, 10_000)])
@pytest.mark.parametrize("level", [0.05, 0.01, 0.001])
def test_of_passes_and_failures_they_are_clopper_and_pearsons(hits, n, level):
    values = np.array([1.0] * hits + [0.0] * (n - hits))
    low, high = drawn_ends(values, np.ones(n), level)
    expected = stats.binomtest(hits, n).proportion_ci(1 - 2 * level, "exact")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-6)
    again = drawn_ends(values, np.full(n, 7.0), level)
    assert again == pytest.approx((low, high))  # seven attempts that agree are worth one


@pytest.mark.parametrize(
    "values",
    [[0.9] + [1.0] * 9, [0.5] * 10, [0.0] + [0.5] * 9, [0.2, 0.7], list(np.linspace(0, 1, 40))],
    ids=str,
)
def test_they_are_what_drawn_weights_give(values):
    found = drawn_ends(np.array(values), np.full(len(values), 10.0), 0.05)
    assert found == pytest.approx(reference(np.array(values), 0.05), abs=0.004)


counts = st.integers(2, 12).flatmap(
    lambda tries: st.tuples(
        st.just(tries), st.lists(st.integers(0, tries), min_size=2, max_size=15)
    )
)


@given(counts, st.data(), st.sampled_from([0.05, 0.01, 0.1]))
def test_a_failure_never_raises_an_end_and_tasks_limit_what_is_sure(drawn, data, level):
    tries, hits = drawn
    n = len(hits)
    before = np.array(hits) / tries
    low, high = drawn_ends(before, np.full(n, float(tries)), level)
    assert low <= before.mean() <= high
    assert low <= level ** (1 / n) * max(before.mean(), 1e-9) + 1e-7
    assert high >= 1 - level ** (1 / n) - 1e-7
    place = data.draw(st.integers(0, n - 1))
    if hits[place]:
        worse = before.copy()
        worse[place] -= 1 / tries
        found = drawn_ends(worse, np.full(n, float(tries)), level)
        assert found[0] <= low + 1e-7
        assert found[1] <= high + 1e-7


def chances(kind, rng, tasks):
    if kind == "some always fail":
        return np.where(rng.random(tasks) < 0.105, 0.0, 0.985), 0.895 * 0.985
    if kind == "many always fail":
        return np.where(rng.random(tasks) < 0.3, 0.0, 0.5), 0.35
    if kind == "beta":
        return rng.beta(2.4, 0.6, tasks), 0.8
    return np.full(tasks, 0.9), 0.9


@pytest.mark.parametrize("kind", ["some always fail", "many always fail", "beta", "alike"])
@pytest.mark.parametrize(("tasks", "tries"), [(5, 20), (10, 10), (40, 3)])
def test_each_end_is_wrong_as_seldom_as_it_says(kind, tasks, tries):
    rng = np.random.default_rng(17)
    above = below = 0
    for _ in range(300):
        each, truth = chances(kind, rng, tasks)
        low, high = drawn_ends(rng.binomial(tries, each) / tries, np.full(tasks, tries), 0.05)
        above += low > truth
        below += high < truth
    assert max(above, below) <= 300 * 0.05 + 9  # 2.4 standard deviations


def test_in_the_middle_they_are_not_wider_than_those_of_single_attempts():
    rng = np.random.default_rng(5)
    for tasks in (5, 20, 100):
        low, high = drawn_ends(rng.binomial(20, 0.5, tasks) / 20, np.full(tasks, 20.0), 0.05)
        single = stats.binomtest(tasks // 2, tasks).proportion_ci(0.9, "exact")
        assert high - low < 0.75 * (single.high - single.low)


def test_more_attempts_at_one_task_do_not_pass_for_tasks():
    values = np.array([1.0] * 9 + [0.0])
    even = drawn_ends(values, np.ones(10), 0.05)
    uneven = drawn_ends(values, np.array([91.0] + [1.0] * 9), 0.05)
    assert uneven[0] < even[0]


def test_many_distinct_values_are_quick_and_right():
    values = np.random.default_rng(2).random(5_000)
    low, high = drawn_ends(values, np.ones(5_000), 0.05)
    half = 1.645 * values.std() / 5_000**0.5
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=5e-4)
    assert drawn_ends(values, np.ones(5_000), 0.05, times=4)[0] > low
