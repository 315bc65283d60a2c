"""What means weigh and what their intervals are about."""

import math
import statistics

import numpy as np
import polars as pl
import pytest

import pennyweight
from pennyweight.errors import UsageError


def attempts(task, passed, count, **more):
    return [
        {"task_id": task, "passed": passed, "attempt": n + 1, "cost_usd": 0.5 + n, **more}
        for n in range(count)
    ]


UNEVEN = [*attempts("a", True, 8), *attempts("b", False, 2), *attempts("c", True, 2)]


def test_each_task_counts_once():
    found = pennyweight.score(UNEVEN, metrics=["pass_rate", "cost_usd_mean"], weight="tasks")
    assert found["pass_rate"].value == pytest.approx(2 / 3)
    means = [statistics.mean(0.5 + n for n in range(k)) for k in (8, 2, 2)]
    assert found["cost_usd_mean"].value == pytest.approx(statistics.mean(means))
    assert pennyweight.score(UNEVEN)["pass_rate"].value == pytest.approx(10 / 12)
    assert found.to_dict()["weight"] == "tasks"
    assert found.to_dict()["estimand"] == "tasks-like-these"


def test_a_task_tried_a_hundred_times_is_one_task():
    rows = [row for i in range(30) for row in attempts(f"t{i}", True, 100 if i == 0 else 1)]
    assert pennyweight.score(rows)["pass_rate"].low < 0.1
    assert pennyweight.score(rows, weight="tasks")["pass_rate"].low > 0.85


def test_with_one_attempt_at_each_task_both_weights_agree():
    rows = [row for i in range(20) for row in attempts(f"t{i}", i % 3 > 0, 1)]
    names = ["pass_rate", "cost_usd_mean", "cost_of_pass"]
    assert pennyweight.score(rows, metrics=names).groups == (
        pennyweight.score(rows, metrics=names, weight="tasks").groups
    )


def test_what_is_not_a_mean_has_no_value_by_task():
    found = pennyweight.score(UNEVEN, metrics=["cost_of_pass", "pass_at_k"], weight="tasks")
    assert found["cost_of_pass"].value is None
    assert found["pass_at_k"].value is not None


def test_the_interval_of_these_tasks_counts_only_how_attempts_vary():
    values = {"a": (1.0, 3.0), "b": (10.0, 10.5, 11.0)}
    rows = [
        {"task_id": t, "attempt": n + 1, "cost_usd": v}
        for t, costs in values.items()
        for n, v in enumerate(costs)
    ]
    for weight, weights in (("records", (2 / 5, 3 / 5)), ("tasks", (1 / 2, 1 / 2))):
        found = pennyweight.score(
            rows, metrics="cost_usd_mean", weight=weight, estimand="these-tasks"
        )["cost_usd_mean"]
        variances = [statistics.variance(v) / len(v) for v in values.values()]
        error = math.sqrt(sum(w**2 * v for w, v in zip(weights, variances, strict=True)))
        means = [statistics.mean(v) for v in values.values()]
        assert found.value == pytest.approx(sum(w * m for w, m in zip(weights, means, strict=True)))
        assert found.high - found.value == pytest.approx(3.182446 * error, rel=1e-4)  # t of 3


def test_these_tasks_need_two_attempts_each():
    rows = [*attempts("a", True, 5), *attempts("b", False, 1)]
    found = pennyweight.score(rows, metrics="pass_rate", estimand="these-tasks")["pass_rate"]
    assert (found.value, found.low, found.high) == (pytest.approx(5 / 6), None, None)


def test_both_intervals_contain_what_they_are_about():
    rng = np.random.default_rng(4)
    rows, fixed = [], []
    for world in range(150):
        ease = rng.beta(2, 1, 25)
        fixed.append(ease.mean())
        for task, p in enumerate(ease):
            rows += [(world, f"t{task}", n + 1, bool(rng.random() < p)) for n in range(4)]
    frame = pl.DataFrame(rows, ["world", "task_id", "attempt", "passed"], orient="row")

    def held(truth, **how):
        groups = pennyweight.score(frame, by="world", metrics="pass_rate", **how).groups
        by_world = {int(g.group["world"]): g["pass_rate"] for g in groups}
        return np.mean([e.low <= truth[w] <= e.high for w, e in by_world.items()])

    assert held([2 / 3] * 150) >= 0.92
    assert held(fixed, estimand="these-tasks") >= 0.92
    assert held([2 / 3] * 150, estimand="these-tasks") < 0.85


@pytest.mark.parametrize("wrong", [{"weight": "task"}, {"estimand": "all-tasks"}])
def test_other_names_are_refused(wrong):
    with pytest.raises(UsageError, match="not known"):
        pennyweight.score(UNEVEN, **wrong)
