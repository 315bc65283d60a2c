import numpy as np
import pytest
from bench.compare import Passes, power
from statsmodels.stats.power import TTestPower

from pennyweight.stats.paired import Paired, mcnemar
from pennyweight.stats.power import Design
from pennyweight.stats.sign_flips import sign_flip

SURE = 10**9
"""A design known so well that nothing has to be averaged."""


def test_power_of_means_is_that_of_statsmodels():
    design = Design(once=False, discordance=None, spread=2.0, seen=SURE)
    theirs = TTestPower()
    for tasks, difference in ((12, 1.5), (50, 0.6), (400, 0.3)):
        expected = theirs.power(difference / 2, tasks, 0.05)
        assert design.power(tasks, difference) == pytest.approx(expected, abs=0.002)
    needed = theirs.solve_power(0.25, power=0.8, alpha=0.05)
    assert design.tasks_needed(0.5) == pytest.approx(needed, abs=2)
    assert design.power(30, design.detectable(30)) == pytest.approx(0.8, abs=0.001)


def test_power_of_single_tries_is_what_draws_give():
    design = Design(once=True, discordance=0.3, spread=0.55, seen=SURE)
    stated = design.power(60, 0.2)
    discordance = 0.3 + 0.2**2 / 2
    shares = [(discordance + 0.2) / 2, (discordance - 0.2) / 2, 1 - discordance]
    drawn = np.random.default_rng(1).multinomial(60, shares, 4000)
    assert np.mean([mcnemar(int(m), int(n)) <= 0.05 for m, n, _ in drawn]) == pytest.approx(
        stated, abs=0.025
    )


def test_more_tasks_see_smaller_differences():
    design = Design(once=True, discordance=0.3, spread=0.55, seen=50)
    seen = [design.detectable(tasks) for tasks in (20, 80, 320, 5_000)]
    assert seen == sorted(seen, reverse=True)
    needed = design.tasks_needed(0.05)
    assert needed is not None
    assert design.detectable(needed) == pytest.approx(0.05, abs=0.002)


def test_too_few_tasks_see_nothing():
    ones = np.ones(4)
    paired = Paired(np.zeros(4), ones, ones, ones, "rate")
    assert Design.of(paired).detectable(4) is None
    same = Paired(ones, ones, ones, ones, "number")
    assert Design.of(same).detectable(4) is None


def test_results_that_never_differ_still_tell_what_could_be_seen():
    ones = np.ones(30)
    seen = Design.of(Paired(ones, ones, ones, ones, "rate")).detectable(30)
    assert 0.1 < seen < 0.4


@pytest.mark.parametrize(
    "system",
    [
        *(Passes(50, (1, 1)), Passes(20, (3, 3), (3, 6)), Passes(50, (5, 5))),
        *(Passes(20, (2, 2), how="fixed"), Passes(20, (5, 5), how="unlike")),
    ],
    ids=str,
)
@pytest.mark.parametrize("comparisons", [1, 7])
def test_stated_power_is_that_of_the_corrected_decision(system, comparisons):
    seen = power(system, 250, comparisons)
    assert seen == pytest.approx(0.8, abs=0.09)  # of 250 draws; the bench: 0.05


def test_few_flips_cannot_be_corrected_for_many_comparisons():
    ones = np.ones(8)
    costs = Paired(ones, ones + np.arange(8.0), ones, ones, "number")
    assert Design.of(costs).detectable(8, 0.05) is not None
    assert Design.of(costs).detectable(8, 0.05 / 7) is None


def test_repeated_results_see_no_more_than_single_ones():
    a, b = np.array([0.0] * 12 + [1.0] * 8), np.array([0.0, 1.0] * 10)
    seen = [
        Design.of(Paired(a, b, np.full(20, n), np.full(20, n), "rate")).detectable(20)
        for n in (1.0, 5.0)
    ]
    assert seen[0] == seen[1]


def test_coarse_steps_see_less():
    fine, coarse = (Design(False, 0.3, 0.3, 30, 0.1, 0.5, step) for step in (0.0, 0.5))
    assert fine.power(30, 0.15) > coarse.power(30, 0.15) + 0.03


def test_what_few_tasks_see_is_what_flips_of_draws_give():
    """Twelve tasks among fifty comparisons: two patterns of signs may be as extreme."""
    design = Design(once=False, discordance=None, spread=1.0, seen=SURE)
    level, rng = 0.001, np.random.default_rng(2)
    shown = [sign_flip(rng.normal(1.5, 1, 12), 0)[0] <= level for _ in range(1_000)]
    assert design.power(12, 1.5, level) == pytest.approx(np.mean(shown), abs=0.06)


def test_rounding_is_not_seen_as_a_small_spread():
    ones = np.ones(10)
    alike = Paired(0.1 * ones, np.where(np.arange(10) % 2, 0.1 + 0.2, 0.3), ones, ones, "number")
    assert Design.of(alike).detectable(10) is None
