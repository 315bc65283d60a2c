"""Intervals: known ones are reproduced, and none claims more than the data can say."""

import math
import random

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from scipy import optimize, stats
from statsmodels.stats.proportion import proportion_confint

import pennyweight
from generate import many
from own_metrics import own_catalogue
from pennyweight.define import metric
from pennyweight.scoring.large import spill
from stats.test_skewness import plain_interval


def rows(values, column="latency_ms", attempts=1):
    return [
        {"task_id": f"t{i // attempts}", "attempt": i % attempts + 1, column: value}
        for i, value in enumerate(values)
    ]


def plain_low(right, n, tail):
    """Solve for the rate at which more, and two thirds of this many, have this probability."""

    def excess(rate):
        return stats.binom.sf(right, n, rate) + 2 / 3 * stats.binom.pmf(right, n, rate) - tail

    return optimize.brentq(excess, 0, 1, xtol=1e-12) if right else 0.0


@pytest.mark.parametrize(("right", "n"), [(0, 10), (3, 10), (10, 10), (49, 50), (171, 400)])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_rates_of_independent_records_have_a_binomial_interval(right, n, confidence):
    passed = rows([i < right for i in range(n)], "passed")
    e = pennyweight.score(passed, confidence=confidence)["pass_rate"]
    tail = (1 - confidence) / 2
    expected = plain_low(right, n, tail), 1 - plain_low(n - right, n, tail)
    assert (e.low, e.high) == pytest.approx(expected, abs=1e-9)
    exact = proportion_confint(right, n, alpha=1 - confidence, method="beta")
    assert exact[0] <= e.low <= e.value <= e.high <= exact[1]


def test_a_group_of_tasks_tried_once_has_the_interval_that_it_has_alone():
    alone = [{**row, "subject": "once"} for row in rows([i > 0 for i in range(50)], "passed")]
    often = [{**row, "subject": "often"} for row in rows([True] * 20, "passed", attempts=2)]
    both = pennyweight.score([*alone, *often], by=["subject"])
    found = next(g.estimates for g in both.groups if g.group["subject"] == "once")["pass_rate"]
    assert found == pennyweight.score(alone)["pass_rate"]


def test_ten_of_ten_is_not_certainty():
    e = pennyweight.score(rows([True] * 10, "passed"))["pass_rate"]
    assert (e.low, e.high) == (pytest.approx((0.025 / (2 / 3)) ** 0.1), 1.0)
    clustered = pennyweight.score(rows([True] * 20, "passed", attempts=2))["pass_rate"]
    assert clustered.low < e.low  # ten tasks twice are no better than ten tasks once
    scores = pennyweight.score(rows([1.0] * 10, "impl_rate"))["impl_rate_mean"]
    assert scores.low < 0.75


def test_means_are_corrected_for_skewness():
    values = np.random.default_rng(1).lognormal(5, 1, 57)
    e = pennyweight.score(rows(values.tolist()))["latency_mean_ms"]
    student = stats.t.interval(0.95, 56, values.mean(), stats.sem(values))
    assert (e.low, e.high) == pytest.approx(plain_interval(values.tolist(), 0.95, (0, None)))
    assert student[0] < e.low < e.value < student[1] < e.high
    zeros = pennyweight.score(rows([0.0, 0.0, 0.0]))["latency_mean_ms"]
    assert (zeros.low, zeros.high) == (0.0, 0.0)
    two = pennyweight.score(rows([0.1, 0.1], "cost_usd"))["cost_usd_mean"]
    assert two.low < 0.1
    assert two.high > 1


def test_repeated_attempts_are_clustered_by_task():
    rng = np.random.default_rng(2)
    attempts, tasks = 5, 30
    values = np.repeat(rng.normal(100, 20, tasks), attempts) + rng.normal(0, 5, tasks * attempts)
    e = pennyweight.score(rows(values.tolist(), attempts=attempts))["latency_mean_ms"]
    means = values.reshape(tasks, attempts).mean(axis=1)
    assert (e.low, e.high) == pytest.approx(plain_interval(means.tolist(), 0.95, (0, None)))
    groups = np.repeat(np.arange(tasks), attempts)
    fit = sm.OLS(values, np.ones_like(values)).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "df_correction": True}, use_t=True
    )
    assert (e.low, e.high) == pytest.approx(fit.conf_int()[0], rel=0.02)
    pretended = pennyweight.score(rows(values.tolist()))["latency_mean_ms"]
    assert e.high - e.low > 1.8 * (pretended.high - pretended.low)


