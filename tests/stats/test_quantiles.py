"""Quantiles against SciPy's."""

import numpy as np
import pytest
from scipy import special, stats

from pennyweight.stats.quantiles import (
    beta_share,
    binomial_low,
    binomial_quantile,
    normal_quantile,
    student_quantile,
)

PROBABILITIES = [0.5, 0.6, 0.9, 0.95, 0.975, 0.995, 0.9995, 0.999995, 0.025, 0.001]


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_normal(probability):
    assert normal_quantile(probability) == pytest.approx(special.ndtri(probability), rel=1e-14)


@pytest.mark.parametrize("probability", PROBABILITIES)
@pytest.mark.parametrize(
    "degrees", [1, 1.5, 2, 3, 9, 9.37, 31, 99, 250.5, 999, 1_999.9, 2_000, 10_000, 5e6]
)
def test_student(degrees, probability):
    expected = special.stdtrit(degrees, probability)
    assert student_quantile(degrees, probability) == pytest.approx(expected, rel=5e-12)


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99, 0.05, 0.001])
@pytest.mark.parametrize("n", [1, 2, 5, 20, 59, 100, 1_000, 12_345, 1_000_000])
def test_binomial(n, share):
    for probability in (0.005, 0.025, 0.5, 0.975, 0.995):
        found = binomial_quantile(probability, n, share)
        assert found == stats.binom.ppf(probability, n, share)
        assert stats.binom.cdf(found, n, share) >= probability * (1 - 1e-12)


def test_beta():
    draw = np.random.default_rng(7)
    for a, b in draw.lognormal(2, 2, (500, 2)).tolist():
        x = draw.random()
        expected = special.betainc(a, b, x)
        assert beta_share(a, b, x, 1 - x) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("own", [0.5, 2 / 3, 1.0])
@pytest.mark.parametrize(("hits", "n"), [(1, 2), (9, 10), (48, 50), (500, 1000), (99_990, 100_000)])
def test_a_lower_end_of_a_rate_has_the_probability_it_is_asked_for(hits, n, own):
    at = binomial_low(hits, n, 0.025, own)
    found = stats.binom.sf(hits, n, at) + own * stats.binom.pmf(hits, n, at)
    assert found == pytest.approx(0.025, rel=1e-6)
    assert binomial_low(0, n, 0.025, own) == 0
    assert binomial_low(n, n, 0.025, own) == pytest.approx((0.025 / own) ** (1 / n))
