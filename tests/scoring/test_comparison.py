"""Comparisons: who is compared with whom, on which tasks."""

import math
import random
import statistics

import numpy as np
import polars as pl
import pytest
from scipy import stats

import pennyweight
from own_metrics import own_catalogue
from pennyweight.api.pages.digest import digest
from pennyweight.api.sources import resolve
from pennyweight.define import metric
from pennyweight.errors import InputError, UsageError
from pennyweight.scoring import comparison
from pennyweight.scoring.pipeline import ScoreRequest
from pennyweight.scoring.sides import Sides
from pennyweight.sources.source import Source


def rows(results, side="tier", **more):
    """Make records of `{side: {task: [passed, …]}}`."""
    return [
        {side: name, "task_id": task, "attempt": i + 1, "passed": passed, **more}
        for name, tasks in results.items()
        for task, tries in tasks.items()
        for i, passed in enumerate(tries)
    ]


def test_only_common_tasks_are_compared_and_the_others_are_counted():
    found = pennyweight.compare(
        rows({"T0": {"a": [0], "b": [0], "c": [1]}, "T1": {"b": [1], "c": [1], "d": [1], "e": [0]}})
    )
    (pair,) = found.pairs
    assert (pair.a, pair.b, pair.metric, pair.method) == ("T0", "T1", "pass_rate", "exact McNemar")
    assert (pair.tasks, pair.only_a, pair.only_b) == (2, 1, 2)
    assert (pair.difference, pair.mean_a, pair.mean_b) == (0.5, 0.5, 1.0)
    assert found["T1"]["pass_rate"].value == 0.75  # the estimates take all records


def test_each_task_counts_once_however_often_it_was_tried():
    found = pennyweight.compare(
        rows({"T0": {"a": [0] * 9, "b": [1]}, "T1": {"a": [1], "b": [1, 1]}})
    )
    assert found.pairs[0].difference == 0.5


def test_records_that_are_errors_or_have_no_task_stay_out():
    data = rows({"T0": {"a": [0], "b": [0]}, "T1": {"a": [1], "b": [1]}})
    data += [{"tier": "T0", "task_id": "c", "passed": False, "status": "error"}]
    data += [{"tier": "T1", "passed": True}]
    (pair,) = pennyweight.compare(data).pairs
    assert (pair.tasks, pair.only_a, pair.only_b) == (2, 0, 0)


def test_the_price_of_a_pass_counts_errors_on_the_tasks_that_both_sides_tried():
    data = rows({"T0": {"a": [1], "b": [1], "z": [1]}, "T1": {"a": [1], "b": [0]}}, cost_usd=1.0)
    data += [{"tier": "T0", "task_id": "b", "attempt": 2, "status": "error", "cost_usd": 3.0}]
    found = pennyweight.compare(data)
    assert found.overlap("T0", "T1").passes == (2.5, 2.0)
    assert found.overlap("T0", "T1").costs == (1.0, 1.0)
    assert found["T0"]["cost_of_pass"].value == 2.0


def test_sides_without_common_tasks_are_said_to_have_none():
    found = pennyweight.compare(rows({"T0": {"a": [0]}, "T1": {"b": [1]}}))
    (pair,) = found.pairs
    assert (pair.tasks, pair.difference, pair.p, pair.only_a, pair.only_b) == (0, None, None, 1, 1)
    assert found.comparisons == 0


def test_several_subjects_are_paired_with_themselves_and_clustered_by_task():
    """x is always better than y, T1 than T0; x tried no T1 at task c."""
    data = [
        {"subject": s, "tier": t, "task_id": k, "impl_rate": 0.5 * (s == "x") + 0.25 * (t == "T1")}
        for s in "xy"
        for t in ("T0", "T1")
        for k in "abc"
        if (s, t, k) != ("x", "T1", "c")
    ]
    by_tier = pennyweight.compare(data, metrics="impl_rate_mean").pairs[0]
    assert (by_tier.tasks, by_tier.difference) == (3, pytest.approx(0.25))
    by_subject = pennyweight.compare(data, by="subject", metrics="impl_rate_mean").pairs[0]
    assert (by_subject.a, by_subject.b) == ("x", "y")
    assert by_subject.difference == pytest.approx(-0.5)


def test_a_column_that_sets_the_sides_apart_is_not_paired_by():
    data = rows({"one": {"a": [0], "b": [1]}}, side="batch", subject="x")
    data += rows({"two": {"a": [1], "b": [1]}}, side="batch", subject="y")
    (pair,) = pennyweight.compare(data, by="batch").pairs
    assert (pair.tasks, pair.difference) == (2, 0.5)