def test_a_rate_of_perfectly_agreeing_attempts_counts_tasks_not_attempts():
    tasks = [i % 4 != 0 for i in range(40)]
    once = pennyweight.score(rows(tasks, "passed"))["pass_rate"]
    thrice = pennyweight.score(rows([t for t in tasks for _ in range(3)], "passed", 3))["pass_rate"]
    assert thrice.value == once.value
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high), abs=0.015)


def test_p95_is_enclosed_by_order_statistics():
    values = list(range(1, 1001))
    e = pennyweight.score(rows([float(v) for v in values]))["latency_p95_ms"]
    assert e.value == 950
    low, high = stats.binom.ppf([0.025, 0.975], 1000, 0.95)
    assert (e.low, e.high) == (low, high + 1)


def test_p95_of_a_few_records_has_no_upper_end():
    e = pennyweight.score(rows([float(v) for v in range(30)]))["latency_p95_ms"]
    assert e.high == math.inf
    assert e.low < e.value


def test_cost_of_pass_may_be_infinite_at_the_upper_end():
    costs = [{"task_id": str(i), "cost_usd": 0.1, "passed": i == 0} for i in range(10)]
    e = pennyweight.score(costs)["cost_of_pass"]
    assert e.value == pytest.approx(1.0)
    assert e.high == math.inf
    assert 0.1 < e.low < 1.0
    none = pennyweight.score([c | {"passed": False} for c in costs])["cost_of_pass"]
    assert none.value == math.inf


def test_a_seed_gives_the_same_interval_and_another_seed_another():
    data = many(150, seed=9)
    first, again, other = (pennyweight.score(data, seed=s) for s in (1, 1, 2))
    assert first["ece"] == again["ece"]
    assert (first["ece"].low, first["ece"].high) != (other["ece"].low, other["ece"].high)
    assert first["ece"].value == other["ece"].value


def test_intervals_shrink_with_the_confidence_and_with_the_records():
    data = many(2000, seed=4)
    wide, narrow, small = (
        pennyweight.score(data, confidence=0.99),
        pennyweight.score(data, confidence=0.8),
        pennyweight.score(data[:200]),
    )
    for name in ("accuracy", "brier", "ece", "sce", "latency_p95_ms", "cost_of_pass", "precision"):
        widths = [s[name].high - s[name].low for s in (narrow, wide, small)]
        assert widths == sorted(widths), name


def test_combined_metrics_take_their_interval_from_their_parts():
    data = [{"passed": i % 9 != 0, "impl_rate": 0.9, "task_id": str(i)} for i in range(90)]
    scores = pennyweight.score(data, weights={"pass_rate": 1.0, "impl_rate_mean": 1.0})
    e, rate, impl = (scores[n] for n in ("weighted_score", "pass_rate", "impl_rate_mean"))
    assert e.low == pytest.approx((rate.low + impl.low) / 2)
    assert e.high == pytest.approx((rate.high + impl.high) / 2)
    assert impl.low < 0.9 < impl.high
    assert scores["grade"].value in "ABCDF"
    assert scores["grade"].low is not None
    assert scores["grade"].low >= scores["grade"].high  # a letter nearer to A is higher


def coverage(metric, draw, truth, repeats=300, **options):
    """How often the 95 % interval holds the truth, over made-up data sets scored as groups."""
    rng = np.random.default_rng(11)
    worlds = [pl.DataFrame(draw(rng)).with_columns(world=pl.lit(str(i))) for i in range(repeats)]
    scores = pennyweight.score(pl.concat(worlds), by="world", metrics=[metric], **options)
    found = [group.estimates[metric] for group in scores.groups]
    assert len(found) == repeats
    return sum(e.low <= truth <= e.high for e in found) / repeats


def tasks(n, attempts=1):
    return [f"t{i // attempts}" for i in range(n)]


