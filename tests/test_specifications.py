"""Every worked example of the three specifications, with its numbers."""

import json
import math

import pytest

import pennyweight
from cli.command import pennyweight as pennyweight_command
from pennyweight.define import canonical, evaluate, metric_named
from pennyweight.errors import PennyweightError, UsageError
from pennyweight.metrics.cost import cost_of_pass, grade
from pennyweight.metrics.scenario import final_score, weighted_score
from pennyweight.render.catalogue import named
from pennyweight.render.comparison import render as comparison_text
from pennyweight.scoring.consensus import weighted_score as weighted_by_judges
from pennyweight.scoring.scores import MetricsSummary
from pennyweight.suite.rubric import load_rubric


def runs(passes, **columns):
    return [
        {"task_id": "t", "attempt": i + 1, "passed": bool(p), **columns}
        for i, p in enumerate(passes)
    ]


def statistics(costs):
    return (
        pennyweight.score([{"cost_usd": cost} for cost in costs]).groups[0].statistics["cost_usd"]
    )


def test_a_single_run():
    scores = pennyweight.score([{"passed": True, "weighted_score": 0.85, "cost_usd": 0.50}])
    assert scores["pass_rate"].value == 1.0
    assert scores["impl_rate_mean"].value == 0.85
    assert scores["cost_of_pass"].value == 0.50
    assert scores["composite_median"].value == pytest.approx(0.925)
    assert scores["grade"].value == "B"


def test_ten_runs_are_described():
    passes = [1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0]
    found = pennyweight.score(runs(passes)).groups[0].statistics["passed"]
    expected = {"median": 1.0, "mean": 0.8, "mode": 1.0, "min": 0.0, "max": 1.0, "count": 10}
    assert {n: getattr(found, n) for n in expected} == pytest.approx(expected)
    assert found.std_dev == pytest.approx(0.4)
    assert found == statistics(passes)


def test_median_and_mode_of_even_and_tied_values():
    assert statistics([4, 1, 3, 2]).median == 2.5
    assert statistics([3, 1, 2]).median == 2
    assert statistics([2, 2, 1, 1, 3]).mode == 1
    assert statistics([None]) is None


def test_medians_of_tiers_and_their_population_variance():
    found = statistics([0.70, 0.80, 0.85, 0.90])
    assert found.mean == pytest.approx(0.8125)
    assert found.std_dev**2 == pytest.approx(0.00547, abs=5e-6)


def test_a_tier_that_never_passes_costs_infinity():
    assert evaluate(cost_of_pass, cost_usd=[1.0, 2.0], passed=[False, False]) == math.inf
    scores = pennyweight.score(runs([0, 0], cost_usd=1.0))
    assert scores["cost_of_pass"].value == math.inf
    described = scores.groups[0].statistics["cost_of_pass"]
    assert (described.mean, described.std_dev) == (math.inf, None)
    assert scores.to_dict()["groups"][0]["metrics"]["cost_of_pass"] == "Infinity"


def test_cost_of_pass_over_runs_is_total_cost_over_passes():
    rows = runs([1, 0, 1, 0])
    for row, cost in zip(rows, [0.1, 0.2, 0.3, 0.4], strict=True):
        row["cost_usd"] = cost
    scores = pennyweight.score(rows)
    assert scores["cost_of_pass"].value == pytest.approx(1.0 / 2)
    mean, rate = scores["cost_usd_mean"].value, scores["pass_rate"].value
    assert scores["cost_of_pass"].value == pytest.approx(mean / rate)


def test_money_spent_on_errors_is_spent():
    rows = runs([1, 0, 1, 0], cost_usd=0.25)
    rows += [{**rows[0], "run": "r9", "status": "error", "cost_usd": 0.5}]
    rows += [{**rows[0], "run": "r10", "status": "error", "cost_usd": None}]
    scores = pennyweight.score(rows)
    price = scores["cost_of_pass"]
    assert (price.value, price.records, price.skipped) == (pytest.approx(1.5 / 2), 5, 1)
    assert scores["cost_usd_total"].value == 1.5
    assert scores["cost_usd_mean"].value == 0.25  # of an attempt that ended without an error
    assert scores["pass_rate"].value == 0.5
    none = pennyweight.score([row | {"status": "error"} for row in rows])
    assert none["cost_of_pass"].value is None  # nothing has a verdict, so nothing has a price


@pytest.mark.parametrize(
    ("composite", "letter"),
    [(1.0, "A"), (0.95, "A"), (0.9499, "B"), (0.85, "B"), (0.75, "C"), (0.65, "D"), (0.6499, "F")],
)
def test_grades(composite, letter):
    value = evaluate(grade, passed=[True], impl_rate=[composite], pass_weight=0, impl_weight=1)
    assert value == letter


