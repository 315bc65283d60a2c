"""Paired comparisons agree with other implementations, and keep what they promise."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from bench.compare import Costs, Passes, Scores, paired, simulated
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as their_mcnemar
from statsmodels.stats.multitest import multipletests

from pennyweight.stats.interval import z_quantile
from pennyweight.stats.paired import (
    Paired,
    Tries,
    cliffs_delta,
    compare,
    holm,
    interval,
    mcnemar,
    tango,
    touching,
    weighted_interval,
    worth,
)

Z = z_quantile(0.95)


def rates(a, b, tries=1):
    tries_a, tries_b = tries if isinstance(tries, tuple) else (tries, tries)
    sides = [np.array(side, dtype=float) for side in (a, b)]
    counts = [np.full(len(a), float(n)) for n in (tries_a, tries_b)]
    return Paired(*sides, *counts, "rate")


@pytest.mark.parametrize(("more", "less"), [(0, 0), (1, 0), (5, 0), (6, 0), (9, 2), (40, 25)])
def test_mcnemar_is_that_of_statsmodels(more, less):
    theirs = their_mcnemar([[30, less], [more, 20]], exact=True).pvalue
    assert mcnemar(more, less) == pytest.approx(theirs)
    assert mcnemar(less, more) == pytest.approx(theirs)


def test_cliffs_delta_is_that_of_a_double_loop():
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 6, 23).astype(float), rng.integers(1, 7, 31).astype(float)
    pairs = [int(x > y) - int(x < y) for x, y in product(b, a)]
    assert cliffs_delta(a, b) == pytest.approx(sum(pairs) / len(pairs))
    assert cliffs_delta(a, a) == 0


@pytest.mark.parametrize(("more", "less", "n"), [(9, 2, 40), (1, 0, 12), (0, 0, 25), (12, 12, 30)])
def test_tangos_interval_ends_where_its_score_statistic_does(more, less, n):
    """The statistic is found again: by maximising the likelihood under each end, on a fine grid."""
    for end in tango(more / n, less / n, n, Z):
        least = np.linspace(max(0, -end), (1 - end) / 2, 400_001)[1:-1]
        alike = more * np.log(least + end) + less * np.log(least)
        alike += (n - more - less) * np.log(1 - 2 * least - end)
        q = least[alike.argmax()]
        statistic = (more - less - n * end) / math.sqrt(n * (2 * q + end - end * end))
        assert abs(statistic) == pytest.approx(Z, abs=0.01)


def test_tango_and_its_effective_size_agree_where_each_task_is_tried_once():
    rng = np.random.default_rng(1)
    paired = rates(rng.random(200) < 0.5, rng.random(200) < 0.7)
    assert worth(paired) == pytest.approx(200, rel=0.01)
    assert interval(paired, 0.95) == pytest.approx(tango(*paired.discordance, 200, Z))


@pytest.mark.parametrize("tries", [1, 3])
def test_results_that_never_differ_are_not_certain_to_be_equal(tries):
    for level in (0.0, 1.0):
        found = compare(rates([level] * 10, [level] * 10, tries), 0.95, 0)
        assert (found.value, found.p) == (0, 1)
        assert found.low < -0.2
        assert found.high > 0.2


def test_one_task_has_no_interval_and_shows_nothing():
    found = compare(rates([0.0], [1.0], 1), 0.95, 0)
    assert (found.low, found.high, found.p) == (None, None, 1.0)


def test_test_and_interval_never_contradict_each_other():
    rng = np.random.default_rng(2)
    for case in range(300):
        tries = (1, 3, 4)[case % 3]
        a, b = rng.binomial(tries, 0.5, 12) / tries, rng.binomial(tries, 0.75, 12) / tries
        found = compare(rates(a, b, tries), 0.95, 0)
        assert found.low <= found.value <= found.high
        if found.p > 0.05:
            assert found.low <= 0 <= found.high
        else:
            assert found.low >= 0 or found.high <= 0


@pytest.mark.parametrize(
    "system",
    [
        *(Passes(10, (1, 1)), Passes(10, (3, 3)), Passes(4, (10, 10)), Passes(20, (1, 5), (30, 1))),
        *(Passes(20, (2, 2), how="fixed"), Passes(20, (5, 5), (8, 2), how="unlike")),
        *(Passes(10, (10, 10), (85, 15), how="mixed"), Passes(20, (1, 5), how="mixed")),
        *(Costs(20, (3, 3)), Costs(20, (1, 10), 1.0), Scores(20, (1, 5)), Scores(10, (5, 1))),
        *(Costs(10, (2, 2), how="fixed"), Costs(20, (3, 3), how="mixed")),
        Scores(20, (5, 5), how="mixed"),
    ],
    ids=str,
)
def test_identical_systems_are_rarely_told_apart(system):
    told, held = simulated(system, 0.0, 500)
    assert told <= 0.08  # 6 % and what 500 draws may add; the bench draws 5,000
    assert held >= 0.92


@pytest.mark.parametrize(
    "system",
    [
        *(Passes(20, (1, 1)), Passes(10, (5, 5), (8, 2)), Costs(50, (3, 3))),
        *(Costs(20, (1, 10)), Scores(20, (1, 5))),
    ],
    ids=str,
)
def test_intervals_hold_the_true_difference(system):
    _, held = simulated(system, system.different, 300)
    assert held >= 0.915


def repeated(result, times):
    """Give each task the same result so many times, as a system without chance does."""
    return [np.repeat(np.array(side, dtype=float)[:, None], times, axis=1) for side in result]


@pytest.mark.parametrize("times", [2, 10])
@pytest.mark.parametrize("kind", ["rate", "score", "number"])
def test_repeated_results_say_no_more_than_single_ones(times, kind):
    """Eight tasks, five of which one side alone passes: McNemar's p is 1/16, however often."""
    result = [[0, 0, 0, 0, 0, 1, 1, 0], [1, 1, 1, 1, 1, 1, 1, 0]]
    once = compare(paired(*repeated(result, 1), kind), 0.95, 0)
    often = compare(paired(*repeated(result, times), kind), 0.95, 0)
    assert often == once
    assert once.p >= 2 / 2**5
    if kind == "rate":
        assert once.p == stats.binomtest(5, 5, 0.5).pvalue == 0.0625