def test_intervals_cover_what_they_should_for_clustered_passes():
    def draw(rng):
        ease = np.repeat(rng.beta(2, 1, 40), 5)
        return {
            "task_id": tasks(200, 5),
            "attempt": [i % 5 + 1 for i in range(200)],
            "passed": rng.random(200) < ease,
        }

    assert coverage("pass_rate", draw, 2 / 3) >= 0.92


def test_intervals_cover_what_they_should_for_calibration():
    def draw(rng):
        p = rng.choice([0.15, 0.35, 0.65, 0.95], 300)
        return {"task_id": tasks(300), "prob_correct": p, "correct": rng.random(300) < p - 0.1}

    assert coverage("ece", draw, 0.1) >= 0.92

    def calibrated(rng):
        p = rng.random(200)
        return {"task_id": tasks(200), "prob_correct": p, "correct": rng.random(200) < p}

    assert coverage("ece", calibrated, 0.0) >= 0.92


def test_intervals_cover_what_they_should_for_entropy():
    shares = np.array([0.4, 0.3, 0.2, 0.05, 0.05])
    truth = float(-(shares * np.log(shares)).sum())

    def draw(rng):
        return {"task_id": tasks(150), "answer": rng.choice(list("abcde"), 150, p=shares).tolist()}

    assert coverage("sce", draw, truth) >= 0.92


def test_intervals_cover_what_they_should_for_p95_and_cost_of_pass():
    def times(rng):
        return {"task_id": tasks(200), "latency_ms": rng.exponential(100, 200)}

    assert coverage("latency_p95_ms", times, -100 * math.log(0.05)) >= 0.92

    def costs(rng):
        return {
            "task_id": tasks(120),
            "cost_usd": rng.exponential(0.3, 120),
            "passed": rng.random(120) < 0.5,
        }

    assert coverage("cost_of_pass", costs, 0.6) >= 0.92


def test_intervals_cover_what_they_should_for_macro_recall():
    right = np.array([0.9, 0.6, 0.3])

    def draw(rng):
        label = rng.choice(3, 200, p=[0.6, 0.3, 0.1])
        hit = rng.random(200) < right[label]
        return {
            "task_id": tasks(200),
            "target": [str(x) for x in label],
            "answer": [str(x) if h else "none" for x, h in zip(label, hit, strict=True)],
        }

    assert coverage("recall", draw, 0.6) >= 0.92


def unequal(rng):
    """One task with a hundred attempts, twenty with one."""
    sizes = [100] + [1] * 20
    ids = [f"t{i}" for i, n in enumerate(sizes) for _ in range(n)]
    ease = np.repeat(rng.beta(2, 2, len(sizes)), sizes)
    numbers = [a + 1 for n in sizes for a in range(n)]
    return {"task_id": ids, "attempt": numbers, "passed": rng.random(len(ids)) < ease}


def few_sure(rng):
    return {"task_id": tasks(20), "prob_correct": [0.95] * 20, "correct": rng.random(20) < 0.95}


def few_passes(rng):
    return {"task_id": tasks(30), "cost_usd": [0.1] * 30, "passed": rng.random(30) < 0.02}


def nearly_all_pass(rng):
    return {"task_id": tasks(30), "cost_usd": [0.1] * 30, "passed": rng.random(30) < 0.98}


def hardly_right(rng):
    counts = {"prompt_tokens": [60] * 15, "completion_tokens": [40] * 15}
    return {"task_id": tasks(15), "correct": rng.random(15) < 0.05, **counts}


def many_answers(rng):
    return {"task_id": tasks(200), "answer": [f"a{x}" for x in rng.integers(0, 1000, 200)]}


def rare_labels(rng):
    label = rng.choice(3, 30, p=[0.9, 0.05, 0.05])
    hit = rng.random(30) < 0.7
    named = [f"l{x}" for x in label]
    said = [x if h else "none" for x, h in zip(named, hit, strict=True)]
    return {"task_id": tasks(30), "target": named, "answer": said}


