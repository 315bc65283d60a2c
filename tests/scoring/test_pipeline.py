"""Every metric against the plain reference, on generated records, alone and grouped."""

import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pennyweight
from generate import many, records
from pennyweight.define import MEASURES, METRICS
from pennyweight.errors import UsageError
from reference import has_verdicts, reference
from reference import measures as plain_measures

OPTIONS = [
    {},
    {"positive": "Yes"},
    {"positive": "1000", "bins": 7, "latency_budget_ms": 100.0},
    {"pass_weight": 3.0, "impl_weight": 1.0},
    {"weights": {"accuracy": 1.0, "pass_rate": 3.0, "brier": 0.5}},
    {"k": 2},
    {"k": 1, "n": 3, "tau": 1.0},
]


def assert_same(scored, expected):
    assert scored.records == expected["records"]
    assert scored.errors == expected["errors"]
    assert set(scored.estimates) == set(METRICS) == set(expected["metrics"])
    for name, value in expected["metrics"].items():
        found = scored[name].value
        if value is None or isinstance(value, str):
            assert found == value, name
        else:
            assert found == pytest.approx(value, rel=1e-9, abs=1e-12), name
    skipped = {name: estimate.skipped for name, estimate in scored.estimates.items()}
    assert skipped == expected["skipped"]
    for name, statistics in expected["statistics"].items():
        found = scored.statistics[name]
        if statistics is None:
            assert found is None, name
            continue
        for field, value in statistics.items():
            got = getattr(found, field)
            assert got == (None if value is None else pytest.approx(value, rel=1e-9)), (name, field)


def assert_sound(scored):
    """An interval holds its value and stays inside the metric's range."""
    for name, e in scored.estimates.items():
        if e.low is None or isinstance(e.value, str):
            continue
        assert e.low <= e.value <= e.high, (name, e)
        low, high = METRICS[name].range or (None, None)
        assert low is None or e.low >= low, (name, e)
        assert high is None or e.high <= high, (name, e)
        assert not math.isnan(e.low), name


@settings(max_examples=80)
@given(records(), st.sampled_from(OPTIONS))
def test_every_metric_equals_the_plain_reference(rows, options):
    (group,) = pennyweight.score(rows, **options).groups
    assert_same(group, reference(rows, **options))
    assert_sound(group)


@settings(max_examples=40)
@given(records(max_size=25))
def test_groups_equal_the_reference_of_each(rows):
    scores = pennyweight.score(rows, by="tier")
    tiers = {row["tier"] for row in rows}
    assert {g.group["tier"] for g in scores.groups} == tiers
    for group in scores.groups:
        chosen = [r for r in rows if r["tier"] == group.group["tier"]]
        assert_same(group, reference(chosen, origin=rows))
        assert_sound(group)


@pytest.mark.parametrize("attempts", [1, 4])
def test_two_thousand_records(attempts):
    rows = many(2000, attempts=attempts)
    (group,) = pennyweight.score(rows).groups
    assert_same(group, reference(rows))
    assert_sound(group)
    for one in pennyweight.score(rows, by=["tier", "category"]).groups:
        chosen = [r for r in rows if one.group.items() <= r.items()]
        assert_same(one, reference(chosen, origin=rows))


@settings(max_examples=60)
@given(rows=records())
def test_every_measure_equals_the_plain_reference(tmp_path_factory, rows):
    file = tmp_path_factory.mktemp("p") / "measures.parquet"
    pennyweight.score(rows, per_task=file)
    verdicts = has_verdicts(rows)
    for row, measured in zip(rows, pl.read_parquet(file).to_dicts(), strict=True):
        for name, value in plain_measures(row, verdicts=verdicts).items():
            assert measured[name] == (value if value is None else pytest.approx(value)), name


