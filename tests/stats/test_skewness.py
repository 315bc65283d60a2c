"""Intervals of skewed means: against a plain formula, and on simulated data whose mean is known."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from pennyweight.stats.skewness import mean_interval


def plain_interval(values, confidence, bounds=(None, None)):
    """Write the interval of a mean of unequal values down, without arrays."""
    n, mean = len(values), sum(values) / len(values)
    squares = sum((v - mean) ** 2 for v in values)
    error = math.sqrt(squares / (n - 1) / n)
    skew = sum((v - mean) ** 3 for v in values) / squares**1.5
    t, z = stats.t.ppf(0.5 + confidence / 2, n - 1), stats.norm.ppf(0.5 + confidence / 2)

    def half(tail):
        x = min(max(2 / 3 * z * tail, -1.55), 1.55)
        return t * error * (math.exp(x) - 1) / x if x else t * error

    low, high = bounds
    up, down = max(2 * skew, 0), max(-2 * skew, 0)
    if low is not None and high is None:
        up = max(up, 6 * error / (mean - low))
        down = down if skew < 0 else max(-skew, -1.5 * error / (mean - low))
    if low is not None and high is not None:
        gaps = mean - low, high - mean
        most = [gap / (error * n) - error / gap for gap in gaps]
        up = max(0, min(max(up, 2.5 * error / gaps[0]), most[1]))
        down = max(0, min(max(down, 2.5 * error / gaps[1]), most[0]))
    ends = mean - half(down), mean + half(up)
    return (
        ends[0] if low is None else max(low, ends[0]),
        ends[1] if high is None else min(high, ends[1]),
    )


def moments(values):
    """Return what an interval is computed from, of data sets in rows."""
    n, mean = values.shape[1], values.mean(axis=1)
    apart = values - mean[:, None]
    squares = np.square(apart).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        skew = (apart**3).sum(axis=1) / squares**1.5
    return mean, np.sqrt(squares / max(n - 1, 1) / n), skew, np.full(len(values), float(n))


def both(values, confidence=0.95, bounds=(0, None)):
    found = mean_interval(*moments(np.array([values], dtype=float)), confidence, bounds)
    return tuple(end.item() for end in found)


@pytest.mark.parametrize("bounds", [(None, None), (0, None), (0, 1)])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_the_interval_is_the_written_down_formula(bounds, confidence):
    rng = np.random.default_rng(1)
    for values in (rng.beta(0.3, 3, 12), rng.beta(9, 1, 40), rng.random(2), 1 - rng.beta(1, 9, 5)):
        expected = plain_interval(values.tolist(), confidence, bounds)
        assert both(values, confidence, bounds) == pytest.approx(expected)


def test_it_is_students_for_values_that_show_no_skewness():
    values = 1_000_000 + np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    expected = stats.t.interval(0.95, 4, values.mean(), stats.sem(values))
    assert both(values) == pytest.approx(expected, abs=1e-3)
    assert both(values, bounds=(None, None)) == pytest.approx(expected)
    assert all(map(math.isnan, both([3.0])))


@pytest.mark.parametrize("bounds", [(None, None), (0, None), (0, 1)])
def test_a_higher_confidence_is_never_narrower(bounds):
    values = np.random.default_rng(2).beta(0.5, 4, 9)
    ends = [both(values, level, bounds) for level in (0.5, 0.8, 0.9, 0.95, 0.99, 0.9999)]
    assert all(b[0] <= a[0] and a[1] <= b[1] for a, b in pairwise(ends))


def test_equal_values_are_no_certainty():
    assert both([0.1] * 2)[1] > 1.0
    widths = [high - low for low, high in (both([0.1] * n) for n in (2, 5, 20, 100, 1000))]
    assert widths == sorted(widths, reverse=True)
    assert both([0.1] * 1000) == pytest.approx((0.1, 0.1), abs=0.001)
    assert both([0.3, 0.1 + 0.2])[1] > 1.0  # they differ by a rounding error
    assert both([0.0] * 5) == (0.0, 0.0)
    assert all(map(math.isnan, both([5.0] * 5, bounds=(None, None))))


@pytest.mark.parametrize(
    ("draw", "truth", "bounds", "wrong"),
    [
        (lambda rng: rng.lognormal(0, 0.7, (4000, 20)), math.exp(0.245), (0, None), 0.06),
        (lambda rng: rng.lognormal(0, 1, (4000, 20)), math.exp(0.5), (0, None), 0.06),
        (lambda rng: rng.lognormal(0, 1, (4000, 50)), math.exp(0.5), (0, None), 0.06),
        (lambda rng: rng.lognormal(0, 1.5, (4000, 50)), math.exp(1.125), (0, None), 0.08),
        (lambda rng: rng.weibull(0.7, (4000, 20)), math.gamma(1 + 1 / 0.7), (0, None), 0.06),
        (lambda rng: rng.poisson(5, (4000, 20)), 5, (0, None), 0.06),
        (lambda rng: rng.normal(1, 0.1, (4000, 20)), 1, (0, None), 0.06),
        (lambda rng: rng.beta(19, 0.2, (4000, 50)), 19 / 19.2, (0, 1), 0.06),
        (lambda rng: rng.random((4000, 20)), 0.5, (0, 1), 0.06),
    ],
)
def test_intervals_hold_the_mean_of_skewed_values(draw, truth, bounds, wrong):
    mean, *rest = moments(draw(np.random.default_rng(3)).astype(float))
    low, high = mean_interval(mean, *rest, 0.95, bounds)
    assert np.mean((low <= truth) & (truth <= high)) > 0.93
    ideal = np.subtract(*np.quantile(mean, [0.975, 0.025]))
    assert np.median(high - low) < 1.5 * ideal
    low, high = mean_interval(mean, *rest, 0.9, bounds)  # a gate at 5 % uses one of these ends
    assert max(np.mean(high < truth), np.mean(low > truth)) < wrong
