"""Agreement of judges, against the same formula elsewhere."""

import numpy as np
import pytest

from pennyweight import score
from pennyweight.define import evaluate
from pennyweight.metrics.judge import judge_alpha, judge_mean_absolute_difference
from pennyweight.stats import agreement


def ratings(seed, units=60, judges=3):
    """Scores of judges who see the same thing, more or less; some did not judge."""
    rng = np.random.default_rng(seed)
    truth = rng.random((units, 1))
    table = np.clip(truth + rng.normal(0, 0.15, (units, judges)), 0, 1)
    table[rng.random(table.shape) < 0.2] = np.nan
    return table


def lists(table):
    return [[x for x in row if not np.isnan(x)] for row in table.tolist()]


@pytest.mark.parametrize("seed", range(5))
def test_it_equals_the_array_formula(seed):
    table = ratings(seed)
    alpha = evaluate(judge_alpha, judge_scores=lists(table))
    assert alpha == pytest.approx(agreement.alpha(table))
    distance = evaluate(judge_mean_absolute_difference, judge_scores=lists(table))
    assert distance == pytest.approx(agreement.mean_absolute_difference(table))


def test_both_have_intervals_that_hold_the_value():
    rows = [{"task_id": str(i), "judge_scores": x} for i, x in enumerate(lists(ratings(1)))]
    (group,) = score(rows).groups
    for name in ("judge_alpha", "judge_mean_absolute_difference"):
        found = group[name]
        assert found.low < found.value < found.high
        assert found.high - found.low < 0.5
        assert found.skipped == sum(len(row["judge_scores"]) < 2 for row in rows)


def test_one_judge_or_one_opinion_says_nothing_about_agreement():
    alone = score([{"judge_scores": [0.5]}, {"judge_scores": [1.0]}])
    assert alone["judge_alpha"].value is None
    assert alone["judge_mean_absolute_difference"].value is None
    same = score([{"judge_scores": [0.7, 0.7]}] * 3)
    assert same["judge_alpha"].value is None
    assert same["judge_mean_absolute_difference"].value == 0.0


def test_judges_that_contradict_each_other_are_below_chance():
    rows = [[0.0, 1.0], [1.0, 0.0]] * 5
    assert evaluate(judge_alpha, judge_scores=rows) < 0