def test_other_grade_scales():
    scale = {"pass": 0.5}
    assert evaluate(grade, passed=[True], impl_rate=[0.2], grades=scale) == "pass"
    assert evaluate(grade, passed=[False], impl_rate=[0.2], grades=scale) == "F"


def test_cost_of_tokens_at_the_records_prices():
    row = {"input_tokens": 1_000_000, "output_tokens": 100_000}
    for prices, cost in [((15, 75), 22.5), ((3, 15), 4.5), ((5, 15), 6.5)]:
        priced = row | {"input_price": prices[0], "output_price": prices[1]}
        assert pennyweight.score([priced])["cost_usd_mean"].value == pytest.approx(cost)
    assert pennyweight.score([row])["cost_usd_mean"].value is None


def suite(accuracy, safety, coverage, p95):
    """Made-up records with just these metrics."""
    parts = [
        *({"correct": i < accuracy * 100, "passed": True} for i in range(100)),
        *({"passed": i < safety * 100, "category": "adversarial"} for i in range(100)),
        *({"expected": 100, "observed": round(coverage * 100), "passed": True} for _ in range(10)),
        {"latency_ms": p95, "passed": True},
    ]
    return [{"task_id": str(i), **part} for i, part in enumerate(parts)]


def test_weighted_aggregation():
    weights = {"accuracy": 1.0, "safety_rate": 3.0, "behavior_coverage": 1.5}
    scores = pennyweight.score(suite(0.9, 1.0, 0.85, 1000), weights=weights)
    assert scores["weighted_score"].value == pytest.approx(0.940909, abs=1e-6)
    assert evaluate(weighted_score, weights=None) is None


@pytest.mark.parametrize(
    ("p95", "final"), [(2500, 0.915), (5000, 0.865), (60_000, 0.865), (0, 0.965)]
)
def test_composite_score(p95, final):
    scores = pennyweight.score(suite(0.95, 1.0, 0.9, p95))
    assert scores["final_score"].value == pytest.approx(final)
    assert (final >= 0.85) == (scores["final_score"].value >= 0.85)


def test_composite_score_uses_the_latency_budget():
    value = pennyweight.score(suite(0.95, 1.0, 0.9, 500), latency_budget_ms=1000)[
        "final_score"
    ].value
    assert value == pytest.approx(0.915)
    assert final_score.options == {"latency_budget_ms": 5000.0}


def test_scenario_scores():
    rows = [
        {"expected": 4, "observed": 3, "violations": 0},
        {"expected": 4, "observed": 4, "violations": 1},
        {"expected_behaviors": ["a", "b"], "observed_behaviors": ["b", "z"], "violated": []},
        {"expected": 0, "observed": 0, "violations": 0},
    ]
    scores = pennyweight.score([{"task_id": str(i), **row} for i, row in enumerate(rows)])
    assert scores["behavior_coverage"].value == pytest.approx((0.75 + 0 + 0.5) / 3)
    assert scores["behavior_coverage_micro"].value == pytest.approx((3 + 4 + 1) / (4 + 4 + 2))
    assert scores["pass_rate"].value == 0.25


def test_nothing_masks_a_violation():
    row = {"passed": True, "expected": 1, "observed": 1, "pass_score": 0.0, "violations": 1}
    assert pennyweight.score([row])["pass_rate"].value == 0.0
    hidden = {"passed": True, "violations": 0, "violated": ["leaks a key"]}
    assert pennyweight.score([hidden])["pass_rate"].value == 0.0


def test_safety_rate_without_adversarial_scenarios_is_null():
    assert (
        pennyweight.score([{"passed": True, "category": "happy_path"}])["safety_rate"].value is None
    )


def test_a_missing_answer_is_wrong_and_one_more_distinct_answer():
    rows = [{"target": "4", "answer": "4"}, {"target": "4", "answer": None}]
    scores = pennyweight.score([{"task_id": str(i), **row} for i, row in enumerate(rows)])
    assert scores["accuracy"].value == 0.5
    assert scores["sce"].value == pytest.approx(math.log(2))
    assert scores["sce_normalized"].value == 1.0


def test_running_out_of_time_is_not_passing_and_its_cost_counts():
    rows = [
        {"task_id": "a", "passed": True, "status": "timeout", "cost_usd": 1.0, "latency_ms": 9.0},
        {"task_id": "b", "passed": True, "cost_usd": 1.0, "latency_ms": 1.0},
    ]
    scores = pennyweight.score(rows)
    assert scores["pass_rate"].value == 0.5
    assert scores["cost_of_pass"].value == 2.0
    assert scores["latency_mean_ms"].value == 5.0


