"""The split of the variance against a plain analysis of variance, statsmodels and simulation."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from pennyweight.stats.variance import variance_split


def draw(seed, tasks, attempts, judges=1, parts=(0.5, 0.3, 0.2)):
    """Draw scores as tasks × attempts × judges, and the numbers of their task and attempt."""
    rng = np.random.default_rng(seed)
    shapes = [(tasks, 1, 1), (tasks, attempts, 1), (tasks, attempts, judges)]
    effects = (rng.normal(0, math.sqrt(v), s) for v, s in zip(parts, shapes, strict=True))
    scores = sum(effects) + np.zeros((tasks, attempts, judges))
    task = np.repeat(np.arange(tasks), attempts * judges)
    return scores.ravel(), task, np.repeat(np.arange(tasks * attempts), judges)


def plain(values, task):
    """The two components, as textbooks write them for equal numbers of attempts."""
    groups = [[v for v, t in zip(values, task, strict=True) if t == g] for g in sorted(set(task))]
    n = len(groups[0])
    means = [sum(g) / n for g in groups]
    grand = sum(means) / len(means)
    between = n * sum((m - grand) ** 2 for m in means) / (len(groups) - 1)
    squares = sum((v - m) ** 2 for g, m in zip(groups, means, strict=True) for v in g)
    within = squares / (len(groups) * (n - 1))
    return max(0.0, (between - within) / n), within


@pytest.mark.parametrize(("tasks", "attempts"), [(2, 2), (7, 3), (40, 10)])
def test_components_are_those_of_the_textbook(tasks, attempts):
    values, task, _ = draw(3, tasks, attempts)
    split = variance_split(values, task)
    assert (split.task, split.attempt) == pytest.approx(plain(values.tolist(), task.tolist()))
    assert split.judge is None
    assert split.icc == pytest.approx(split.task / (split.task + split.attempt))
    assert (split.tasks, split.attempts) == (tasks, tasks * attempts)


def test_components_are_those_of_a_mixed_model():
    values, task, _ = draw(5, 30, 4)
    data = pd.DataFrame({"y": values, "task": task})
    model = smf.mixedlm("y ~ 1", data, groups="task").fit(reml=True)
    split = variance_split(values, task)
    assert split.task == pytest.approx(model.cov_re.iloc[0, 0], rel=1e-3)
    assert split.attempt == pytest.approx(model.scale, rel=1e-3)


def test_judges_are_split_from_attempts_as_in_a_mixed_model():
    values, task, attempt = draw(8, 25, 3, judges=3)
    data = pd.DataFrame({"y": values, "task": task, "attempt": attempt})
    nested = {"attempt": "0 + C(attempt)"}
    model = smf.mixedlm("y ~ 1", data, groups="task", re_formula="1", vc_formula=nested).fit()
    split = variance_split(values, task, attempt)
    assert split.judge == pytest.approx(model.scale, rel=1e-3)
    assert split.attempt == pytest.approx(model.vcomp.item(), rel=0.01)
    assert split.task == pytest.approx(model.cov_re.iloc[0, 0], rel=0.01)
    assert split.low is None


def test_unequal_numbers_leave_the_components_unbiased():
    rng = np.random.default_rng(2)
    found = []
    for seed in range(300):
        values, task, attempt = draw(seed, 20, 5, judges=3)
        kept = rng.random(len(values)) < 0.5
        _, attempt = np.unique(attempt[kept], return_inverse=True)
        _, task = np.unique(task[kept], return_inverse=True)
        split = variance_split(values[kept], task, attempt)
        found.append((split.task, split.attempt, split.judge))
    assert np.mean(found, axis=0) == pytest.approx([0.5, 0.3, 0.2], rel=0.1)


def test_the_order_and_numbering_of_values_do_not_matter():
    values, task, attempt = draw(1, 6, 3, judges=2)
    mixed = np.random.default_rng(0).permutation(len(values))
    one = variance_split(values, task, attempt)
    other = variance_split(values[mixed], 5 - task[mixed], attempt[mixed])
    assert (other.task, other.attempt, other.judge) == pytest.approx(
        (one.task, one.attempt, one.judge)
    )


def test_without_repeats_there_is_nothing_to_split():
    assert variance_split(np.zeros(0), np.zeros(0, int)) is None
    assert variance_split(np.array([1.0, 0.0]), np.array([0, 1])) is None
    assert variance_split(np.array([1.0, 0.0]), np.array([0, 0])) is None
    one_attempt_two_judges = np.array([0, 0, 1, 1])
    scores = np.array([0.1, 0.2, 0.3, 0.4])
    assert variance_split(scores, one_attempt_two_judges, one_attempt_two_judges) is None


def test_equal_values_have_no_correlation_and_equal_attempts_no_interval():
    task = np.repeat(np.arange(5), 2)
    same = variance_split(np.ones(10), task)
    assert (same.task, same.attempt, same.icc, same.from_repeats) == (0.0, 0.0, None, None)
    steady = variance_split((task % 2).astype(float), task)
    assert (steady.icc, steady.attempt, steady.low) == (1.0, 0.0, None)


def test_the_error_of_a_mean_follows_from_the_components():
    values, task, _ = draw(4, 400, 5, parts=(0.5, 0.5, 0.0))
    split = variance_split(values, task)
    observed = np.std([draw(s, 40, 2, parts=(0.5, 0.5, 0.0))[0].mean() for s in range(400)])
    assert split.error(40, 2) == pytest.approx(observed, rel=0.15)
    assert split.from_repeats == pytest.approx(0.1 / 0.6, rel=0.2)


def test_the_interval_of_the_correlation_holds_for_rates():
    # the usual interval, from the F distribution, contains it in 75 % of cases here
    rng = np.random.default_rng(6)
    task = np.repeat(np.arange(100), 5)
    held = []
    for _ in range(300):
        chance = rng.beta(0.5 * 0.15 / 0.85, 0.5 * 0.15 / 0.85, 100)
        split = variance_split((rng.random(500) < chance[task]).astype(float), task)
        held.append(split.low <= 0.85 <= split.high)
    assert np.mean(held) > 0.92


def test_fewer_agreements_than_by_chance_leave_the_correlation_open():
    values = np.tile([1.0, 0.0], 20)
    split = variance_split(values, np.repeat(np.arange(20), 2))
    assert (split.icc, split.low, split.high) == (0.0, None, None)


def test_what_rounding_leaves_is_nothing() -> None:
    passed = np.array([0.0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0])
    split = variance_split(passed, np.repeat(np.arange(6), 2))
    assert split is not None
    assert (split.task, split.icc) == (0.0, 0.0)
