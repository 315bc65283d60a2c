"""Agreement of judges, against the same formula elsewhere."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from pennyweight import score
from pennyweight.define import evaluate
from pennyweight.metrics.judge import judge_alpha, judge_mean_absolute_difference

GAP = np.nan
KNOWN = np.array(
    [
        [1, 1, GAP, 1],
        [2, 2, 3, 2],
        [3, 3, 3, 3],
        [3, 3, 3, 3],
        [2, 2, 2, 2],
        [1, 2, 3, 4],
        [4, 4, 4, 4],
        [1, 1, 2, 1],
        [2, 2, 2, 2],
        [GAP, 5, 5, 5],
        [GAP, GAP, 1, 1],
        [GAP, GAP, 3, GAP],
    ]
)
"""Krippendorff's own example of four observers and twelve units; its interval alpha is 0.849."""


def plain_alpha(units):
    """Observed over expected disagreement, pair by pair, as the definition has it."""
    units = [u for u in units if len(u) > 1]
    values = [v for u in units for v in u]
    n = len(values)
    observed = (
        sum(
            (a - b) ** 2 / (len(u) - 1)
            for u in units
            for i, a in enumerate(u)
            for j, b in enumerate(u)
            if i != j
        )
        / n
    )
    expected = sum(
        (a - b) ** 2 for i, a in enumerate(values) for j, b in enumerate(values) if i != j
    ) / (n * (n - 1))
    return 1 - observed / expected


def plain_difference(units):
    apart = [[abs(a - b) for a, b in combinations(u, 2)] for u in units if len(u) > 1]
    return np.mean([np.mean(unit) for unit in apart])


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
def test_it_equals_the_definition(seed):
    units = lists(ratings(seed))
    assert evaluate(judge_alpha, judge_scores=units) == pytest.approx(plain_alpha(units))
    distance = evaluate(judge_mean_absolute_difference, judge_scores=units)
    assert distance == pytest.approx(plain_difference(units))


def test_alpha_of_the_known_example():
    found = evaluate(judge_alpha, judge_scores=lists(KNOWN / 5))
    assert found == pytest.approx(0.849, abs=0.0005)
    assert found == pytest.approx(plain_alpha(lists(KNOWN)))


def test_both_have_intervals_that_hold_the_value():
    rows = [{"task_id": str(i), "judge_scores": x} for i, x in enumerate(lists(ratings(1)))]
    (group,) = score(rows).groups
    for name in ("judge_alpha", "judge_mean_absolute_difference"):
        found = group[name]
        assert found.low < found.value < found.high
        assert found.high - found.low < 0.5
        assert found.skipped == sum(len(row["judge_scores"]) < 2 for row in rows)


def test_the_interval_of_alpha_leaves_out_one_task_at_a_time():
    units = lists(ratings(2))
    units = [u for u in units if len(u) > 1][:12]
    e = score([{"task_id": str(i), "judge_scores": u} for i, u in enumerate(units)])["judge_alpha"]
    others = [1 - plain_alpha(units[:i] + units[i + 1 :]) for i in range(len(units))]
    t, rest = stats.t.ppf(0.975, len(units) - 1), 1 - plain_alpha(units)

    def half(values):
        return t * np.sqrt((len(values) - 1) * np.var(values))

    lows = 1 - rest - half(others), 1 - rest * np.exp(half(np.log(others)))
    highs = 1 - rest + half(others), 1 - rest * np.exp(-half(np.log(others)))
    assert e.low == pytest.approx(min(lows))
    assert e.high == pytest.approx(min(1.0, max(highs)))


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
