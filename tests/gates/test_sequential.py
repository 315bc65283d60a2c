"""Sequential tests: right however often one looks, and in the order of the plan alone."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.samples import gate, policy, share, verdict
from pennyweight.gates.early_stopping import EarlyStopPlan, PlannedTask, shuffled
from pennyweight.gates.sequential import bets, bounds, look

LEVELS = {"pass_level": 0.05, "fail_level": 0.05}


def ever(capital, level=0.05):
    return float((capital >= math.log(1 / level)).any(axis=1).mean())


@pytest.mark.parametrize("variance", [None, 0.15])
@pytest.mark.parametrize("claim", [0.5, 0.8, 0.95])
def test_a_true_claim_is_hardly_ever_ruled_out_although_every_task_is_looked_at(claim, variance):
    rng = np.random.default_rng(7)
    values = (rng.random((2000, 600)) < claim).astype(float)
    high, low = min(0.99, claim + 0.04), claim - 0.04
    assert ever(bets(values, claim, high, variance=variance)) <= 0.06
    assert ever(bets(1 - values, 1 - claim, 1 - low, variance=variance)) <= 0.06


def test_a_fixed_test_that_looks_as_often_would_be_wrong_far_oftener():
    rng = np.random.default_rng(7)
    means = np.cumsum(rng.random((2000, 600)) < 0.8, axis=1) / np.arange(1, 601)
    error = np.sqrt(0.16 / np.arange(1, 601))
    assert (means - 0.8 > 1.645 * error)[:, 20:].any(axis=1).mean() > 0.25


def test_scores_between_0_and_1_are_allowed():
    rng = np.random.default_rng(3)
    values = rng.beta(8, 2, (1000, 400))
    assert ever(bets(values, 0.8, 0.9, variance=0.15)) <= 0.06
    found = look(rng.beta(95, 5, 400), 0.9, 0.8, **LEVELS, variance=0.15)
    assert found.verdict == "pass"
    assert found.tasks < 60


def test_on_passes_it_is_walds_test():
    values = (np.random.default_rng(5).random(500) < 0.83).astype(float)
    capital = bets(values, 0.8, 0.9)
    hits = np.cumsum(values)
    ratio = hits * math.log(0.9 / 0.8) + (np.arange(1, 501) - hits) * math.log(0.1 / 0.2)
    assert capital == pytest.approx(ratio)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=80), st.floats(0.3, 0.95))
def test_more_tasks_never_take_a_decision_back(values, good):
    whole = np.array(values)
    words = [look(whole[:n], good, good - 0.1, **LEVELS, variance=0.2) for n in range(len(whole))]
    decided = [w for w in words if w.verdict != "inconclusive"]
    assert len({(w.verdict, w.tasks) for w in decided}) <= 1


def test_bounds_hold_at_every_look():
    rng = np.random.default_rng(11)
    misses = 0
    for _ in range(100):
        values = (rng.random(150) < 0.7).astype(float)
        misses += any(not bounds(values[:n], 0.05)[0] <= 0.7 for n in (10, 40, 80, 150))
    assert misses <= 12
    assert bounds(np.zeros(0), 0.05) == (0.0, 1.0)


def test_the_order_depends_on_the_seed_alone():
    names = [f"t{i}" for i in range(50)]
    assert shuffled(names, 1) == shuffled(names[::-1], 1) != shuffled(names, 2)
    assert shuffled(names[:20], 1) == [n for n in shuffled(names, 1) if n in set(names[:20])]


SURE = {"on": "confident",
        "thresholds": {"pass_rate": {"threshold": 90, "indifference": "10%"}}}  # fmt: skip


def plan(total, runs=1, **more):
    return EarlyStopPlan(tuple(PlannedTask(f"t{i}", **more) for i in range(total)), runs)


def test_a_run_is_decided_as_soon_as_the_evidence_is_there():
    made = policy(SURE)
    rows = share(100, 100)
    assert verdict(made, rows[:25], plan=plan(100)).verdict == "inconclusive"
    found = verdict(made, rows[:26], plan=plan(100))
    assert found.verdict == "pass"
    assert (
        "after 26 of 100 tasks the evidence against 80.0 % or worse is 21 to 1"
        in found.gates[0].why
    )
    bad = [{**row, "passed": False} for row in rows]
    assert verdict(made, bad[:5], plan=plan(100)).verdict == "fail"


def test_tasks_count_in_the_order_of_the_plan_and_not_as_they_come_in():
    made = policy(SURE)
    late = [row for row in share(100, 100) if row["task_id"] != "t3"]
    found = verdict(made, late, plan=plan(100))
    assert (found.verdict, gate(found, "pass_rate").why.startswith("100.0 %; after 3 of")) == (
        "inconclusive",
        True,
    )


def test_repeats_share_the_error_rate_and_are_no_new_tasks():
    made = policy(SURE)
    twice = [dict(row, attempt=a) for row in share(20, 20) for a in (1, 2)]
    found = verdict(made, twice, plan=plan(20, runs=2))
    assert found.verdict == "inconclusive"


def test_what_is_on_value_waits_for_the_whole_run_unless_it_is_lost():
    made = policy({**SURE, "pass_criteria": {"by_category": {"adversarial": "100%"}}})
    tasks = plan(60, category="adversarial")
    rows = share(60, 60, category="adversarial")
    assert verdict(made, rows[:40], plan=tasks).verdict == "inconclusive"
    assert verdict(made, rows, plan=tasks).verdict == "pass"
    lost = [{**rows[0], "passed": False}, *rows[1:30]]
    assert verdict(made, lost, plan=tasks).verdict == "fail"


def test_a_required_scenario_that_is_to_come_is_open_and_one_that_is_not_planned_fails():
    made = policy({**SURE, "required_scenarios": ["t50"]})
    rows = share(60, 60)
    assert verdict(made, rows[:40], plan=plan(60)).verdict == "inconclusive"
    assert verdict(made, rows, plan=plan(60)).verdict == "pass"
    assert verdict(made, rows[:40], plan=plan(45)).verdict == "fail"


def test_a_comparison_is_decided_task_by_task_too():
    made = policy({"gates": [{"metric": "pass_rate", "no_worse_than": "10%"}]})
    before = share(400, 400)
    found = verdict(made, before[:120], before, plan=plan(400))
    assert found.verdict == "pass"
    assert "a difference of −10.0 points or worse" in found.gates[0].why
    worse = [{**row, "passed": i % 3 > 0} for i, row in enumerate(before)]
    assert verdict(made, worse[:120], before, plan=plan(400)).verdict == "fail"