@pytest.mark.parametrize("tries", [(1, 1), (3, 3), (10, 10)])
def test_few_tasks_cannot_show_what_holds_for_others(tries):
    sure = paired(np.zeros((5, tries[0])), np.ones((5, tries[1])), "rate")
    assert compare(sure, 0.95, 0).p == 0.0625


def test_a_side_that_always_wins_has_an_interval_too():
    found = compare(rates([0.0] * 12, [1.0] * 12, 3), 0.95, 0)
    assert (found.value, found.high) == (1.0, 1.0)
    assert 0 < found.low < 0.7
    assert found.p < 0.001


def test_a_side_that_never_fails_is_known_from_its_tasks_only():
    """Ten tasks passed ten times of ten: as a system that fails every sixth task does, often."""
    other = np.array([0.8, 0.9, 0.8, 0.9, 0.8, 0.9, 0.8, 0.9, 0.8, 0.9])
    found = compare(rates(other, np.ones(10), 10), 0.95, 0)
    assert found.p == pytest.approx(2 * 0.85**10)
    assert found.low < 0 < found.high
    worse = compare(rates(other - 0.4, np.ones(10), 10), 0.95, 0)
    assert worse.p == pytest.approx(2 / 2**10)
    assert worse.low == pytest.approx(0.025**0.1 - 0.45)
    turned = compare(rates(np.ones(10), other - 0.4, 10), 0.95, 0)
    assert (turned.low, turned.high) == pytest.approx((-worse.high, -worse.low))


def test_a_larger_difference_never_has_a_larger_p():
    for tasks, tries in ((6, 10), (12, 5), (30, 3)):
        found = [
            compare(rates([0.5] * tasks, [0.5 + k / tries / 2] * tasks, tries), 0.95, 0).p
            for k in range(tries + 1)
        ]
        assert found[0] == 1
        assert all(larger <= smaller for smaller, larger in pairwise(found))
        assert found[-1] < 0.05


@pytest.mark.parametrize("kind", ["score", "number"])
@pytest.mark.parametrize("even", [True, False])
def test_the_interval_at_the_level_of_its_p_ends_at_zero(kind, even):
    rng = np.random.default_rng(6)
    a, b = rng.beta(1, 8, (15, 3)), rng.beta(2, 6, (15, 3 if even else 1))
    values = paired(a, b, kind)
    low, high = interval(values, 1 - touching(values))
    assert min(abs(low), abs(high)) == pytest.approx(0, abs=1e-6)
    assert compare(values, 0.95, 0).p >= touching(values)


