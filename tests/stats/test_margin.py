"""Tests against a margin agree with other implementations, and are wrong as seldom as stated."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired

from pennyweight.stats.margin import margin_test
from pennyweight.stats.paired import Paired


def pair(a, b, kind="rate"):
    ones = np.ones(len(a))
    return Paired(np.asarray(a, float), np.asarray(b, float), ones, ones, kind)


def test_equivalence_of_means_is_that_of_statsmodels():
    """Differences without skew, of numbers with both signs: two t-tests."""
    rng = np.random.default_rng(1)
    half = rng.normal(size=20)
    noise = 0.3 * np.concatenate([half, -half])
    a = rng.normal(size=40)
    b = a + 0.05 + noise
    found = margin_test(pair(a, b, "number"), 0.2, 0.95, relative=False)
    theirs, lower, upper = ttost_paired(b, a, -0.2, 0.2)
    assert found.p_equivalent == pytest.approx(theirs, rel=1e-3)
    assert found.p_above == pytest.approx(lower[1], rel=1e-3)
    assert found.p_below == pytest.approx(upper[1], rel=1e-3)
    ends = stats.t.interval(0.9, 39, (b - a).mean(), stats.sem(b - a))
    assert (found.low, found.high) == pytest.approx(ends, rel=1e-3)


@pytest.mark.parametrize(("more", "less", "n"), [(3, 5, 200), (0, 0, 150), (12, 10, 300)])
def test_passes_are_tested_by_the_score_statistic(more, less, n):
    a = np.array([0] * more + [1] * less + [1] * (n - more - less))
    b = np.array([1] * more + [0] * less + [1] * (n - more - less))
    found = margin_test(pair(a, b), 0.05, 0.95, relative=False)
    end = -0.05
    least = np.linspace(max(0, -end), (1 - end) / 2, 400_001)[1:-1]
    likely = more * np.log(least + end) + less * np.log(least)
    likely += (n - more - less) * np.log(1 - 2 * least - end)
    q = least[likely.argmax()]
    score = (more - less - n * end) / math.sqrt(n * (2 * q + end - end * end))
    assert found.p_above == pytest.approx(stats.norm.sf(score), rel=0.02)


def test_a_test_is_significant_where_its_end_is_inside():
    rng = np.random.default_rng(4)
    for margin in (0.05, 0.1, 0.3):
        base = rng.lognormal(size=30)
        values = pair(base, base * rng.lognormal(0.02, 0.2, 30), "number")
        found = margin_test(values, margin, 0.95, relative=True)
        assert (found.p_above <= 0.05) == (found.low >= 1 - margin)
        assert (found.p_below <= 0.05) == (found.high <= 1 + margin)


def test_results_without_variation_show_nothing():
    ones = np.ones(30)
    assert margin_test(pair(ones, 2 * ones, "number"), 0.1, 0.95, relative=False) is None
    assert margin_test(pair([1], [1]), 0.1, 0.95, relative=False) is None
    never = margin_test(pair(ones, ones), 0.02, 0.95, relative=False)
    assert never.p_equivalent > 0.05


@pytest.mark.parametrize("kind", ["passes", "costs"])
def test_a_side_that_is_worse_by_the_margin_is_seldom_called_no_worse(kind):
    rng, wrong = np.random.default_rng(9), 0
    for _ in range(300):
        if kind == "passes":
            values = pair(rng.random(60) < 0.85, rng.random(60) < 0.75)
            wrong += margin_test(values, 0.1, 0.95, relative=False).p_above <= 0.05
        else:
            values = pair(np.ones(20), 1.2 * rng.lognormal(-0.5, 1.0, 20), "number")
            wrong += margin_test(values, 0.2, 0.95, relative=True).p_below <= 0.05
    assert wrong <= 0.08 * 300  # 5 %, and what 300 draws may add