def test_ece_bins_begin_at_their_edges():
    rows = [{"prob_correct": 0.3, "correct": True}, {"prob_correct": 0.2999, "correct": False}]
    value = pennyweight.score([{"task_id": str(i), **r} for i, r in enumerate(rows)])["ece"].value
    assert value == pytest.approx((0.7 + 0.2999) / 2)


def test_the_summary_has_the_fields_of_its_specification():
    assert list(MetricsSummary.__dataclass_fields__) == [
        "accuracy",
        "brier",
        "ece",
        "sce",
        "usr",
        "cot_tokens_mean",
        "cot_chars_mean",
        "step_count_mean",
        "ra_ratio_mean",
        "self_correction_rate",
        "prompt_tokens_mean",
        "completion_tokens_mean",
        "total_tokens_mean",
        "latency_mean_ms",
        "latency_p95_ms",
    ]
    summary = pennyweight.score([{"answer": "4", "target": "4"}]).summary()
    assert (summary.accuracy, summary.brier, summary.cot_tokens_mean) == (1.0, None, None)


def test_the_result_of_a_task_has_the_fields_of_its_specification():
    assert list(pennyweight.PerTaskResult.__dataclass_fields__) == [
        "correct",
        "cot",
        "cot_tokens",
        "step_count",
        "self_correcting",
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "latency_ms",
    ]


def tiers(**medians):
    """Return ten attempts in each tier, all with the same values."""
    return [
        {"task_id": f"t{i}", "attempt": 1, "tier": tier, "subject": "m", **values}
        for tier, values in medians.items()
        for i in range(10)
    ]


FOUR = tiers(
    T0={"passed": True, "impl_rate": 0.4, "cost_usd": 0.5},
    T1={"passed": True, "impl_rate": 0.6, "cost_usd": 0.75},
    T2={"passed": True, "impl_rate": 0.7, "cost_usd": 1.0},
    T3={"passed": False, "impl_rate": 1.0, "cost_usd": 2.0},
)


def test_metrics_across_tiers_are_metrics_like_others():
    scores = pennyweight.score(FOUR, by="subject")
    assert scores["tier_uplift"].value == pytest.approx((0.85 - 0.70) / 0.70)
    assert scores["pass_rate_variance"].value == pytest.approx(0.1875)
    costs = [0.5, 0.75, 1.0, 2.0]
    assert scores["cost_variance"].value == pytest.approx(statistics(costs).std_dev ** 2)
    assert scores["cost_delta"].value == 1.5
    assert pennyweight.score(FOUR, by="tier")["T1"]["tier_uplift"].value is None


def test_metrics_across_tiers_are_compared():
    found = pennyweight.compare(FOUR, by="tier", metrics=["tier_uplift", "cost_variance"])
    uplifts = [side["tier_uplift"].value for side in found.sides]
    assert uplifts == [None, *map(pytest.approx, (0.1 / 0.7, 0.15 / 0.7, -0.2 / 0.7))]
    text = " ".join(comparison_text(found, "table").split())
    assert "tier uplift" in text
    assert "cost_variance 0.32" in text
    assert "no value" not in text
    usual = " ".join(comparison_text(pennyweight.compare(FOUR, by="tier"), "table").split())
    assert "Across the sides: cost_variance 0.324." in usual  # a median pass is a yes or a no
    named = pennyweight.compare(FOUR, by="tier", metrics=["pass_rate_variance"])
    assert "pass_rate_variance 0.188" in comparison_text(named, "table")


def test_metrics_across_tiers_are_gated():
    gates = {
        "tier_uplift": (">= 20%", "pass"),
        "pass_rate_variance": ("<= 0.1", "fail"),
        "cost_variance": ("<= 0.4", "pass"),
        "cost_delta": ("<= $1", "fail"),
    }
    policy = {"gates": [{"metric": n, "threshold": t} for n, (t, _) in gates.items()]}
    verdict = pennyweight.gate(FOUR, policy)
    assert {g.metric: g.verdict for g in verdict.gates} == {n: v for n, (_, v) in gates.items()}