def test_what_is_compared_by_default():
    tiers = {"T0": {"a": [0]}, "T1": {"a": [1]}}
    assert pennyweight.compare(rows(tiers)).by == ("tier",)
    assert pennyweight.compare(rows(tiers, side="model")).by == ("subject",)
    both = pennyweight.compare(rows(tiers, side="tier") + rows(tiers, side="model", tier="T2"))
    assert both.by == ("tier",)
    with pytest.raises(UsageError, match="neither several tiers nor several subjects"):
        pennyweight.compare(rows({"T0": {"a": [0]}}))
    with pytest.raises(UsageError, match="only one side to compare by tier: 'T0'"):
        pennyweight.compare(rows({"T0": {"a": [0]}}), by="tier")
    with pytest.raises(InputError, match="no records to compare"):
        pennyweight.compare(pl.DataFrame(schema={"task_id": pl.String, "passed": pl.Boolean}))


def test_the_baseline_is_t0_or_the_first_or_the_one_named():
    three = {t: {"a": [1], "b": [0]} for t in ("T10", "T2", "T0")}
    found = pennyweight.compare(rows(three))
    assert [side.name for side in found.sides] == ["T0", "T2", "T10"]
    assert [(p.a, p.b) for p in found.pairs] == [("T0", "T2"), ("T0", "T10")]
    other = pennyweight.compare(rows(three), baseline="T2")
    assert [(p.a, p.b) for p in other.pairs] == [("T2", "T0"), ("T2", "T10")]
    every = pennyweight.compare(rows(three), all_pairs=True)
    assert [(p.a, p.b) for p in every.pairs] == [("T0", "T2"), ("T0", "T10"), ("T2", "T10")]
    assert pennyweight.compare(rows({n: {"a": [1]} for n in "yxz"})).baseline == "x"
    with pytest.raises(UsageError, match=r"'T1' is not known.*The sides are T0, T2, T10"):
        pennyweight.compare(rows(three), baseline="T1")


def test_several_columns_make_one_side():
    data = [
        {"tier": t, "lang": x, "task_id": k, "passed": True}
        for t in ("T0", "T1")
        for x in ("de", "en")
        for k in "ab"
    ]
    found = pennyweight.compare(data, by=["tier", "lang"])
    assert [s.name for s in found.sides] == ["T0 / de", "T0 / en", "T1 / de", "T1 / en"]


def test_records_without_a_side_are_counted():
    data = rows({"T0": {"a": [0]}, "T1": {"a": [1]}})
    found = pennyweight.compare([*data, {"task_id": "b", "passed": True}])
    assert (found.without_side, [s.name for s in found.sides]) == (1, ["T0", "T1"])


def test_answers_are_compared_as_accuracy():
    data = [
        {"tier": t, "task_id": str(k), "answer": "4" if t == "T1" or k else "5", "target": "4"}
        for t in ("T0", "T1")
        for k in range(4)
    ]
    assert [p.metric for p in pennyweight.compare(data).pairs] == ["accuracy"]
    given = [dict(row, passed=row["answer"] == "4") for row in data]
    other = [dict(row, passed=row["tier"] == "T1") for row in data]
    for records, headline in ((data, "accuracy"), (given, "accuracy"), (other, "pass_rate")):
        assert [p.metric for p in pennyweight.compare(records).pairs] == [headline]
        assert pennyweight.report(records).digest["headline"] == headline


def test_any_mean_can_be_compared_and_others_are_not():
    data = [
        {"tier": t, "task_id": str(k), "cot": "so " * (k + i), "cost_usd": 0.5, "passed": True}
        for i, t in enumerate(("T0", "T1"))
        for k in range(1, 6)
    ]
    found = pennyweight.compare(data, metrics=["cot_tokens_mean", "cost_of_pass", "pass_rate"])
    assert [p.metric for p in found.pairs] == ["cot_tokens_mean", "pass_rate"]
    assert found.pairs[0].difference == 1


def test_p_values_are_corrected_over_all_comparisons():
    tiers = {f"T{i}": {str(k): [k < 6 * i] for k in range(12)} for i in range(3)}
    found = pennyweight.compare(rows(tiers, cost_usd=0.1))
    tested = [p for p in found.pairs if p.p is not None]
    assert found.comparisons == len(tested) == 4
    assert [p.metric for p in tested if p.primary] == ["pass_rate", "pass_rate"]
    others = [p for p in tested if not p.primary]
    assert found.other_comparisons == len(others) == 2
    smallest = min(others, key=lambda p: p.p)
    assert smallest.p_adjusted == pytest.approx(min(1, 2 * smallest.p))


