"""Means of skewed values agree with plain references, and are not trusted too early."""

import math
import statistics

import numpy as np
import pytest
from scipy import stats

from pennyweight.stats.paired import Paired, compare, interval
from pennyweight.stats.skewed import LongTail, hall_distance, hall_ends, skewness


def plain_long_tail(a, b, level):
    """Write the same formula with SciPy's distributions and plain loops, for light = 1."""
    logs_a, logs_b = [math.log(x) for x in a], [math.log(x) for x in b]
    sizes = [x + y for x, y in zip(logs_a, logs_b, strict=True)]
    ratios = [y - x for x, y in zip(logs_a, logs_b, strict=True)]
    n = len(a)
    fit = stats.linregress(sizes, ratios)
    of_sizes = statistics.variance(sizes)
    t, other = stats.t.ppf(1 - level / 2, n - 1), stats.t.ppf(1 - level / 2, n - 2)
    mean = t**2 * statistics.variance(ratios) / n
    relation = (other * fit.stderr * of_sizes / 2) ** 2
    excess = (statistics.variance(logs_b) - statistics.variance(logs_a)) / 2
    chi = stats.chi2(n - 1)
    longer, shorter = (n - 1) / chi.ppf(level / 2) - 1, 1 - (n - 1) / chi.ppf(1 - level / 2)
    up, down = (longer, shorter) if excess > 0 else (shorter, longer)
    return (
        math.sqrt(mean + relation + (excess * down) ** 2),
        math.sqrt(mean + relation + (excess * up) ** 2),
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_halves_are_those_of_a_plain_reference(seed):
    rng = np.random.default_rng(seed)
    logs = rng.normal(size=(2, 15))
    logs = np.concatenate([logs, -logs], axis=1)  # symmetric, so that no tail counts as light
    base, noise = np.exp(0.5 * logs[0]), np.exp((1.2 if seed % 2 else 0.2) * logs[1])
    a, b = (base * noise, base) if seed == 3 else (base, base * noise)
    tail = LongTail.of(a, b)
    relative = np.var(b / b.mean() - a / a.mean(), ddof=1)
    light = math.sqrt(min(1, relative / np.var(np.log(b / a), ddof=1)))
    found = [float(x) for x in tail.halves(0.05)]
    if light == 1:
        assert found == pytest.approx(plain_long_tail(a.tolist(), b.tolist(), 0.05))
    else:
        assert all(x <= y for x, y in zip(found, plain_long_tail(a, b, 0.05), strict=True))
    low, high = (float(end) for end in tail.ratio(0.05))
    assert (low, high) == pytest.approx(
        (math.log(b.mean() / a.mean()) - found[0], math.log(b.mean() / a.mean()) + found[1])
    )


def test_many_results_at_once_are_the_same_as_one_by_one():
    rng = np.random.default_rng(5)
    a, b = rng.lognormal(size=(2, 6, 12))
    b[0, :4] = 0
    ends = LongTail.of(a, b).difference(0.1)
    for row in range(6):
        one = LongTail.of(a[row], b[row]).difference(0.1)
        assert [float(end[row]) for end in ends] == pytest.approx([float(end) for end in one])


def test_halls_interval_ends_at_zero_at_the_level_of_its_distance():
    for skew in (-2.0, 0.0, 2.0):
        for value in (-0.7, 0.7):
            distance = float(hall_distance(np.array(value / 1.5), np.array(skew), 25))
            level = 2 * stats.t.sf(distance, 24)
            low, high = hall_ends(value, 1.5, skew, 25, 1 - level)
            assert min(abs(low), abs(high)) == pytest.approx(0, abs=1e-9)


def test_skewness_is_that_of_scipy():
    values = np.random.default_rng(3).lognormal(size=30)
    found = skewness(values, float(values.std(ddof=1)))
    assert found == pytest.approx(stats.skew(values, bias=False))


def numbers(a, b):
    ones = np.ones(len(a))
    return Paired(np.asarray(a, float), np.asarray(b, float), ones, ones, "number")


def told_apart(tasks, times, draw):
    rng = np.random.default_rng([tasks, times])
    return np.mean([compare(numbers(*draw(rng, tasks)), 0.95, 0).p <= 0.05 for _ in range(times)])


def tailed(rng, tasks, spread):
    return rng.lognormal(-(spread**2) / 2, spread, tasks)


@pytest.mark.parametrize(("tasks", "spread"), [(10, 1.5), (20, 1.5), (20, 1.0)])
def test_a_steady_side_is_rarely_told_apart_from_one_with_a_long_tail(tasks, spread):
    steady = told_apart(tasks, 300, lambda rng, n: (tailed(rng, n, 0.2), tailed(rng, n, spread)))
    assert steady <= 0.06


def test_sides_that_differ_on_few_tasks_are_rarely_told_apart():
    def draw(rng, n):
        same, differ = tailed(rng, n, 0.7), rng.random(n) < 0.6
        return np.where(differ, 1.0, same), np.where(differ, tailed(rng, n, 1.0), same)

    assert told_apart(20, 300, draw) <= 0.06


def test_sides_that_agree_on_what_is_dear_are_still_told_apart():
    def draw(rng, n):
        base = tailed(rng, n, 1.0)
        return base * tailed(rng, n, 0.05), 1.1 * base * tailed(rng, n, 0.05)

    assert told_apart(20, 200, draw) >= 0.8


def test_costs_and_what_is_left_of_a_budget_have_mirrored_intervals():
    rng = np.random.default_rng(8)
    a, b = tailed(rng, 12, 0.3), tailed(rng, 12, 1.2)
    low, high = interval(numbers(a, b), 0.9)
    assert interval(numbers(-a, -b), 0.9) == pytest.approx((-high, -low))


@pytest.mark.parametrize("tasks", [2, 3, 12])
def test_zeros_and_mixed_signs_have_finite_intervals(tasks):
    rng = np.random.default_rng(tasks)
    a, b = tailed(rng, tasks, 1.0), tailed(rng, tasks, 1.0)
    for x, y in ((0 * a, b), (a, np.where(np.arange(tasks), b, 0)), (a, b - 1), (1e200 * a, b)):
        values, unit = numbers(x, y).rescaled()
        ends = interval(values, 0.95)
        assert all(math.isfinite(end * unit) for end in ends)
        assert 0 <= compare(values, 0.95, 0).p <= 1


def test_few_tasks_with_a_long_tail_are_doubtful():
    tail = np.exp(1.5 * stats.norm.ppf((np.arange(200) + 0.5) / 200))
    few = LongTail.of(np.ones(10), tail[::20])
    assert few.doubtful(0.05)
    assert not LongTail.of(np.ones(200), tail).doubtful(0.05)
    assert not LongTail.of(tail[::20], 2 * tail[::20]).doubtful(0.05)