NAMES = {
    "ACC": "accuracy",
    "ERR": "error_rate",
    "USR_v0": "usr",
    "Brier": "brier",
    "ECE": "ece",
    "SCE_v0": "sce",
    "COT_TOKENS_MEAN": "cot_tokens_mean",
    "COT_CHARS_MEAN": "cot_chars_mean",
    "STEP_COUNT_MEAN": "step_count_mean",
    "RA_RATIO_MEAN": "ra_ratio_mean",
    "SELF_CORRECTION_RATE": "self_correction_rate",
    "TOKENS_MEAN": "total_tokens_mean",
    "PROMPT_TOKENS_MEAN": "prompt_tokens_mean",
    "COMPLETION_TOKENS_MEAN": "completion_tokens_mean",
    "TOTAL_TOKENS_MEAN": "total_tokens_mean",
    "LATENCY_MEAN": "latency_mean_ms",
    "LATENCY_MEAN_MS": "latency_mean_ms",
    "LATENCY_P95": "latency_p95_ms",
    "LATENCY_P95_MS": "latency_p95_ms",
    "latency_p95": "latency_p95_ms",
    "impl_rate": "impl_rate_mean",
    "cost_usd": "cost_usd_mean",
    "CoP": "cost_of_pass",
    "composite": "composite_median",
}
"""The names in the specifications, and ours."""
ONE = [
    {
        "task_id": "a",
        "answer": "4",
        "target": "4",
        "prob_correct": 0.75,
        "passed": True,
        "cot": "1. two\n2. two",
        "prompt_tokens": 5,
        "completion_tokens": 7,
        "latency_ms": 9.0,
        "impl_rate": 0.5,
        "cost_usd": 0.25,
    }
]


def limit(name):
    lower = metric_named(name).better == "lower"
    return "<= 0.9" if lower else ">= 0.1" if metric_named(name).better else "<= 99"


@pytest.mark.parametrize("name", NAMES)
def test_names_of_the_specifications_are_known(name):
    ours = NAMES[name]
    for written in (name, name.lower(), name.upper()):
        scores = pennyweight.score(ONE, metrics=[written])
        assert list(scores.groups[0].estimates) == [ours]
        assert scores[written] == scores[ours]
        policy = {"gates": [{"metric": written, "threshold": limit(ours)}]}
        assert pennyweight.gate(ONE, policy).gates[0].metric == ours
    assert ours in {one.name for one in named(name.upper())} | {canonical(name.upper())}


def test_names_of_the_specifications_are_known_in_weights_and_composites():
    policy = {
        "weights": {"ACC": 1.0, "Pass_Rate": 3.0},
        "thresholds": {"weighted_score": "90%", "blocking": {"acc": 90, "ERR": 10}},
        "composite": "final = acc × 0.5 + (1 - ERR) × 0.5\npass = final ≥ 0.9 AND ACC = 1",
    }
    verdict = pennyweight.gate(ONE, policy)
    assert verdict.verdict == "pass"
    metrics = [gate.metric for gate in verdict.gates]
    assert metrics == ["weighted_score", "accuracy", "error_rate", "final", "accuracy"]


def test_a_score_of_the_user_keeps_its_name():
    rows = [{**ONE[0], "answer": "5"}]
    scores = pennyweight.score(rows, scorers=[acc], metrics=["acc"])
    assert (list(scores.groups[0].estimates), scores["acc"].value) == (["acc"], 1.0)


def acc(response=None):
    return 1.0


def test_statistics_are_public():
    found = pennyweight.score(ONE).groups[0].statistics["cost_usd"]
    assert found == pennyweight.Statistics(0.25, 0.25, 0.25, 0.25, 0.25, 0.0, 1)


def test_a_nested_judgment_is_read_and_so_is_any_path():
    rows = [
        {
            "task_id": "a",
            "passed": True,
            "judgment": {"summary": {"weighted_score": 0.85}},
            "sample": {"reply": "1.50", "gold": "1.5"},
        }
    ]
    scores = pennyweight.score(rows, map={"answer": "sample.reply", "target": "sample.gold"})
    assert scores["impl_rate_mean"].value == 0.85
    assert scores["composite_median"].value == pytest.approx(0.925)
    assert scores["accuracy"].value == 1.0
    assert scores.unused == ()
    with pytest.raises(UsageError, match=r"sample\.none"):
        pennyweight.score(rows, map={"answer": "sample.none"})


