"""Paired comparisons agree with other implementations, and keep what they promise."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from bench.compare import Costs, Passes, Scores, paired, simulated
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as their_mcnemar

from assay.stats.compare import (
    MCNEMAR,
    Paired,
    cliffs_delta,
    compare,
    interval,
    mcnemar,
    sign_flip,
    tango,
    worth,
)
from assay.stats.dealing import Tries, dealt_out, hypergeometric
from assay.stats.interval import z_quantile
from assay.stats.multiple import holm

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


def test_flips_of_few_tasks_are_those_of_scipy():
    values = np.array([0.3, -0.1, 0.4, 0.25, 0.0, 0.5, -0.2, 0.35, 0.1])
    theirs = stats.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    p, method = sign_flip(values, seed=0)
    assert p == pytest.approx(theirs.pvalue)
    assert method == "exact sign-flip permutation"


def test_flips_of_many_tasks_come_near_to_those_of_scipy():
    values = np.random.default_rng(3).normal(0.25, 1, 80)
    theirs = stats.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=20_000, rng=1
    )
    p, method = sign_flip(values, seed=0)
    assert p == pytest.approx(theirs.pvalue, abs=0.01)
    assert method == "sign-flip permutation"
    assert sign_flip(values, seed=0) == (p, method)


def test_flips_in_blocks_come_near_to_students_test():
    values = np.random.default_rng(5).normal(0.03, 1, 5_000)
    p, _ = sign_flip(values, seed=0)
    assert p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, abs=0.02)


def test_cliffs_delta_is_that_of_a_double_loop():
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 6, 23).astype(float), rng.integers(1, 7, 31).astype(float)
    pairs = [int(x > y) - int(x < y) for x, y in product(b, a)]
    assert cliffs_delta(a, b) == pytest.approx(sum(pairs) / len(pairs))
    assert cliffs_delta(a, a) == 0


@pytest.mark.parametrize(("more", "less", "n"), [(9, 2, 40), (1, 0, 12), (0, 0, 25), (12, 12, 30)])
def test_tangos_interval_ends_where_its_score_statistic_does(more, less, n):
    """The statistic is found anew: by maximising the likelihood under each end, on a fine grid."""
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


def test_a_side_that_always_wins_has_an_interval_too():
    found = compare(rates([0.0] * 12, [1.0] * 12, 3), 0.95, 0)
    assert (found.value, found.high) == (1.0, 1.0)
    assert 0 < found.low < 0.7
    assert found.p < 0.001


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


def test_tries_that_are_unequal_are_dealt_out_anew():
    rng = np.random.default_rng(8)
    ease = rng.beta(2, 2, 25)
    a, b = rng.binomial(2, ease) / 2, rng.binomial(5, np.minimum(ease + 0.4, 1)) / 5
    found = compare(rates(a, b, (2, 5)), 0.95, 0)
    assert found.method == "within-task permutation"
    assert found.p < 0.01
    assert compare(rates(a > 0, b > 0), 0.95, 0).method == MCNEMAR


def test_more_tries_of_the_same_results_say_no_more_than_the_tasks_do():
    """Tasks that always agree with themselves are worth their number, however often tried."""
    rng = np.random.default_rng(9)
    a, b = (rng.random(40) < 0.4).astype(float), (rng.random(40) < 0.7).astype(float)
    once, often = (compare(rates(a, b, n), 0.95, 0) for n in (1, 10))
    assert often.high - often.low == pytest.approx(once.high - once.low, rel=0.1)


@pytest.mark.parametrize(
    "system",
    [
        *(Passes(10, (1, 1)), Passes(10, (3, 3)), Passes(4, (10, 10)), Passes(20, (1, 5), (30, 1))),
        *(Costs(20, (3, 3)), Costs(20, (1, 10), 1.0), Scores(20, (1, 5)), Scores(10, (5, 1))),
    ],
    ids=str,
)
def test_identical_systems_are_rarely_told_apart(system):
    told, held = simulated(system, 0.0, 500)
    assert told <= 0.08  # 6 % and what 500 draws may add; the bench draws 2,000
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


@pytest.mark.parametrize("case", [(0, 3, 3), (6, 3, 3), (4, 1, 5), (1, 5, 1), (150, 200, 100)])
def test_tries_are_dealt_out_by_the_hypergeometric_distribution(case):
    passed, first, second = case
    theirs = stats.hypergeom.cdf(np.arange(second + 1), first + second, passed, second)
    assert hypergeometric(*case) == pytest.approx(theirs)


@pytest.mark.parametrize(
    ("a", "b", "tries", "p"),
    [
        ([0.5] * 4, [0.51] * 4, 100, 0.70),
        ([0.1] * 4, [0.9, 0.5, 0.9, 0.4], 100, 0.0001),
        ([0.0] * 3, [1.0, 1.0, 0.5], 10, 0.0001),
        ([0.0] * 3, [0.2] * 3, 10, 0.022),
        ([0.5] * 5, [0.55] * 5, 20, 0.35),
    ],
)
def test_differences_that_are_alike_are_not_large_for_that(a, b, tries, p):
    found = compare(rates(a, b, tries), 0.95, 0)
    assert found.method == "within-task permutation"
    assert found.p == pytest.approx(p, rel=0.15)


def test_a_larger_difference_never_has_a_larger_p():
    for tasks, tries in ((3, 10), (4, 100), (12, 5)):
        steps = range(0, tries // 2 + 1, max(1, tries // 20))
        found = [
            compare(rates([0.5] * tasks, [0.5 + k / tries] * tasks, tries), 0.95, 0).p
            for k in steps
        ]
        assert found[0] == 1
        assert all(larger <= smaller + 0.01 for smaller, larger in pairwise(found))
        assert found[-1] < 0.05


def test_two_tries_dealt_out_have_the_p_of_all_deals():
    """One task, 2 and 3 tries: of ten deals two give the largest sum or the smallest one."""
    a, b = np.array([[1.0, 2.0]]), np.array([[3.0, 5.0, 9.0]])
    found = paired(a, b, "number")
    split = [(x, y) for x in range(5) for y in range(x)]
    values, truth = np.array([1.0, 2.0, 3.0, 5.0, 9.0]), []
    for pick in split:
        rest = [i for i in range(5) if i not in pick]
        truth.append(values[rest].mean() - values[list(pick)].mean())
    assert found.each.own == pytest.approx(found.differences)
    assert found.each.null[0] == pytest.approx(np.var(truth))
    share = np.mean(np.abs(truth) >= abs(truth[0]) - 1e-9)
    assert dealt_out(found.each, 0, 0.05) == pytest.approx(share, abs=0.02)


def test_units_of_a_task_are_dealt_out_apart_and_averaged():
    tries = Tries(
        values=np.array([1.0, 2.0, 4.0, 10.0, 20.0, 30.0, 5.0, 5.0, 8.0]),
        first=np.array([1, 2, 1]),
        second=np.array([2, 1, 2]),
        tasks=np.array([0, 0, 1]),
    )
    assert tries.own == pytest.approx([(2 + 15) / 2, 1.5])
    dealt = tries.deal(20_000, np.random.default_rng(1))
    assert dealt.mean(axis=0) == pytest.approx([0, 0], abs=0.15)
    assert dealt.var(axis=0) == pytest.approx(tries.null, rel=0.03)
    assert np.all(np.ptp(dealt, axis=0) <= tries.reach + 1e-9)


@pytest.mark.parametrize("tries", [(3, 3), (3, 2)])
def test_a_certain_difference_is_shown_among_many_comparisons(tries):
    for tasks in (6, 20, 300):
        sure = rates([0.0] * tasks, [1.0] * tasks, tries)
        p = compare(sure, 0.95, 0, comparisons=1_000).p
        assert holm([p] + [1.0] * 999)[0] <= 0.05


def test_few_tasks_that_cannot_be_certain_are_not():
    ones = np.ones(6)
    costs = Paired(ones, 2 * ones + np.arange(6), ones, ones, "number")
    assert compare(costs, 0.95, 0, comparisons=1_000).p == pytest.approx(2 / 2**6)


def test_a_p_beyond_the_first_draws_is_near_the_true_one():
    """Twenty signs: all patterns can be gone through."""
    values = np.concatenate([np.full(18, 1.0), [-0.25, -0.5]])
    signs = 1 - 2 * ((np.arange(2**20)[:, None] >> np.arange(20)) & 1).astype(np.int8)
    true = float(np.mean(np.abs(signs @ values) >= values.sum() - 1e-9))
    for seed in range(3):
        p, _ = sign_flip(values, seed, bar=0.05 / 2_000)
        assert true / 5 <= p < 0.05 / 2_000


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
