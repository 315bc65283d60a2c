"""Ranks against plain references, and how often their ranges are right."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import special

from pennyweight.stats import paired
from pennyweight.stats.ranks import (
    discriminations,
    frontier_shares,
    in_blocks,
    largest_t,
    open_ranks,
    rank_ranges,
    rasch_difficulties,
)
from pennyweight.stats.sign_flips import sign_flip


def told_apart(values, seed, tries=(1,)):
    """Whether any side is shown to be better than another; scores have no tries."""
    tries = None if tries is None else np.broadcast_to(np.array(tries, float), values.shape)
    return max(rank_ranges(values, 0.95, seed, tries).low) > 1


def passes(rng, ease, sides):
    return (rng.random((len(ease), sides)) < ease[:, None]).astype(float)


def test_equal_sides_are_rarely_told_apart():
    rng = np.random.default_rng(1)
    wrong = [told_apart(passes(rng, rng.beta(2, 1, 20), 4), seed) for seed in range(150)]
    assert np.mean(wrong) <= 0.08


def test_ranges_contain_the_true_rank_and_narrow_with_more_tasks():
    rng = np.random.default_rng(2)
    widths = {}
    for tasks in (20, 400):
        found = [
            rank_ranges(
                (rng.random((tasks, 3)) < (0.8, 0.6, 0.4)).astype(float),
                0.95,
                seed,
                np.ones((tasks, 3)),
            )
            for seed in range(40)
        ]
        held = [all(a <= i + 1 <= b for i, (a, b) in enumerate(zip(f.low, f.high, strict=True)))
                for f in found]  # fmt: skip
        assert np.mean(held) >= 0.95
        widths[tasks] = np.mean([np.subtract(f.high, f.low).sum() for f in found])
    assert widths[400] < 0.1 < widths[20]


def test_two_sides_are_told_apart_as_all_sign_flips_say():
    rng = np.random.default_rng(3)
    told = []
    for seed in range(40):
        values = (rng.random((9, 2)) < (0.85, 0.3)).astype(float)
        apart = values[:, 0] - values[:, 1]

        def t(d):
            spread = d.std(ddof=1)
            return abs(d.mean()) / spread if spread > 1e-9 else (math.inf if d.any() else 0.0)

        drawn = [t(apart * signs) for signs in product((-1, 1), repeat=9)]
        p = np.mean([d >= t(apart) - 1e-9 for d in drawn])
        if abs(p - 0.05) > 0.02:
            told.append(told_apart(values, seed) == (p < 0.05))
    assert len(told) > 10
    assert all(told)


def passed(rng, tasks, ease, tries):
    """Shares of passes, where every side passes equally often."""
    return rng.binomial(tries, np.broadcast_to(ease, (tasks, len(tries)))) / tries


def steady_and_erratic(rng, tasks, rate, tries):
    """Shares of passes of a side that passes all tasks alike, between two that nearly always pass
    the same few."""
    sure = np.where(rng.random((tasks, 2)) < rate, 0.9, rate / 9)
    eases = np.c_[sure[:, 0], np.full(tasks, rate), sure[:, 1]]
    return passed(rng, tasks, eases, (tries,) * 3)


@pytest.mark.parametrize(
    ("draw", "tries"),
    [
        (lambda rng: passed(rng, 10, 0.9, (1, 5, 1)), (1, 5, 1)),
        (lambda rng: passed(rng, 20, 0.9, (1, 5) * 4), (1, 5) * 4),
        (lambda rng: passed(rng, 50, 0.9, (1, 5) * 4), (1, 5) * 4),
        (lambda rng: passed(rng, 10, 0.95, (5, 5, 5)), (5, 5, 5)),
        (lambda rng: steady_and_erratic(rng, 40, 0.1, 10), (10,) * 3),
        (lambda rng: rng.beta(0.4, 1.6, (10, 5)), None),
        (lambda rng: np.c_[rng.beta(0.4, 1.6, (30, 2)), rng.beta(8, 32, (30, 2))], None),
    ],
    ids=["uneven", "uneven-8", "uneven-50", "edge", "erratic", "skewed", "skewed-and-steady"],
)
def test_the_level_holds_where_a_task_does_not_favour_both_sides_alike(draw, tries):
    """Flips of signs alone tell up to a half of these equal sides apart."""
    rng = np.random.default_rng(9)
    wrong = [told_apart(draw(rng), seed, tries) for seed in range(200)]
    assert np.mean(wrong) <= 0.09, "5 % of 200 is 10; 19 or more are unlikely (0.6 %)"


def test_single_tries_vary_at_least_as_much_as_chance_says():
    """Four of five passes at every task, against five of five at every second one."""
    values = np.c_[np.full(8, 0.8), np.tile([0.8, 1.0], 4)]
    tries = np.c_[np.full(8, 5.0), np.full(8, 10.0)]
    each = 0.8 * 0.1 + 0.9 * 0.2 - 0.1**2  # only one of both passes, less the square of the gap
    pairs = 8 * 2 / (1 / 5 + 1 / 10)
    assert largest_t(values, tries) == pytest.approx([0.1 / math.sqrt(each / pairs)])


@pytest.mark.parametrize("tasks", [6, 12, 40])
def test_scores_count_as_the_interval_of_a_pair_does(tasks):
    values = np.random.default_rng(10).beta(0.3, 2, (tasks, 3))
    for most, (a, b) in zip(largest_t(values, None), ((0, 1), (0, 2), (1, 2)), strict=True):
        x = values[:, a] - values[:, b]
        spread = x.std(ddof=1)
        skew = ((x - x.mean()) ** 3).sum() * tasks / (tasks - 1) / (tasks - 2) / spread**3
        ratio, skew = abs(x.mean()) / spread, skew * np.sign(x.mean())
        bent = ratio + skew * ratio**2 / 3 + skew**2 * ratio**3 / 27 + skew / (6 * tasks)
        assert most == pytest.approx(math.sqrt(tasks) * min(ratio, max(bent, 0)))


def test_a_side_that_passed_everything_counts_as_its_test_alone_says():
    values, tries = np.c_[np.ones(8), np.tile([0.8, 1.0], 4), np.zeros(8)], np.full(8, 5.0)
    found = 2 * special.stdtr(7, -largest_t(values, np.full((8, 3), 5.0)))
    assert found[:2] == pytest.approx([2 * 0.9**8, 0])
    assert found[2] >= 2 * 0.1**8
    pair = paired.Paired(values[:, 0], values[:, 1], tries, tries, "rate")
    assert paired.tested(pair, 0, 0.05)[0] == pytest.approx(found[0])


def test_equal_sums_in_another_order_are_no_larger():
    """Five differences cannot show anything, and a sixth of 0 adds nothing."""
    values = np.c_[[0.2, 1.0, 0.8, 0.0, 1.0, 0.6], np.zeros(6)]
    found = rank_ranges(values, 0.95, 0, np.full((6, 2), 5.0))
    assert sign_flip(values[:, 0], 0)[0] == 0.0625
    assert found.p[0, 1] == pytest.approx(0.0625, abs=0.01)
    assert found.high == (2, 2)


def test_sides_that_never_differ_share_their_rank():
    found = rank_ranges(np.ones((30, 3)), 0.95, 0, np.ones((30, 3)))
    assert (found.rank, found.low, found.high) == ((1, 1, 1), (1, 1, 1), (3, 3, 3))
    assert found.groups == ((0, 1, 2),)


def test_sides_that_passed_equally_often_share_their_rank():
    passes = np.repeat(np.arange(6), 9)
    orders = [np.random.default_rng(seed).permutation(passes) for seed in range(8)]
    values = np.column_stack(orders) / 5
    assert len(set(values.mean(axis=0))) > 1, "sums in another order are rounded otherwise"
    assert set(rank_ranges(values, 0.95, 0, np.full(values.shape, 5.0)).rank) == {1}


def test_groups_overlap_where_the_middle_is_not_separated_from_either_end():
    rng = np.random.default_rng(5)
    values = (rng.random((60, 3)) < (0.75, 0.6, 0.45)).astype(float)
    found = rank_ranges(values, 0.95, 0, np.ones((60, 3)))
    assert found.groups == ((0, 1), (1, 2))
    assert (found.low, found.high) == ((1, 1, 2), (2, 3, 3))


def test_very_many_tasks_are_taken_in_blocks():
    values = np.random.default_rng(6).random((5_500, 2))
    blocks = in_blocks(values, 0)
    assert blocks.shape == (1000, 2)
    assert blocks.mean(axis=0) == pytest.approx(values.mean(axis=0), abs=0.01)
    assert in_blocks(values[:1500], 0) is not None
    assert len(in_blocks(values[:1500], 0)) == 1500


def test_a_side_that_is_worse_and_dearer_is_never_on_the_frontier():
    good, bad = np.tile([1.0, 1, 0, 1], 10), np.tile([0.0, 1, 0, 0], 10)
    shares = frontier_shares(np.c_[good, bad], np.c_[good + 1, good + 2], 0)
    assert shares.tolist() == [1.0, 0.0]


def test_discrimination_is_the_correlation_with_the_other_tasks():
    values = np.random.default_rng(7).random((5, 6))
    for task, found in enumerate(discriminations(values)):
        rest = np.delete(values, task, axis=0).sum(axis=0)
        assert found == pytest.approx(np.corrcoef(values[task], rest)[0, 1])
    assert np.isnan(discriminations(np.ones((3, 4)))).all()


def test_rasch_difficulties_are_those_that_the_data_were_drawn_with():
    rng = np.random.default_rng(8)
    true, ability = np.linspace(-2, 2, 30), rng.normal(0, 1.5, 60)
    tries = np.full((30, 60), 3.0)
    drawn = rng.binomial(3, 1 / (1 + np.exp(true[:, None] - ability))).astype(float)
    found = rasch_difficulties(drawn, tries)
    apart = (found - true) - (found - true).mean()
    assert np.abs(apart).mean() < 0.2
    everyone = rasch_difficulties(np.full((1, 8), 3.0), np.full((1, 8), 3.0))
    assert np.isfinite(everyone).all()
    assert everyone[0] < -1


def test_a_side_that_alone_may_be_the_best_is_shown_to_be_above_all_others():
    better = np.zeros((4, 4), dtype=bool)
    better[0, 1] = better[1, 2] = better[0, 3] = better[1, 3] = True
    low, high, groups = open_ranks(np.array([0.8, 0.7, 0.6, 0.1]), better)
    assert (low, high) == ((1, 2, 1, 3), (2, 2, 4, 4))
    assert groups == ((0,), (1,), (2, 3))
    better[0, 2] = True
    assert open_ranks(np.array([0.8, 0.7, 0.6, 0.1]), better)[0] == (1, 2, 3, 3)
