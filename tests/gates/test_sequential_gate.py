"""Gates of a run under way: they agree with their intervals and with fixed gates."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.samples import gate, policy, share, verdict
from pennyweight.gates.early_stopping import EarlyStopPlan, PlannedTask


def plan(rows, runs=1):
    return EarlyStopPlan(
        tuple(PlannedTask(t) for t in dict.fromkeys(r["task_id"] for r in rows)), runs
    )


def corrected(hits, total):
    """Give records of which the first so many correct themselves; neither way is the better one."""
    return [
        {"task_id": f"t{i}", "cot": "wait, actually it is 4" if i < hits else "it is 4"}
        for i in range(total)
    ]


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(
        [
            (share, "pass_rate", ">="),
            (share, "pass_rate", ">"),
            (corrected, "self_correction_rate", "<="),
            (corrected, "self_correction_rate", "<"),
            (corrected, "self_correction_rate", ">="),
        ]
    ),
    st.integers(1, 99),
    st.integers(20, 200),
    st.floats(0, 1),
)
def test_sequential_and_fixed_gates_never_contradict(kind, limit, total, part):
    make, metric, sign = kind
    rows = make(round(part * total), total)
    rows = [rows[i * 97 % 211 % total] for i in range(211)]  # spread, as a random order would be
    rows = list({row["task_id"]: row for row in rows}.values())
    given = {"gates": [{"metric": metric, "threshold": f"{sign} {limit}%", "on": "confident"}]}
    words = {verdict(given, rows).verdict, verdict(given, rows, plan=plan(rows)).verdict}
    assert words != {"pass", "fail"}


@pytest.mark.parametrize(("hits", "word"), [(0, "pass"), (100, "fail")])
def test_the_thresholds_sign_says_what_is_better(hits, word):
    given = {"gates": [{"metric": "self_correction_rate", "threshold": "<= 20%",
                        "on": "confident"}]}  # fmt: skip
    rows = corrected(hits, 100)
    found = verdict(given, rows, plan=plan(rows))
    assert (found.verdict, verdict(given, rows).verdict) == (word, word)
    only = found.deciding[0] if word == "fail" else found.gates[0]
    assert only.low <= only.value <= only.high
    assert "(indifference zone 20.0 to 25.0 %)" in only.why


CLOSE = {"gates": [{"metric": "accuracy", "threshold": ">= 55%", "on": "confident",
                    "indifference": "10%"}]}  # fmt: skip


def rounds(total):
    """Give a first round in which every second answer is right, and three in which all are."""
    right = [{"task_id": f"a{i}", "answer": "4", "target": "4"} for i in range(total)]
    first = [dict(row, attempt=1, answer="45"[i % 2]) for i, row in enumerate(right)]
    return first, [dict(row, attempt=a) for a in (2, 3, 4) for row in right]


def test_a_task_without_a_value_does_not_keep_later_rounds_from_being_looked_at():
    first, later = rounds(50)
    assert verdict(CLOSE, first, plan=plan(first, 4)).verdict == "inconclusive"
    whole = verdict(CLOSE, [*first, *later], plan=plan(first, 4))
    assert whole.verdict == "pass"
    nothing = [{"task_id": "none", "attempt": a, "answer": "4"} for a in (1, 2, 3, 4)]
    rows = [*first[:20], *nothing, *first[20:], *later]
    found = verdict(CLOSE, rows, plan=plan(rows, 4))
    assert (found.verdict, found.gates[0].tasks) == ("pass", whole.gates[0].tasks)


def test_a_round_that_is_not_whole_leaves_the_next_one_for_later():
    first, later = rounds(50)
    rows = [row for row in [*first, *later] if row["task_id"] != "a49"]
    found = verdict(CLOSE, rows, plan=plan(first, 4))
    assert (found.verdict, found.gates[0].tasks) == ("inconclusive", 46)


@pytest.mark.parametrize("threshold", [">= 0%", "> 0%", "<= 100%", "< 100%"])
def test_what_any_rate_meets_is_no_division_by_zero(threshold):
    metric = "pass_rate" if threshold[0] == ">" else "self_correction_rate"
    rows = share(3, 40) if threshold[0] == ">" else corrected(37, 40)
    given = {"gates": [{"metric": metric, "threshold": threshold, "on": "confident"}]}
    assert verdict(given, rows, plan=plan(rows)).verdict == "pass"
    if threshold == "> 0%":
        none = share(0, 40)
        assert verdict(given, none, plan=plan(none)).verdict == "inconclusive"


def test_how_many_tasks_were_taken_is_kept():
    rows = share(100, 100)
    given = {"on": "confident", "thresholds": {"pass_rate": 90}}
    only = gate(verdict(given, rows, plan=plan(rows)), "pass_rate")
    assert f"after {only.tasks} of 100 tasks" in only.why
    assert 20 < only.tasks < 100


def test_a_decision_names_its_test_and_the_indifference_zone():
    plan = EarlyStopPlan(tuple(PlannedTask(f"t{i}") for i in range(100)), 1)
    given = {"gates": [{"metric": "pass_rate", "threshold": 0.8, "on": "confident"}]}
    (decided,) = verdict(given, share(60, 60), plan=plan).gates
    assert (decided.verdict, decided.test, decided.planned_tasks) == ("pass", "sequential", 100)
    assert decided.indifference == pytest.approx((0.75, 0.8))
    assert decided.tasks <= 60
    (open_,) = verdict(given, share(5, 5), plan=plan).gates
    assert (open_.verdict, open_.test) == ("inconclusive", "sequential")
    (whole,) = verdict(given, share(100, 100)).gates
    assert (whole.test, whole.indifference, whole.planned_tasks) == ("interval", None, None)


SURE = {"on": "confident",
        "thresholds": {"pass_rate": {"threshold": 90, "indifference": "10%"}}}  # fmt: skip


def planned(total, runs=1, **more):
    return EarlyStopPlan(tuple(PlannedTask(f"t{i}", **more) for i in range(total)), runs)


def test_a_run_is_decided_as_soon_as_the_evidence_is_there():
    made = policy(SURE)
    rows = share(100, 100)
    assert verdict(made, rows[:25], plan=planned(100)).verdict == "inconclusive"
    found = verdict(made, rows[:26], plan=planned(100))
    assert found.verdict == "pass"
    assert found.gates[0].why == (
        "100.0 %; after 26 of 100 tasks its interval, 80.0 to 100.0 %, rules out 80.0 % or worse "
        "(indifference zone 80.0 to 90.0 %)."
    )
    bad = [{**row, "passed": False} for row in rows]
    assert verdict(made, bad[:5], plan=planned(100)).verdict == "fail"


def test_tasks_count_in_the_order_of_the_plan_and_not_as_they_come_in():
    made = policy(SURE)
    late = [row for row in share(100, 100) if row["task_id"] != "t3"]
    found = verdict(made, late, plan=planned(100))
    assert (found.verdict, gate(found, "pass_rate").why.startswith("100.0 %; after 3 of")) == (
        "inconclusive",
        True,
    )


def test_repeats_share_the_error_rate_and_are_no_new_tasks():
    made = policy(SURE)
    twice = [dict(row, attempt=a) for row in share(20, 20) for a in (1, 2)]
    found = verdict(made, twice, plan=planned(20, runs=2))
    assert found.verdict == "inconclusive"


def test_what_is_on_value_waits_for_the_whole_run_unless_it_is_lost():
    made = policy({**SURE, "pass_criteria": {"by_category": {"adversarial": "100%"}}})
    tasks = planned(60, category="adversarial")
    rows = share(60, 60, category="adversarial")
    assert verdict(made, rows[:40], plan=tasks).verdict == "inconclusive"
    assert verdict(made, rows, plan=tasks).verdict == "pass"
    lost = [{**rows[0], "passed": False}, *rows[1:30]]
    assert verdict(made, lost, plan=tasks).verdict == "fail"


def test_a_required_scenario_that_is_to_come_is_open_and_one_that_is_not_planned_fails():
    made = policy({**SURE, "required_scenarios": ["t50"]})
    rows = share(60, 60)
    assert verdict(made, rows[:40], plan=planned(60)).verdict == "inconclusive"
    assert verdict(made, rows, plan=planned(60)).verdict == "pass"
    assert verdict(made, rows[:40], plan=planned(45)).verdict == "fail"


def test_a_comparison_is_decided_task_by_task_too():
    made = policy({"gates": [{"metric": "pass_rate", "no_worse_than": "10%"}]})
    before = share(400, 400)
    found = verdict(made, before[:120], before, plan=planned(400))
    assert found.verdict == "pass"
    assert "a difference of −10.0 points or worse" in found.gates[0].why
    worse = [{**row, "passed": i % 3 > 0} for i, row in enumerate(before)]
    assert verdict(made, worse[:120], before, plan=planned(400)).verdict == "fail"


def records(metric, values):
    """Give one record for each value of a metric."""
    column = {"impl_rate_mean": "impl_rate", "cost_usd_mean": "cost_usd"}[metric]
    return [{"task_id": f"t{i}", column: float(x)} for i, x in enumerate(values)]


def agrees(only, bad, good, limit):
    """Check a verdict against the interval that is shown with it; higher is better."""
    low, high = only.low, only.high
    if low is None:
        return only.verdict == "inconclusive"
    if low >= good or (low >= bad and limit == bad):
        return only.verdict == "pass"
    if high < good:
        return only.verdict == "fail"
    return only.verdict == ("pass" if low >= bad else "inconclusive")


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 120), st.floats(0.5, 1), st.integers(55, 95))
def test_a_verdict_on_a_rate_agrees_with_the_interval_shown(seed, made, rate, limit):
    passed = np.random.default_rng(seed).random(120) < rate
    rows = [{"task_id": f"t{i}", "passed": bool(x)} for i, x in enumerate(passed)]
    given = {"gates": [{"metric": "pass_rate", "threshold": limit, "on": "confident"}]}
    (only,) = verdict(given, rows[:made], plan=plan(rows)).gates
    assert agrees(only, limit / 100 - 0.05 - 1e-9, limit / 100, limit / 100)
    assert only.low <= only.value <= only.high


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 80), st.floats(0.3, 20), st.integers(55, 95))
def test_a_verdict_on_a_score_agrees_with_the_interval_shown(seed, made, shape, limit):
    rows = records("impl_rate_mean", np.random.default_rng(seed).beta(shape, 1, 80))
    given = {"gates": [{"metric": "impl_rate_mean", "threshold": limit, "on": "confident"}]}
    (only,) = verdict(given, rows[:made], plan=plan(rows)).gates
    assert agrees(only, limit / 100 - 0.05, limit / 100, limit / 100)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 80), st.floats(-0.3, 0.3))
def test_a_verdict_on_a_difference_agrees_with_the_interval_shown(seed, made, drop):
    rng = np.random.default_rng(seed)
    old, new = rng.random(80) < 0.7, rng.random(80) < 0.7 - drop
    before, now = ([{"task_id": f"t{i}", "passed": bool(x)} for i, x in enumerate(side)]
                   for side in (old, new))  # fmt: skip
    given = {"gates": [{"metric": "pass_rate", "no_worse_than": "10%"}]}
    (only,) = verdict(given, now[:made], before, plan=plan(now)).gates
    assert agrees(only, -0.1, 0.0, -0.1)


def test_a_small_suite_is_decided_as_the_plain_gate_decides_it():
    given = {"on": "confident", "thresholds": {"pass_rate": 80}}
    passed = np.ones(50, dtype=bool)
    passed[[11, 37]] = False
    rows = [{"task_id": f"t{i}", "passed": bool(x)} for i, x in enumerate(passed)]
    (only,) = verdict(given, rows, plan=plan(rows)).gates
    assert (only.verdict, verdict(given, rows).verdict) == ("pass", "pass")
    rng, words = np.random.default_rng(3), []
    for _ in range(40):
        rows = [{"task_id": f"t{i}", "passed": bool(x)} for i, x in enumerate(rng.random(50) < 0.6)]
        words.append([verdict(given, rows, plan=way).verdict for way in (None, plan(rows))])
    fixed, early = (sum(pair[i] == "fail" for pair in words) for i in (0, 1))
    assert early >= fixed - 1 > 25


def test_scores_are_not_decided_before_a_failure_of_one_task_in_ten_would_be_seen():
    values = np.random.default_rng(11).uniform(0.98, 1, 60)
    rows = records("impl_rate_mean", values)
    given = {"gates": [{"metric": "impl_rate_mean", "threshold": 0.9, "on": "confident"}]}
    assert verdict(given, rows[:28], plan=plan(rows)).verdict == "inconclusive"
    (only,) = verdict(given, rows[:40], plan=plan(rows)).gates
    assert (only.verdict, 29 <= only.tasks < 36) == ("pass", True)


def test_a_mean_cost_is_decided_early_where_it_is_clear():
    rng = np.random.default_rng(5)
    given = {"gates": [{"metric": "cost_usd_mean", "threshold": "<= $1", "on": "confident"}]}
    for middle, word in ((0.3, "pass"), (3.0, "fail")):
        rows = records("cost_usd_mean", middle * rng.lognormal(-0.125, 0.5, 200))
        (only,) = verdict(given, rows[:60], plan=plan(rows)).gates
        assert (only.verdict, only.test) == (word, "sequential")
        assert only.tasks < 60
        assert only.indifference == pytest.approx((1.0, 1.05))
        assert only.low < only.value < only.high


def test_attempts_that_could_not_be_made_are_counted_over_all_attempts():
    rows = [{"task_id": f"t{i}", "status": "error", "passed": None} for i in range(30)]
    rows += share(10, 10, "u")
    given = {"gates": [{"metric": "attempt_error_rate", "threshold": "<= 20%", "on": "confident"}],
             "errors": 40}  # fmt: skip
    assert verdict(given, rows, plan=plan(rows)).verdict == "fail"


def test_the_value_shown_is_that_of_the_tasks_that_decided():
    rows = share(60, 100)
    given = {"on": "confident", "thresholds": {"pass_rate": 80}}
    (only,) = verdict(given, rows, plan=plan(rows)).gates
    assert (only.verdict, only.value, only.tasks) == ("pass", 1.0, only.records)
    assert only.why.startswith(f"100.0 %; after {only.tasks} of 100 tasks")
    assert math.isclose(only.effect, 0.2)