def test_scores_do_not_depend_on_the_order_of_records():
    rows = many(300, attempts=3)
    forwards, backwards = pennyweight.score(rows), pennyweight.score(rows[::-1])
    for name, estimate in forwards.groups[0].estimates.items():
        other = backwards[name]
        assert (estimate.records, estimate.skipped) == (other.records, other.skipped)
        for field in ("value", "low", "high"):
            value = getattr(estimate, field)
            expected = value if value is None or isinstance(value, str) else pytest.approx(value)
            assert getattr(other, field) == expected, (name, field)


def test_no_records_give_nulls():
    (group,) = pennyweight.score([]).groups
    assert group.records == 0
    assert all(e.value is None and e.low is None for e in group.estimates.values())
    assert all(s is None for s in group.statistics.values())


def test_one_record_has_no_interval():
    (row,) = many(1, seed=3)
    (group,) = pennyweight.score([row | {"status": "ok"}]).groups
    assert group["attempt_error_rate"].value == 0
    assert [n for n, e in group.estimates.items() if e.low is not None] == []


def test_all_null_records_give_nulls_but_are_counted():
    (group,) = pennyweight.score([{"task_id": "a"}, {"task_id": "b"}]).groups
    assert group.records == 2
    values = {n: e.value for n, e in group.estimates.items() if e.value is not None}
    assert values == {"attempt_error_rate": 0.0, "reported_failure_rate": 0.0}


def test_a_group_of_errors_alone_is_still_shown():
    rows = [
        {"task_id": "a", "tier": "T0", "answer": "4", "target": "4"},
        {"task_id": "a", "tier": "T1", "status": "error", "cost_usd": 0.5},
    ]
    first, second = pennyweight.score(rows, by="tier").groups
    assert (first["accuracy"].value, second["accuracy"].value) == (1.0, None)
    assert second.errors == 1
    assert second["attempt_error_rate"].value == 1.0
    assert second["cost_usd_total"].value == 0.5
    assert second["cost_usd_mean"].value is None


def test_an_error_text_without_a_status_is_an_error():
    rows = [{"answer": "4", "target": "4"}, {"target": "4", "error": "connection refused"}]
    scores = pennyweight.score(rows)
    assert scores.groups[0].errors == 1
    assert scores["accuracy"].value == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["acuracy"]}, "Did you mean 'accuracy'"),
        ({"by": "teir"}, "Did you mean 'tier'"),
        ({"positve": "x"}, "Did you mean 'positive'"),
        ({"weights": {"acuracy": 1}}, "Did you mean 'accuracy'"),
        ({"weights": {"weighted_score": 1}}, "own weights"),
        ({"weights": {"accuracy": 0.0}}, "add up to 0"),
        ({"weights": {"grade": 1.0}}, "not a number"),
        ({"pass_weight": 0, "impl_weight": 0}, "add up to 0"),
        ({"latency_budget_ms": 0}, "above 0"),
        ({"bins": 0}, "between 1 and 10,000"),
        ({"confidence": 1.5}, "between 0 and 1"),
        ({"map": {"anser": "x"}}, "Did you mean 'answer'"),
    ],
)
def test_wrong_usage_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        pennyweight.score(many(10), **options)


def test_metrics_and_measures_have_the_names_users_rely_on():
    names = """accuracy error_rate usr brier ece sce sce_normalized cot_tokens_mean cot_chars_mean
        step_count_mean ra_ratio_mean self_correction_rate prompt_tokens_mean
        completion_tokens_mean total_tokens_mean latency_mean_ms latency_p95_ms pass_rate
        impl_rate_mean cost_usd_mean cost_usd_total cost_of_pass composite_median grade precision
        recall safety_rate behavior_coverage behavior_coverage_micro token_efficiency
        weighted_score final_score attempt_error_rate truncated_rate"""
    assert set(METRICS) >= set(names.split())
    names = """correct cot_tokens cot_chars step_count ra_ratio self_correcting total_tokens passed
        impl_rate cost_usd duration_seconds cost_of_pass composite_score scenario_score
        violations"""
    assert set(MEASURES) >= set(names.split())
