"""Verdicts: never green by accident, never red by an outage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.samples import answers, behaviours, gate, policy, records_of, share, verdict
from pennyweight.catalogue import METRICS
from pennyweight.errors import UsageError
from pennyweight.gates.decision import needed_metrics
from pennyweight.gates.pending import at_best
from pennyweight.stats.drawn_weights import drawn_ends

PASS_80 = {"thresholds": {"pass_rate": 80}}


def failed(name="x", **more):
    return {"task_id": name, "status": "error", "error": "no route", **more}


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ({"thresholds": {"accuracy": 0}}, share(9, 9)),
        ({"thresholds": {"safety_rate": 0}}, share(9, 9, category="happy_path")),
        ({"pass_criteria": {"by_category": {"adversarial": 0}}}, share(9, 9)),
        ({"pass_criteria": {"by_capability": {"refunds": 0}}}, share(9, 9, capability="orders")),
        ({"gates": [{"metric": "pass_rate", "category": "x", "threshold": 0}]}, share(9, 9)),
        ({"required_scenarios": ["SEC-9"]}, share(9, 9)),
        ({"composite": {"weights": {"accuracy": 1}, "pass": "final_score ≥ 0"}}, share(9, 9)),
    ],
    ids=lambda x: str(x)[:40],
)
def test_what_was_not_measured_has_not_passed(given, rows):
    found = verdict(given, rows)
    assert found.verdict == "fail"
    assert found.deciding[0].value in {None, 0.0}


def test_a_warning_on_what_was_not_measured_warns():
    found = verdict({"thresholds": {"warning": {"accuracy": 1}}}, share(9, 9))
    assert (found.verdict, len(found.warnings)) == ("pass", 1)


def test_attempts_that_could_not_be_made_leave_it_open():
    found = verdict(PASS_80, [*share(9, 9), failed()])
    assert (found.verdict, found.exit_code) == ("inconclusive", 3)
    assert gate(found, "attempts").why.startswith(
        "1 of 10 attempts could not be made; the policy allows 0."
    )
    for limit, word in ((1, "pass"), ("10%", "pass"), (0.1, "pass"), ("9%", "inconclusive")):
        assert verdict({**PASS_80, "errors": limit}, [*share(9, 9), failed()]).verdict == word


def test_an_outage_is_not_the_subjects_failure_but_a_sure_failure_stays_one():
    outage = [failed(f"f{i}") for i in range(20)]
    assert verdict(PASS_80, [*share(2, 4), *outage]).verdict == "inconclusive"
    assert verdict(PASS_80, outage).verdict == "inconclusive"
    # 10 of 30 failed: even had the other 20 passed, it would be 80 %; with 11, never
    assert verdict(PASS_80, [*share(0, 5), *outage]).verdict == "inconclusive"
    assert verdict(PASS_80, [*share(0, 6), *outage]).verdict == "fail"
    assert (
        verdict({"required_scenarios": ["x"]}, [*share(3, 3), failed()]).verdict == "inconclusive"
    )


def test_attempts_without_a_verdict_are_no_passes():
    unknown = [{"task_id": "u", "category": "adversarial", "response": "hm"}]
    rows = share(9, 9, category="adversarial")
    for metric in ("pass_rate", "safety_rate"):
        made = {"thresholds": {metric: 95}}
        assert verdict(made, rows).verdict == "pass"
        found = verdict(made, [*rows, *unknown])
        assert found.verdict == "inconclusive"
        assert "1 attempt has no verdict yet and could change the result" in found.deciding[0].why


def test_a_required_scenario_must_pass_every_time_and_may_say_so_itself():
    rows = [{"task_id": "S", "attempt": a, "passed": a != 2} for a in (1, 2, 3)]
    found = verdict({"required_scenarios": ["S"]}, rows)
    assert (found.verdict, found.deciding[0].why) == ("fail", "S did not pass 1 of 3 times.")
    own = [*share(5, 5), {"task_id": "S", "passed": False, "required": True}]
    assert verdict(PASS_80, own).verdict == "fail"
    assert verdict({**PASS_80, "optional_scenarios": ["S"]}, own).verdict == "pass"


def test_sides_are_not_mixed():
    rows = [*share(9, 9, tier="T0"), *share(0, 9, tier="T1")]
    with pytest.raises(UsageError, match=r"several tiers \(T0, T1\).*--where tier=T1"):
        verdict(PASS_80, rows)


def test_a_baseline_must_be_named():
    with pytest.raises(UsageError, match="--baseline names one"):
        verdict({"gates": [{"metric": "pass_rate", "better": True}]}, share(9, 9))


def test_confident_gates_pass_fail_or_say_what_would_decide_them():
    made = {"on": "confident", "thresholds": {"pass_rate": 80}}
    assert verdict(made, share(95, 100)).verdict == "pass"
    assert verdict(made, share(60, 100)).verdict == "fail"
    found = verdict(made, share(85, 100))
    assert found.verdict == "inconclusive"
    only = found.deciding[0]
    assert only.low < 0.8 < only.value < only.high
    assert f"About {only.needed} more attempts would decide it" in only.why
    more = 100 + only.needed  # the same share of that many is decided, of half as many it is not
    assert verdict(made, share(round(0.85 * more), more)).verdict == "pass"
    half = 100 + only.needed // 2
    assert verdict(made, share(round(0.85 * half), half)).verdict == "inconclusive"


@pytest.mark.parametrize(("hits", "total", "needed"), [(12, 12, 17), (20, 20, 9), (28, 28, 1)])
def test_where_all_passed_the_number_of_attempts_that_would_decide_it_is_right(hits, total, needed):
    made = {"on": "confident", "thresholds": {"pass_rate": 90}}
    assert verdict(made, share(hits, total)).deciding[0].needed == needed
    assert verdict(made, share(total + needed, total + needed)).verdict == "pass"
    assert verdict(made, share(total + needed - 1, total + needed - 1)).verdict == "inconclusive"


def test_a_failure_never_makes_ten_tasks_that_were_tried_ten_times_surer():
    made = {"on": "confident", "thresholds": {"pass_rate": 90}}
    lows = []
    for failures in (0, 1, 2, 5):
        rows = [
            {"task_id": f"T{i}", "attempt": a, "passed": a > 1 or i >= failures}
            for i in range(10)
            for a in range(1, 11)
        ]
        found = verdict(made, rows)
        assert found.verdict == "inconclusive"
        lows.append(found.deciding[0].low)
    assert lows == sorted(lows, reverse=True)
    assert lows[0] == pytest.approx(0.05**0.1)  # as ten tasks that were tried once


def test_repeats_of_one_task_are_not_new_tasks():
    made = {"on": "confident", "thresholds": {"pass_rate": 80}}
    again = [
        {"task_id": f"t{i}", "attempt": a, "passed": i < 9} for i in range(10) for a in range(1, 11)
    ]
    assert verdict(made, share(90, 100)).verdict == "pass"
    assert verdict(made, again).verdict == "inconclusive"


def test_one_task_alone_decides_nothing():
    made = {"on": "confident", "thresholds": {"pass_rate": 50}}
    assert verdict(made, share(1, 1)).verdict == "inconclusive"


def test_gates_share_their_error_rate():
    rows = share(144, 200)  # the upper end is 77.2 % alone, and 78.4 % as one of five
    one = {"on": "confident", "thresholds": {"pass_rate": "≥ 77.8%"}}
    assert verdict(one, rows).verdict == "fail"
    four = [{"metric": "pass_rate", "threshold": f"≥ {t}%"} for t in (60, 61, 62, 63)]
    shared = verdict({**one, "gates": four}, rows)
    assert gate(shared, "pass_rate (thresholds)").verdict == "inconclusive"
    # a gate that surely fails leaves its share to the others
    sure = [{"metric": "pass_rate", "threshold": f"≥ {t}%"} for t in (96, 97, 98, 99)]
    assert gate(verdict({**one, "gates": sure}, rows), "pass_rate (thresholds)").verdict == "fail"


def test_scores_below_one_another_are_told_with_the_scenarios_that_decided():
    rows = [*behaviours(8, 8), {"task_id": "worst", "expected": 4, "observed": 1}]
    found = verdict({"thresholds": {"behavior_coverage": 95}}, rows)
    assert [(s.id, s.why) for s in found.deciding[0].scenarios] == [
        ("worst", "behavior_coverage 25.0 %")
    ]


def test_a_latency_and_a_cost_can_be_gated_on_their_interval():
    slow = [{"task_id": str(i), "latency_ms": 1000.0 + i, "cost_usd": 0.01} for i in range(200)]
    made = {"on": "confident", "thresholds": {"latency_p95": "2s", "cost_usd_mean": "$0.02"}}
    assert verdict(made, slow).verdict == "pass"
    made = {"on": "confident", "thresholds": {"latency_p95": "1.1s"}}
    assert verdict(made, slow).verdict == "fail"


def test_an_end_that_is_missing_asks_for_more_attempts():
    few = [{"task_id": str(i), "latency_ms": 1000.0} for i in range(30)]
    made = {"on": "confident", "thresholds": {"latency_p95": "2s"}}
    (decision,) = verdict(made, few).gates
    assert decision.verdict == "inconclusive"
    assert "too few for an end on that side; more would give one" in decision.why
    two = [{"task_id": str(i), "cost_usd": 0.1} for i in range(2)]
    made = {"on": "confident", "thresholds": {"cost_usd_mean": "$0.15"}}
    assert verdict(made, two).verdict == "inconclusive"  # two equal numbers are no certainty


NAMES = ["A", "B", "C", "D"]
CATEGORIES = ["happy_path", "adversarial", "edge_case", None]
numbers = st.floats(0, 5, allow_nan=False)
rates = st.integers(0, 100)


@settings(max_examples=60)
@given(
    st.data(),
    st.dictionaries(st.sampled_from(CATEGORIES[:3]), numbers),
    st.dictionaries(st.sampled_from(["pass_rate", "behavior_coverage", "safety_rate"]), rates),
    st.sets(st.sampled_from(NAMES)),
    st.sampled_from(["value", "confident"]),
)
def test_a_violated_must_not_cannot_pass(data, weights, thresholds, optional, on):
    """Whatever is weighed, allowed or called optional, a violation is the end of it."""
    rows = [
        {
            "task_id": name,
            "category": data.draw(st.sampled_from(CATEGORIES)),
            "weight": data.draw(numbers),
            "pass_score": data.draw(st.floats(0, 1)),
            "expected": 4,
            "observed": data.draw(st.integers(0, 4)),
            "violations": 0,
            "passed": data.draw(st.sampled_from([True, None])),
        }
        for name in NAMES
    ]
    violated = data.draw(st.integers(0, len(rows) - 1))
    rows[violated]["violations"] = data.draw(st.integers(1, 3))
    made = {
        "on": on,
        "weights": {"by_category": weights},
        "thresholds": {"blocking" if data.draw(st.booleans()) else "warning": thresholds},
        "optional_scenarios": sorted(optional),
        "pass_criteria": {"overall": data.draw(rates)},
        "errors": data.draw(st.sampled_from([0, "100%"])),
    }
    found = verdict(made, rows)
    assert found.verdict == "fail"
    assert NAMES[violated] in {s.id for s in gate(found, "must_not").scenarios}


@settings(max_examples=40)
@given(st.integers(2, 40), st.integers(0, 40), st.integers(0, 100))
def test_a_confident_verdict_never_contradicts_the_value(total, hits, limit):
    rows = share(min(hits, total), total)
    value = verdict({"thresholds": {"pass_rate": limit}}, rows).verdict
    sure = verdict({"on": "confident", "thresholds": {"pass_rate": limit}}, rows).verdict
    assert sure in {value, "inconclusive"}


def test_false_alarms_of_the_whole_way_stay_below_what_is_stated():
    rng = np.random.default_rng(1)
    made = policy({"on": "confident", "thresholds": {"accuracy": 80}})
    alarms = 0
    for _ in range(150):
        hits = int(rng.binomial(60, 0.8))
        alarms += verdict(made, answers(hits, 60)).verdict == "fail"
    assert alarms <= 15  # 5 % of 150 is 7.5; more than 15 has a chance of 1 in 200


def test_slips_of_the_pen_are_told():
    made = {
        "weights": {"by_category": {"adverserial": 3, "edge": 2}},
        "optional_scenarios": ["t1", "t99"],
        "pass_criteria": {"overall": 50, "by_category": {"hapy_path": 0}},
    }
    rows = [*share(9, 9, category="adversarial"), *share(9, 9, "e", category="Edge ")]
    found = verdict(made, rows)
    assert found.notes == (
        "weights.by_category: no record has 'adverserial' (did you mean 'adversarial'?). "
        "The records have adversarial, edge.",
        "pass_rate of hapy_path: any value meets ≥ 0.0 %.",
        "optional_scenarios: no record has 't99'.",
    )
    assert gate(found, "pass_rate of hapy_path").why == (
        "no record has category 'hapy_path': what was not measured does not pass. "
        "The records have adversarial, edge."
    )


def test_all_scenarios_that_decided_are_there():
    found = verdict({"thresholds": {"pass_rate": 90}, "required_scenarios": [f"t{i}" for i in
                    range(80)]}, share(8, 80))  # fmt: skip
    assert [len(g.scenarios) for g in found.gates] == [72, 72]
    assert gate(found, "required_scenarios").why.endswith("t10 did not pass; and 69 more.")


def test_scores_made_of_others_take_the_weighted_rates_that_are_shown():
    rows = [*share(0, 1, "a", category="core"), *share(9, 9, "b", category="edge")]
    weighted = {"weights": {"by_category": {"core": 9}, "pass_rate": 1},
                "thresholds": {"pass_rate": 0, "weighted_score": 0}}  # fmt: skip
    found = verdict(weighted, rows)
    assert {g.name: g.value for g in found.gates} == {"pass_rate": 0.5, "weighted_score": 0.5}
    low, high = gate(found, "weighted_score").low, gate(found, "weighted_score").high
    assert (low, high) == (gate(found, "pass_rate").low, gate(found, "pass_rate").high)


REPEATED = [
    {"task_id": f"t{task}", "attempt": i, "passed": i <= task}
    for task in range(5)
    for i in range(1, 5)
]


def test_gates_on_repeated_attempts_have_a_k_of_their_own():
    gates = [
        {"metric": "pass_at_k", "k": 1, "threshold": "≥ 50%"},
        {"metric": "pass_at_k", "k": 4, "threshold": "≥ 80%"},
        {"metric": "pass_hat_k", "k": 4, "threshold": "≥ 21%"},
        {"metric": "g_pass_at_k", "k": 4, "tau": 0.75, "threshold": "≥ 40%"},
        {"metric": "k_of_n", "k": 1, "n": 2, "threshold": "≥ 70%"},
    ]
    found = verdict({"gates": gates}, REPEATED)
    assert [(g.name, g.value, g.verdict) for g in found.gates] == [
        ("pass_at_k (k = 1)", 0.5, "pass"),
        ("pass_at_k (k = 4)", 0.8, "pass"),
        ("pass_hat_k (k = 4)", 0.2, "fail"),
        ("g_pass_at_k (k = 4, tau = 0.75)", pytest.approx(0.4), "pass"),
        ("k_of_n (k = 1, n = 2)", pytest.approx(2 / 3), "fail"),
    ]


def test_tasks_with_fewer_attempts_than_k_are_noted_and_do_not_pass_alone():
    given = {"gates": [{"metric": "pass_at_k", "k": 4, "threshold": 0}]}
    found = verdict(given, REPEATED[:-1])
    assert "3 attempts without a verdict, or at tasks with too few, left out" in found.notes[-1]
    alone = verdict(given, REPEATED[:3])
    assert alone.verdict == "fail"
    assert "No task has enough attempts" in alone.gates[0].why


def confident(metric, threshold, rows, **more):
    given = {"on": "confident", "gates": [{"metric": metric, "threshold": threshold, **more}]}
    return next(g for g in verdict(given, rows).gates if g.metric == metric)


def test_the_rate_of_errors_has_exact_ends():
    # with a true rate of 12.5 %, 20 attempts without an error are seen in 6.9 % of cases
    assert confident("attempt_error_rate", "<= 12.5%", share(20, 20)).verdict == "inconclusive"
    found = confident("attempt_error_rate", "<= 14%", share(20, 20))
    assert found.verdict == "pass"
    assert found.high == pytest.approx(1 - 0.05 ** (1 / 20))


def test_pass_at_k_has_ends_that_count_tasks():
    rows = [
        {"task_id": f"t{t}", "attempt": a, "passed": t > 2 or a == 1}
        for t in range(20)
        for a in range(1, 5)
    ]
    low, high = drawn_ends(np.array([0.5] * 3 + [1.0] * 17), np.ones(20), 0.05)
    found = confident("pass_at_k", "90%", rows, k=2)
    assert found.value == pytest.approx(0.925)
    assert (found.low, found.high) == pytest.approx((low, high))


BOUNDED = (
    ("cost_of_pass", "<= 0.005", {"cost_usd": 0.01}),
    ("cost_usd_mean", "<= 0.005", {"cost_usd": 0.01}),
    ("cost_usd_total", "<= 0.5", {"cost_usd": 0.01}),
    ("latency_mean_ms", "<= 5s", {"latency_ms": 9_000.0}),
    ("latency_p95_ms", "<= 5s", {"latency_ms": 9_000.0}),
    ("total_tokens_mean", "<= 50", {"prompt_tokens": 50, "completion_tokens": 40}),
    (
        "token_efficiency",
        ">= 0.1",
        {"prompt_tokens": 50, "completion_tokens": 40, "impl_rate": 0.5},
    ),
    ("pass_rate", "95%", {}),
    ("truncated_rate", "<= 10%", {"truncated": True}),
)


@pytest.mark.parametrize("on", ["value", "confident"])
@pytest.mark.parametrize(("metric", "limit", "cells"), BOUNDED, ids=[b[0] for b in BOUNDED])
def test_a_failure_that_no_missing_attempt_can_undo_is_a_failure(on, metric, limit, cells):
    """One missing attempt in 600 left a cost of $0.0082 against $0.005 open."""
    made = {"on": on, "thresholds": {metric: limit}}
    rows = share(80, 100, **cells)
    assert verdict(made, rows).verdict == "fail"
    found = verdict(made, [*rows, failed()])
    decided = gate(found, metric)
    assert (found.verdict, decided.verdict) == ("fail", "fail")
    assert "1 attempt could not be made, which cannot change that: at best it would be " in (
        decided.why
    )
    many = [failed(f"f{i}") for i in range(20 if metric == "cost_usd_total" else 3_000)]
    word = "fail" if metric == "cost_usd_total" else "inconclusive"
    assert gate(verdict(made, [*rows, *many]), metric).verdict == word


def test_a_failure_is_open_where_no_result_is_the_best_one():
    rows = [{"task_id": f"t{i}", "correct": i % 2 > 0, "prob_correct": 0.9} for i in range(40)]
    found = gate(verdict({"thresholds": {"ece": "<= 0.1"}}, [*rows, failed()]), "ece")
    assert found.verdict == "inconclusive"
    assert found.why.endswith("But 1 attempt could not be made, which could change the result.")


def test_a_composite_that_missing_attempts_cannot_raise_fails():
    made = {"composite": {"weights": {"pass_rate": 0.5, "normalized_latency": 0.5},
                          "pass": "final_score ≥ 0.9"}}  # fmt: skip
    rows = share(40, 100, latency_ms=2_500.0)
    assert verdict(made, rows).verdict == "fail"
    assert verdict(made, [*rows, failed()]).verdict == "fail"
    assert verdict(made, [*rows, *(failed(f"f{i}") for i in range(9_000))]).verdict != "fail"


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_no_result_of_a_missing_attempt_is_better_than_the_best_one(data):
    metric, limit, cells = data.draw(st.sampled_from(BOUNDED))
    rows = share(80, 100, **cells)
    amounts = {"truncated": st.booleans(), "impl_rate": st.floats(0, 1),
               "cost_usd": st.floats(0, 1e6), "latency_ms": st.floats(0, 1e6)}  # fmt: skip
    own = {name: data.draw(amounts.get(name, st.integers(0, 999))) for name in cells}
    result = {"task_id": "x", "passed": data.draw(st.booleans()), **own}
    made = {"thresholds": {metric: limit}}
    metrics = needed_metrics(policy(made))
    records = records_of([*rows, failed()], metrics, {})
    best = at_best(metric, records, absent=0, errors=True).estimate(metric, 0.9).value
    value = records_of([*rows, result], metrics, {}).estimate(metric, 0.9).value
    up = METRICS[metric].better == "higher"
    assert value <= best * (1 + 1e-12) if up else value >= best * (1 - 1e-12)
