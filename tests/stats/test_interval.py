"""Closed-form intervals against scipy and statsmodels."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from pennyweight.stats.interval import (
    binomial_interval,
    bounded_interval,
    quantile_ranks,
    rate_interval,
    t_interval,
    wilson_interval,
    z_quantile,
)


@pytest.mark.parametrize("n", [1, 2, 13, 1000])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_wilson(n, confidence):
    for k in {0, 1, n // 2, n}:
        low, high = wilson_interval(np.array([k / n]), np.array([n]), z_quantile(confidence))
        expected = proportion_confint(k, n, alpha=1 - confidence, method="wilson")
        assert (low.item(), high.item()) == pytest.approx(expected)


def test_t():
    low, high = t_interval(np.array([5.0]), np.array([2.0]), np.array([8]), 0.9)
    assert (low.item(), high.item()) == pytest.approx(stats.t.interval(0.9, 7, 5, 2))
    assert np.isnan(t_interval(np.array([5.0]), np.array([0.0]), np.array([1]), 0.9)[0])


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_ranks_have_the_coverage_they_promise(share):
    for n in range(2, 400, 7):
        low, high = (r.item() for r in quantile_ranks(share, np.array([n]), np.array([n]), 0.95))
        # the quantile lies between the order statistics when low ≤ Binomial(n, share) < high
        inside = stats.binom.cdf(high - 1, n, share) - stats.binom.cdf(low - 1, n, share)
        assert inside >= 0.95
        assert 0 <= low < high <= n + 1


def plain_lower(means, confidence):
    """Write Wilson's lower end of repeated tasks down, without arrays."""
    k = len(means)
    t = stats.t.ppf(0.5 + confidence / 2, k - 1)

    def wilson(p, n):
        root = t * math.sqrt(p * (1 - p) / n + t * t / (4 * n * n))
        return (p + t * t / (2 * n) - root) / (1 + t * t / n)

    more = [*means, 0.0]  # one task more, that failed
    middle = sum(more) / (k + 1)
    spread = sum((x - middle) ** 2 for x in more) / (k + 1) / (k + 2)
    size = middle * (1 - middle) / spread - 2
    rate = sum(means) / k
    return min(wilson(min(rate, middle * (size + 1) / size), size), rate * wilson(1.0, k))


def ends(hits, tries, confidence=0.95):
    means = np.asarray(hits) / tries
    n, k = np.array([float(means.size * tries)]), np.array([float(means.size)])
    error = np.array([means.std(ddof=1) / math.sqrt(means.size)])
    low, high = rate_interval(np.array([means.mean()]), error, n, k, confidence)
    return low.item(), high.item()


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(
    "hits", [[10] * 10, [9] + [10] * 9, [0] * 3 + [10] * 4, [5] * 6, [1, 2, 3, 9, 10]], ids=str
)
def test_repeated_tasks_against_a_plain_reference(hits, confidence):
    means = [h / 10 for h in hits]
    high = 1 - plain_lower([1 - m for m in means], confidence) if min(means) < 1 else 1.0
    assert ends(hits, 10, confidence) == pytest.approx((plain_lower(means, confidence), high))


def test_one_failure_does_not_make_ten_tasks_surer():
    sure, one, two = (ends([*hits, *[10] * (10 - len(hits))], 10) for hits in ([], [9], [9, 9]))
    assert sure[0] > one[0] > two[0]
    assert sure == pytest.approx((0.6615, 1.0), abs=1e-4)
    weighted = [
        bounded_interval(*(np.array([x]) for x in (value, error, 10.0)), 0.95)[0].item()
        for value, error in ((1.0, 0.0), (0.99, 0.01))
    ]
    assert weighted[0] > weighted[1]


@pytest.mark.parametrize(("tasks", "tries"), [(5, 2), (5, 20), (10, 10), (30, 5), (100, 2)])
def test_intervals_of_repeated_tasks_hold_whatever_the_tasks_are_like(tasks, tries):
    rng = np.random.default_rng(tasks * tries)
    draws = 2000
    some = rng.random((draws, tasks))
    worlds = {
        0.95 * 0.985: np.where(some < 0.05, 0, 0.985),
        0.895 * 0.985: np.where(some < 0.105, 0, 0.985),
        0.35: np.where(some < 0.3, 0, 0.5),
        0.9: rng.beta(2.7, 0.3, (draws, tasks)),
        0.8: rng.beta(16, 4, (draws, tasks)),
        0.5: np.full((draws, tasks), 0.5),
        0.98: np.full((draws, tasks), 0.98),
    }
    for truth, chances in worlds.items():
        means = rng.binomial(tries, chances) / tries
        error, k = means.std(axis=1, ddof=1) / math.sqrt(tasks), np.full(draws, float(tasks))
        low, high = rate_interval(means.mean(axis=1), error, k * tries, k, 0.95)
        assert np.mean((low <= truth) & (truth <= high)) >= 0.935, truth
    middle = ends([tries // 2] * tasks, tries)
    single = proportion_confint(tasks / 2, tasks, method="wilson")
    assert middle[1] - middle[0] <= single[1] - single[0] + 0.15 * (tasks == 5)


@pytest.mark.parametrize("n", [5, 20, 50, 200])
def test_an_interval_of_a_rate_holds_for_every_rate(n):
    hits = np.arange(n + 1.0)
    size = np.full(n + 1, float(n))
    low, high = rate_interval(hits / n, np.full(n + 1, np.nan), size, size, 0.95)
    assert np.array_equal(low, binomial_interval(hits, size, 0.95)[0])
    jumps = np.concatenate([low, high])  # the coverage is least beside the ends
    rates = np.concatenate([np.linspace(0.001, 0.999, 999), jumps - 1e-9, jumps + 1e-9])
    rates = rates[(rates > 0) & (rates < 1)]
    chance = stats.binom.pmf(hits[:, None], n, rates)
    held = (low[:, None] <= rates) & (rates <= high[:, None])
    coverage = (chance * held).sum(axis=0)
    assert coverage.min() >= 0.93
    if n >= 20:
        near = (rates >= 0.9) & (rates <= 0.999)
        wilson = wilson_interval(hits / n, size, z_quantile(0.95))
        widths = [chance.T @ (ends[1] - ends[0]) for ends in ((low, high), wilson)]
        assert widths[0][near].mean() <= 1.02 * widths[1][near].mean()


def test_many_ends_at_once_are_those_solved_one_by_one():
    rng = np.random.default_rng(4)
    n = rng.integers(1, 3000, 300).astype(float)
    hits = rng.binomial(n.astype(int), rng.random(300) ** 0.2).astype(float)
    n[:4], hits[:4] = [1, 1, 9, 10**6], [0, 1, 0, 10**6 - 1]
    for confidence in (0.5, 0.95, 0.9999):
        many = np.array(binomial_interval(hits, n, confidence))
        parts = [
            binomial_interval(hits[i : i + 30], n[i : i + 30], confidence)
            for i in range(0, 300, 30)
        ]
        assert many == pytest.approx(np.concatenate(parts, axis=1), abs=1e-11)
