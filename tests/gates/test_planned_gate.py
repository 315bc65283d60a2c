"""Planned gates: with the tasks that a plan names, gates are decided as often as planned."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from pennyweight.gates.assumption import Assumption
from pennyweight.gates.planned_gate import GateQuestion, planned_gates
from pennyweight.gates.policy import Gate, Margin, Policy
from pennyweight.gates.threshold import Threshold
from pennyweight.gates.threshold_gate import mean_ends
from pennyweight.stats.variation import Variation
from stats.test_variation import drawn

RATE = Assumption.of(None, 0.9, None, None, None, None)


def question(mean, limit, sign=">=", power=0.8):
    gate = Gate("g", "pass_rate", on="confident", threshold=Threshold(sign, limit))
    return GateQuestion(gate, Variation.of_rate(mean, 0.5, 0.7), power, 0.05)


@pytest.mark.parametrize(("mean", "limit"), [(0.9, 0.8), (0.7, 0.8)])
def test_single_attempts_are_counted_exactly(mean, limit):
    """Against the binomial distribution and the ends of Clopper and Pearson, plainly."""
    asked = question(mean, limit)
    tasks = asked.tasks(1)
    hits = np.arange(tasks + 1)
    if asked.passes:
        settled = stats.beta.ppf(0.05, hits, tasks - hits + 1) >= limit
    else:
        settled = stats.beta.ppf(0.95, hits + 1, tasks - hits) < limit
    chance = stats.binom.pmf(hits, tasks, mean)[settled].sum()
    assert asked.decided(tasks, 1) == pytest.approx(chance, abs=1e-9)
    assert 0.8 <= chance < 0.84


def test_repeated_attempts_decide_as_often_as_planned():
    asked = question(0.9, 0.8)
    tasks = asked.tasks(4)
    assert tasks < asked.tasks(1)
    passed = 0
    for seed in range(300):
        values = drawn(asked.variation, tasks, 4, seed)[0]
        units = pl.DataFrame({"value": values, "tries": np.full(tasks, 4.0)})
        passed += mean_ends(units, 0.05, rate=True)[0] >= 0.8
    assert passed / 300 == pytest.approx(0.8, abs=0.07)


def test_a_rate_that_should_be_low():
    low = question(0.1, 0.2, "<=")
    assert low.passes
    assert low.tasks(1) == question(0.9, 0.8).tasks(1)


def test_the_threshold_itself_is_never_decided():
    assert question(0.8, 0.8).passes is None
    assert question(0.8, 0.8).tasks(1) is None


def planned(*gates, power=0.8, runs=(1,), **policy):
    return planned_gates(Policy(gates=gates, **policy), RATE, None, runs, power)


def confident(name, limit=0.8, **settings):
    return Gate(name, "pass_rate", on="confident", threshold=Threshold(">=", limit), **settings)


def test_several_gates_are_decided_together():
    (alone,), _ = planned(confident("a"))
    (first, second), about = planned(confident("a"), confident("b"))
    assert first.tasks == second.tasks
    assert first.tasks[0] > alone.tasks[0]
    assert len(about) == 1


def test_fails_share_the_error_rate():
    (alone,), _ = planned(confident("a", 0.95))
    (shared, _), _ = planned(confident("a", 0.95), confident("b", 0.95), power=0.6)
    assert alone.expected == shared.expected == "fail"
    assert shared.tasks[0] > alone.tasks[0]


@pytest.mark.parametrize(
    ("gate", "why"),
    [
        (Gate("g", "pass_rate", threshold=Threshold(">=", 0.8)), "on its value alone"),
        (confident("g", 1.0), "no number of tasks shows ≥ 100.0 %"),
        (Gate("g", "ece", on="confident", threshold=Threshold("<=", 0.1)), "is not a mean"),
        (Gate("g", "pass_rate", on="confident", against="better"), "--difference"),
        (Gate("g", "cost_usd_mean", on="confident", threshold=Threshold("<=", 1, "US$")), "--mean"),
        (confident("g", select=(("category", "x"),)), "a pilot shows how many"),
        (Gate("g", "pass_rate", on="confident", against="no_worse_than"), "no margin"),
    ],
)
def test_a_gate_that_cannot_be_planned_says_why(gate, why):
    (found,), about = planned(gate)
    assert why in found.why
    assert not found.tasks
    assert not about


def test_a_margin_is_planned_for_equal_sides():
    gate = Gate(
        "g", "pass_rate", on="confident", against="no_worse_than",
        margin=Margin(0.05, relative=False, kind="rate"),
    )  # fmt: skip
    (found,), _ = planned(gate)
    assert found.expected == "pass"
    assert found.rule == "at most 5 points worse"
    assert 150 < found.tasks[0] < 350