@pytest.mark.parametrize("tries", [(3, 3), (3, 2)])
def test_a_certain_difference_is_shown_among_many_comparisons(tries):
    for tasks in (20, 300):
        sure = rates([0.0] * tasks, [1.0] * tasks, tries)
        p = compare(sure, 0.95, 0, comparisons=1_000).p
        assert holm([p] + [1.0] * 999)[0] <= 0.05


@pytest.mark.parametrize("kind", ["number", "score"])
def test_rounding_is_no_variation(kind):
    ones = np.ones(60)
    alike = Paired(0.1 * ones, np.where(np.arange(60) % 2, 0.1 + 0.2, 0.3), ones, ones, kind)
    assert np.ptp(alike.differences) > 0
    assert alike.variance == 0
    found = compare(alike, 0.95, 0)
    assert found.p < 0.001
    if kind == "number":
        assert (found.low, found.high) == (None, None)
    else:
        assert found.high - found.low > 0.1


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_holm_is_that_of_statsmodels(count):
    p_values = (np.random.default_rng(count).random(count) ** 3).tolist()
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


def test_equal_and_no_p_values():
    assert holm([0.02, 0.02, 0.9]) == pytest.approx([0.06, 0.06, 0.9])
    assert holm([]) == []


def test_noise_is_the_pooled_variance_of_each_unit_averaged_by_task():
    tries = Tries(
        values=np.array([1.0, 2.0, 4.0, 10.0, 20.0, 30.0, 5.0, 5.0, 8.0]),
        first=np.array([1, 2, 1]),
        second=np.array([2, 1, 2]),
        tasks=np.array([0, 0, 1]),
    )
    units = [2.0 / 1 * (1 + 1 / 2), 50.0 / 1 * (1 / 2 + 1), 4.5 / 1 * (1 + 1 / 2)]
    assert tries.noise == pytest.approx([(units[0] + units[1]) / 4, units[2]])


def pair(a, b, kind="rate"):
    flat = np.ones(len(a))
    return Paired(np.asarray(a, float), np.asarray(b, float), flat, flat, kind)


def test_equal_weights_give_hardly_more_than_none_do():
    rng = np.random.default_rng(1)
    a, b = rng.random(200) < 0.8, rng.random(200) < 0.7
    plain = interval(pair(a, b), 0.9)
    weighted = weighted_interval(pair(a, b), np.full(200, 3.0), 0.9)
    assert weighted == pytest.approx(plain, abs=0.005)
    assert weighted[0] <= plain[0] < plain[1] <= weighted[1]


def test_tasks_of_weight_0_do_not_count():
    a, b = np.ones(60), np.ones(60)
    b[50:] = 0
    weights = np.where(np.arange(60) < 50, 2.0, 0.0)
    some = weighted_interval(pair(a[:50], b[:50]), weights[:50], 0.9)
    assert weighted_interval(pair(a, b), weights, 0.9) == pytest.approx(some)


def test_a_task_that_outweighs_the_others_leaves_it_open():
    weights = np.ones(100)
    weights[0] = 10_000
    low, high = weighted_interval(pair(np.ones(100), np.ones(100)), weights, 0.9)
    assert low < -0.7
    assert high > 0.7


@pytest.mark.parametrize("kind", ["rate", "score"])
def test_each_end_is_wrong_as_seldom_as_stated(kind):
    rng = np.random.default_rng(5)
    tasks, times = 120, 600
    weights = np.where(np.arange(tasks) < 30, 4.0, 1.0)
    chance = np.where(np.arange(tasks) < 30, 0.7, 0.9)  # both sides, so the truth is 0
    below = above = 0
    for _ in range(times):
        sides = [rng.random(tasks) < chance for _ in range(2)]
        if kind == "score":
            sides = [rng.beta(8 * chance, 8 * (1 - chance)) for _ in range(2)]
        low, high = weighted_interval(pair(*sides, kind), weights, 0.9)
        below += high < 0
        above += low > 0
    assert below <= 0.075 * times
    assert above <= 0.075 * times
    assert below + above >= 0.01 * times  # and it is not just wide