@pytest.mark.parametrize(
    ("row", "score"),
    [
        ({"behaviors": ["a", "b"], "expected_behaviors": ["a", "b", "c", "d"]}, 0.5),
        ({"behaviors": ["a"], "expected_behaviors": ["a"], "violations": ["leaks"]}, 0.0),
        ({"behaviors": ["a"], "expected_behaviors": ["a"], "must_not": ["leaks"]}, 0.0),
        ({"behaviors": ["a"], "expected_behaviors": ["a"], "violations": []}, 1.0),
        ({"behaviors": ["a"], "expected_behaviors": ["a"], "violations": 0}, 1.0),
        ({"behavior_score": 0.75}, 0.75),
        ({"behavior_score": 0.75, "violations": 1}, 0.0),
    ],
)
def test_results_of_scenarios_are_read_as_they_are_written(row, score):
    rows = [{"task_id": "s", **row}]
    assert pennyweight.score(rows)["behavior_coverage"].value == score
    others = [*rows, {"task_id": "t", "observed": 1, "expected": 1, "violations": 0}]
    assert pennyweight.score(others)["behavior_coverage"].value == (score + 1) / 2
    assert pennyweight.score(others)["pass_rate"].value == (1 if score == 1 else 0.5)


def test_what_must_not_be_observed_is_no_violation():
    rows = [{"task_id": "s", "target": "4", "answer": "4", "must_not": ["leaks"]}]
    assert pennyweight.score(rows)["pass_rate"].value == 1


ROWS = {
    "progressive_thresholds": [
        {"version": "v1.0", "accuracy": 0.80},
        {"version": "v2.0", "accuracy": "≥ 85%", "pass_rate": 50},
        {"version": "Target", "accuracy": 0.95},
    ]
}


@pytest.mark.parametrize(
    ("version", "limits"),
    [
        ("v1.2", {"accuracy": 0.80, "pass_rate": None}),
        ("v2.0", {"accuracy": 0.85, "pass_rate": 0.5}),
        ("v4", {"accuracy": 0.85, "pass_rate": 0.5}),
        ("target", {"accuracy": 0.95}),
    ],
)
def test_progressive_thresholds_may_be_rows(version, limits):
    if version == "target":
        rows = {"progressive_thresholds": [dict(r) for r in ROWS["progressive_thresholds"]]}
        rows["progressive_thresholds"][1].pop("pass_rate")
    else:
        rows = ROWS
    found = {g.metric: g.threshold for g in pennyweight.gate(ONE, rows, version=version).gates}
    assert found == limits


def test_rows_of_thresholds_need_a_version():
    with pytest.raises(PennyweightError, match="--version"):
        pennyweight.gate(ONE, ROWS)
    with pytest.raises(PennyweightError, match="needs a version"):
        pennyweight.gate(ONE, {"progressive_thresholds": [{"accuracy": 0.8}]}, version="1")


def test_a_threshold_may_be_set_above_the_baseline(tmp_path):
    rows = [
        {"task_id": f"t{i}", "answer": "4", "target": "4" if i < 80 else "5"} for i in range(100)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    policy = tmp_path / "policy.yaml"
    policy.write_text('thresholds: {accuracy: ">= 50%"}\n')
    options = ("--policy", policy, "--ratchet", "--margin", "-1%")
    done = pennyweight_command("gate", tmp_path / "rows.jsonl", *options)
    assert (done.code, policy.read_text()) == (0, 'thresholds: {accuracy: ">= 81%"}\n')
    assert "a version that is as good fails in more than half of the cases" in done.err
    assert pennyweight.gate(rows, policy).verdict == "fail"


RUBRIC = """\
requirements:
  - {id: R001, description: The file is written., weight: 2.0, scoring_type: binary}
  - {id: R002, check: It has a test., na_condition: there is no code}
grading: {pass_threshold: 0.7}
"""


def test_a_rubric_of_the_judge_protocol_is_read(tmp_path):
    (tmp_path / "rubric.yaml").write_text(RUBRIC)
    rubric = load_rubric(tmp_path / "rubric.yaml")
    assert [(c.weight, c.items[0].id, c.items[0].points) for c in rubric.categories] == [
        (2.0, "R001", 1.0),
        (1.0, "R002", 1.0),
    ]
    assert rubric.pass_mark == 0.7
    assert rubric.items[1].na_when == "there is no code"
    assert rubric.items[0].text.startswith("The file is written. It is met or not")
    assert weighted_by_judges(rubric, {"R001": 1.0, "R002": 0.4}) == pytest.approx(2.4 / 3)
    (tmp_path / "rubric.yaml").write_text(RUBRIC.replace("grading: {", "").replace("0.7}", "0.8"))
    assert load_rubric(tmp_path / "rubric.yaml").pass_mark == 0.8
    (tmp_path / "rubric.yaml").write_text(RUBRIC.replace("id: R002, ", ""))
    with pytest.raises(PennyweightError, match=r"rubric\.yaml, line 3: .*needs 'id'"):
        load_rubric(tmp_path / "rubric.yaml")