def test_the_primary_question_has_one_family_wherever_it_is_shown():
    """A leaderboard left a difference open that `compare` called shown, on the same records."""
    rng = np.random.default_rng(5)
    skill = {"T0": 0.0, "T1": 0.5, "T2": 0.9, "T3": 1.2}
    data = [
        {"tier": tier, "task_id": f"t{n}", "passed": bool(rng.logistic() < skill[tier] + ease),
         "cost_usd": float(rng.lognormal()), "latency_ms": float(rng.lognormal())}
        for n, ease in enumerate(rng.normal(0, 1, 80))
        for tier in skill
    ]  # fmt: skip
    found = pennyweight.compare(data, all_pairs=True)
    alone = pennyweight.compare(data, all_pairs=True, metrics="pass_rate")
    board = digest(resolve(data))["comparison"]
    base = board["baseline"]
    numbers = ("p_adjusted", "detectable", "tasks_for_5_points")
    assert len(board["gaps"]) == 3
    for gap in board["gaps"]:
        for result in (found, alone):
            turned = 1
            pair = result.pair(gap["b"], "pass_rate", base)
            if pair is None:
                pair, turned = result.pair(base, "pass_rate", gap["b"]), -1
            assert [getattr(pair, n) for n in numbers] == [gap[n] for n in numbers]
            ends = sorted(turned * end for end in pair.interval)
            assert ends == pytest.approx(gap["interval"])
    ranks = {side["name"]: (side["low"], side["high"]) for side in board["ranks"]}
    assert {s.name: (s.low, s.high) for s in found.ranking.sides} == ranks


def test_order_of_the_records_and_repetition_change_nothing():
    first = {str(k): [k % 2, k % 3 > 0] for k in range(40)}
    second = {str(k): [1, k % 5 > 0, 0] for k in range(40)}
    data = rows({"T0": first, "T1": second}, cost_usd=0.25)
    found, again, turned = (pennyweight.compare(d, seed=3) for d in (data, data, data[::-1]))
    assert found.to_dict() == again.to_dict()
    assert found.pairs == turned.pairs
    assert found.across == turned.across


def test_uplift_is_that_of_the_median_composite_against_the_baseline():
    scores = {"T0": 0.40, "T1": 0.60, "T2": 0.70, "T3": 0.80}
    data = [
        {"tier": t, "task_id": str(k), "passed": True, "impl_rate": s, "cost_usd": 0.1 * (i + 1)}
        for i, (t, s) in enumerate(scores.items())
        for k in range(5)
    ]
    found = pennyweight.compare(data)
    medians = [side["composite_median"].value for side in found.sides]
    assert medians == pytest.approx([0.70, 0.80, 0.85, 0.90])
    assert [s.tier_uplift for s in found.sides] == pytest.approx([0, 0.143, 0.214, 0.286], abs=5e-4)
    assert found["T3"].composite_difference == pytest.approx(0.2)
    assert found.across.pass_rate_variance == 0
    assert found.across.cost_delta == pytest.approx(0.3)
    assert found.across.cost_variance == pytest.approx(0.0125)
    assert (found.across.frontier.name, found["T2"]["grade"].value) == ("T0", "B")


def test_a_pass_that_was_never_seen_has_a_lower_bound():
    data = rows({"T0": {str(k): [0] for k in range(10)}, "T1": {str(k): [1] for k in range(10)}})
    found = pennyweight.compare([dict(row, cost_usd=0.5) for row in data])
    never = found["T0"]["cost_of_pass"]
    assert (never.value, never.high) == (math.inf, math.inf)
    assert never.low == pytest.approx(0.5 / stats.beta.ppf(0.975, 1, 10))  # Clopper and Pearson
    assert found.across.frontier.name == "T1"


def test_a_metric_that_leaves_out_records_by_itself_is_refused():
    with own_catalogue():

        @metric(formula="mean of the positive", unit="share", range=(0, 1), spec="Tests")
        def of_some(impl_rate):
            """Mean of the scores above 0."""
            return impl_rate.filter(impl_rate > 0).mean()

        data = [
            {"tier": tier, "task_id": str(k), "impl_rate": k % 2 / 2}
            for tier in ("T0", "T1")
            for k in range(4)
        ]
        with pytest.raises(UsageError, match="'of_some' leaves out records by itself"):
            pennyweight.compare(data, metrics="of_some")


def test_too_many_sides_are_refused():
    data = [{"tier": "T0", "task_id": str(k), "passed": True} for k in range(150)]
    with pytest.raises(UsageError, match="task_id has 150 values; at most 100 can be compared"):
        pennyweight.compare(data, by="task_id")


