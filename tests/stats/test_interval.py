"""Closed-form intervals against scipy and statsmodels."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from assay.stats.interval import quantile_ranks, t_interval, wilson_interval, z_quantile


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