@pytest.mark.parametrize(
    ("metric", "draw", "truth"),
    [
        ("pass_rate", unequal, 0.5),
        ("ece", few_sure, 0.0),
        ("brier", few_sure, 0.95 * 0.05),
        ("cost_of_pass", few_passes, 5.0),
        ("cost_of_pass", nearly_all_pass, 0.1 / 0.98),
        ("token_efficiency", hardly_right, 0.0005),
        ("sce", many_answers, math.log(1000)),
        ("recall", rare_labels, 0.7),
    ],
)
def test_intervals_cover_what_they_should_where_that_is_hard(metric, draw, truth):
    assert coverage(metric, draw, truth, repeats=150) >= 0.9


@pytest.mark.parametrize("attempts", [1, 2])
def test_the_interval_of_a_total_cost_is_that_of_the_mean_times_the_attempts(attempts):
    costs = [0.1, 0.2, 0.3, 5.0] * 5 * attempts
    found = pennyweight.score(rows(costs, "cost_usd", attempts=attempts))
    mean, total = found["cost_usd_mean"], found["cost_usd_total"]
    times = [len(costs) * x for x in (mean.value, mean.low, mean.high)]
    assert (total.value, total.low, total.high) == pytest.approx(times)


def test_a_metric_of_users_without_a_needed_value_is_null_in_a_group_as_alone():
    records = [
        {"task_id": f"{name}{i}", "tier": tier, "passed": passed}
        for tier, passed in (("T0", True), ("T1", None))
        for i, name in enumerate("ehh")
    ]
    with own_catalogue():

        @metric(formula="share of easy tasks that passed", unit="", range=(0, 1), spec="Tests")
        def easy_passes(task_id, passed):
            """How many attempts are passes at an easy task."""
            return (task_id.str.starts_with("e") & passed).mean()

        alone = pennyweight.score(records[3:], metrics="easy_passes").to_dict()["groups"][0]
        by_tier = pennyweight.score(records, by="tier", metrics="easy_passes").to_dict()["groups"]
    assert [group["metrics"]["easy_passes"] for group in by_tier] == [pytest.approx(1 / 3), None]
    assert by_tier[1]["skipped"] == alone["skipped"] == {"easy_passes": 3}


@pytest.mark.parametrize("large", [False, True])
def test_values_of_a_users_metric_that_read_other_records_have_their_own_interval(
    large, monkeypatch
):
    if large:
        monkeypatch.setattr(spill, "IN_MEMORY", 0)
    rng = random.Random(4)
    eases = [rng.random() for _ in range(30)]
    records = [
        {"task_id": f"t{task}", "tier": tier, "attempt": attempt,
         "impl_rate": 1.0 if task == 7 else min(1.0, max(0.0, ease + rng.uniform(-0.05, 0.05)))}
        for tier in ("T0", "T1")
        for task, ease in enumerate(eases)
        for attempt in (1, 2)
    ]  # fmt: skip
    records[3]["impl_rate"] = None
    with own_catalogue():

        @metric(formula="mean of x / max(x)", unit="share", range=(0, 1), spec="Tests")
        def of_the_best(impl_rate):
            """Mean score as a share of the largest score, which is 1 here."""
            return (impl_rate / impl_rate.max()).mean()

        for by in ("tier", ()):
            for group in pennyweight.score(records, by=by).groups:
                found, plain = group["of_the_best"], group["impl_rate_mean"]
                assert (found.low, found.high) == pytest.approx((plain.low, plain.high))
                assert (found.value, found.skipped) == (pytest.approx(plain.value), plain.skipped)


def test_confidence_of_records_without_a_task_is_null_in_a_group_as_alone():
    records = [
        {"task_id": task and f"{task}{i}", "tier": tier, "stated_confidence": 0.9, "correct": True}
        for tier, task in (("T0", "t"), ("T1", None))
        for i in range(3)
    ]
    alone = pennyweight.score(records[3:], metrics="ece_mean_confidence").to_dict()["groups"][0]
    by_tier = pennyweight.score(records, by="tier", metrics="ece_mean_confidence").to_dict()
    found = [(g["metrics"], g["skipped"]) for g in by_tier["groups"]]
    assert found[0] == ({"ece_mean_confidence": pytest.approx(0.1)}, {"ece_mean_confidence": 0})
    assert found[1] == (alone["metrics"], alone["skipped"])
    assert alone["metrics"] == {"ece_mean_confidence": None}