def test_two_of_too_many_sides_are_compared():
    tries = {f"T{side}": {f"t{task}": [task < side] for task in range(4)} for side in range(150)}
    found = comparison.compare(resolve(rows(tries)), ScoreRequest(), only=[("T1", "T3")])
    values = [(side.name, side["pass_rate"].value) for side in found.sides]
    assert values == [("T1", 0.25), ("T3", 0.75)]


def test_a_comparison_can_be_looked_at():
    found = pennyweight.compare(rows({"T0": {"a": [0], "b": [1]}, "T1": {"a": [1], "b": [1]}}))
    shown = repr(found).splitlines()
    assert shown[0] == "tier: T0, T1"
    assert shown[1].startswith("  T1 − T0  pass_rate           +50.0 points  −48.6 to +90.5 points")


def test_a_run_beside_a_file_is_compared_by_source(tmp_path):
    path = tmp_path / "old.jsonl"
    path.write_text('{"task_id": "a", "passed": true}\n')

    class Run(Source):
        name, origin, run_id = "run abc", "abc", "abc"

    sides = Sides.of([Run(), *resolve(path)], ())
    assert sides.sources == ("abc", "old.jsonl")
    assert (sides.side_of, sides.runs) == ((0, 1), True)


def test_the_files_of_a_folder_are_one_side(tmp_path):
    folder = tmp_path / "before"
    folder.mkdir()
    for path in (folder / "a.jsonl", folder / "b.jsonl", tmp_path / "after.jsonl"):
        path.write_text('{"task_id": "a", "passed": true}\n')
    sides = Sides.of(resolve([folder, tmp_path / "after.jsonl"]), ())
    assert (sides.sources, sides.side_of) == (("before", "after.jsonl"), (0, 0, 1))
    assert Sides.of(resolve(folder), ()).sources == ()


def test_uneven_tries_of_numbers_are_averaged_by_configuration():
    rng = random.Random(1)
    data = [
        {
            "tier": t,
            "subject": s,
            "task_id": str(k),
            "attempt": i + 1,
            "cost_usd": round(rng.lognormvariate(0, 0.3) * (1 + (t == "T1")), 4),
        }
        for t, tries in (("T0", 2), ("T1", 5))
        for s in "xy"
        for k in range(8)
        for i in range(tries - (s == "y"))
    ]
    (pair,) = pennyweight.compare(data, metrics="cost_usd_mean").pairs
    assert pair.method == "exact sign-flip permutation"
    assert pair.p < 0.01
    means = [
        [
            statistics.mean(
                statistics.mean(
                    r["cost_usd"]
                    for r in data
                    if (r["tier"], r["subject"], r["task_id"]) == (t, s, str(k))
                )
                for s in "xy"
            )
            for k in range(8)
        ]
        for t in ("T0", "T1")
    ]
    assert pair.difference == pytest.approx(statistics.mean(means[1]) - statistics.mean(means[0]))
    assert pair.low < 1.05 < pair.high
    assert pennyweight.compare(data[::-1], metrics="cost_usd_mean").pairs == (pair,)


def test_latencies_and_durations_that_are_the_same_are_compared_once():
    data = [
        {"tier": t, "task_id": k, "passed": True, "latency_ms": 100.0 * (k + i)}
        for i, t in enumerate(("T0", "T1"))
        for k in range(1, 5)
    ]
    same = [dict(row, duration_seconds=row["latency_ms"] / 1000) for row in data]
    metrics = [pair.metric for pair in pennyweight.compare(same).pairs]
    assert metrics == ["pass_rate", "latency_mean_ms"]
    same[0]["duration_seconds"] = 9.0
    metrics = [pair.metric for pair in pennyweight.compare(same).pairs]
    assert metrics == ["pass_rate", "latency_mean_ms", "duration_seconds"]


def test_costs_have_a_ratio_and_passes_have_none():
    rows = [
        {
            "task_id": t,
            "tier": f"T{side}",
            "passed": t % 3 == 0,
            "cost_usd": (1 + t % 5) * (1 + side),
        }
        | {"latency_ms": 10.0 if side else 10 * 8 ** (t % 4)}
        for t in range(12)
        for side in (0, 1)
    ]
    found = {pair.metric: pair.to_dict() for pair in pennyweight.compare(rows).pairs}
    assert found["cost_usd_mean"]["ratio"] == 2
    assert found["accuracy" if "accuracy" in found else "pass_rate"]["ratio"] is None
    times = found["latency_mean_ms"]
    assert times["ratio_low"] < times["ratio"] < times["ratio_high"]
    assert times["long_tail"]
    assert not found["cost_usd_mean"]["long_tail"]
