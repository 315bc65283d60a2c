"""Metrics of repeated attempts against scorio and by hand, and the split of the variance."""

import math
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from scorio import eval as scorio

import pennyweight
from pennyweight.errors import UsageError
from pennyweight.metrics.repeats import above_half, at_least, vote

OF_PASSES = ("pass_at_k", "pass_hat_k", "g_pass_at_k", "mg_pass_at_k", "k_of_n")


def rows_of(passes, tier="T0", **more):
    """Make a record of each attempt, given whether it passed, task by task."""
    return [
        {"task_id": f"t{t}", "attempt": a, "subject": "ours", "tier": tier, "passed": p, **more}
        for t, attempts in enumerate(passes)
        for a, p in enumerate(attempts, 1)
    ]


def drawn(tasks=12, attempts=6, seed=1):
    rng = np.random.default_rng(seed)
    return rng.random((tasks, attempts)) < rng.beta(0.7, 0.7, (tasks, 1))


@pytest.mark.parametrize("k", [1, 2, 3, 5, 6])
def test_values_are_those_of_scorio(k):
    results = drawn()
    table = results.astype(int)
    scores = pennyweight.score(rows_of(results.tolist()), metrics=OF_PASSES, k=k, tau=0.6)
    assert scores["pass_at_k"].value == pytest.approx(scorio.pass_at_k(table, k))
    assert scores["pass_hat_k"].value == pytest.approx(scorio.pass_hat_k(table, k))
    assert scores["g_pass_at_k"].value == pytest.approx(scorio.g_pass_at_k_tau(table, k, 0.6))
    over_half = pennyweight.score(rows_of(results.tolist()), metrics="k_of_n", n=k)
    assert over_half["k_of_n"].value == pytest.approx(scorio.maj_at_k(table, k))
    if k > 1:
        assert scores["mg_pass_at_k"].value == pytest.approx(scorio.mg_pass_at_k(table, k))
    else:
        assert scores["mg_pass_at_k"].value is None


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_best_of_k_is_that_of_scorio(k):
    rewards = np.random.default_rng(4).integers(0, 5, (10, 4))
    rows = [
        {"task_id": t, "attempt": a, "passed": True, "impl_rate": x / 4}
        for t, scores in enumerate(rewards.tolist())
        for a, x in enumerate(scores, 1)
    ]
    scores = pennyweight.score(rows, metrics="best_of_k", k=k, pass_weight=0.0, impl_weight=1.0)
    assert scores["best_of_k"].value == pytest.approx(scorio.max_at_k(rewards, k, np.arange(5) / 4))


def test_a_thousand_attempts_lose_nothing():
    assert at_least(1, 500, passes=1, attempts=1000) == 0.5
    assert at_least(999, 999, passes=999, attempts=1000) == pytest.approx(0.001)
    assert at_least(500, 1000, passes=500, attempts=1000) == 1.0
    halves = at_least(250, 500, passes=500, attempts=1000)
    middle = math.comb(500, 250) ** 2 / math.comb(1000, 500)
    assert halves == pytest.approx((1 + middle) / 2)
    assert above_half(500, passes=1000, attempts=1000) == 1.0


def test_unless_set_k_is_the_number_of_attempts_that_every_task_has():
    rows = rows_of([[True, False, True], [True, True], [False, False, False, True]])
    scores = pennyweight.score(rows)
    assert scores["pass_at_k"] == pennyweight.score(rows, k=2)["pass_at_k"]
    assert scores["pass_at_k"].value == pytest.approx((1 + 1 + 0.5) / 3)
    assert scores.groups[0].repeats.k == 2
    assert scores.to_dict()["groups"][0]["repeats"]["attempts"] == [2, 4]


def test_a_task_with_fewer_attempts_is_left_out_and_counted():
    rows = rows_of([[True, True, False], [False, False]])
    found = pennyweight.score(rows, k=3)["pass_at_k"]
    assert (found.value, found.records, found.skipped) == (1.0, 3, 2)
    none = pennyweight.score(rows, k=4)["pass_at_k"]
    assert (none.value, none.records, none.skipped) == (None, 0, 5)


def test_errors_and_attempts_without_a_verdict_do_not_count():
    rows = rows_of([[True, False, True], [True, False, False]])
    rows[2]["status"] = "error"
    rows[5]["passed"] = None
    found = pennyweight.score(rows)
    assert found.groups[0].repeats.k == 2
    assert (found["pass_hat_k"].value, found["pass_hat_k"].skipped) == (0.0, 1)


def test_without_repeats_there_is_no_value_unless_k_is_set():
    rows = rows_of([[True], [False]])
    scores = pennyweight.score(rows)
    assert all(scores[name].value is None for name in (*OF_PASSES, "best_of_k"))
    assert scores.groups[0].repeats is None
    assert pennyweight.score(rows, k=1)["pass_at_k"].value == 0.5
    assert pennyweight.score(rows[:1], k=1)["pass_at_k"].value == 1.0


def test_attempts_of_another_tier_or_subject_are_no_repeats():
    rows = rows_of([[True], [False]]) + rows_of([[False], [False]], tier="T1")
    assert pennyweight.score(rows)["pass_at_k"].value is None
    rows = rows_of([[True, False]]) + rows_of([[False, False]], tier="T1")
    assert pennyweight.score(rows)["pass_at_k"].value == 0.5


def test_attempts_in_several_runs_are_repeats():
    rows = [row | {"run": f"r{i}"} for i in range(2) for row in rows_of([[True], [i == 1]])]
    assert pennyweight.score(rows)["pass_hat_k"].value == 0.5
    assert [g["pass_hat_k"].value for g in pennyweight.score(rows, by="run").groups] == [None, None]


def test_each_group_has_its_own_k():
    rows = rows_of([[True, False], [True, True]])
    rows += rows_of([[True, False, False], [False, False, True]], tier="T1")
    first, second = pennyweight.score(rows, by="tier").groups
    assert (first.repeats.k, second.repeats.k) == (2, 3)
    assert second["pass_at_k"].value == 1.0
    assert [g["pass_at_k"].value for g in pennyweight.score(rows, by="tier", k=2).groups] == [
        1.0,
        pytest.approx(2 / 3),
    ]


def answered(**tasks):
    return [
        {"task_id": task, "attempt": i, "target": "4", "answer": answer}
        for task, answers in tasks.items()
        for i, answer in enumerate(answers, 1)
    ]


def test_equally_frequent_answers_count_in_equal_parts():
    rows = answered(a=["4", "4.0", "5", "5"], b=["4", "4", "4", "5"], c=[None, None, "4", "5"])
    assert pennyweight.score(rows)["majority_accuracy"].value == pytest.approx((0.5 + 1 + 0) / 3)


def test_a_majority_of_fewer_attempts_is_expected_over_all_draws():
    rows = answered(a=["4", "4.0", "5", "6", "4"], b=["5", "5", "4"])
    for k in (1, 2, 3):
        found = pennyweight.score(rows, k=k)["majority_accuracy"].value
        by_hand = [
            np.mean([most_frequent(draw) for draw in combinations(answers, k)])
            for answers in (["4", "4", "5", "6", "4"], ["5", "5", "4"])
        ]
        assert found == pytest.approx(np.mean(by_hand))
    one = pennyweight.score(rows, k=5)["majority_accuracy"]
    assert (one.value, one.records, one.skipped) == (1.0, 5, 3)


def most_frequent(answers):
    top = max(map(answers.count, answers))
    tied = {answer for answer in answers if answers.count(answer) == top}
    return ("4" in tied) / len(tied)


def test_a_vote_of_many_attempts_is_exact():
    assert vote(1, ((600, 1.0), (400, 0.0))) == 0.6
    assert vote(3, ((500, 1.0), (500, 0.0))) == pytest.approx(0.5)


def test_answers_that_match_vote_together():
    """Self-consistency: 1/4 and 0.25 are one answer under `match: math`, and so are wrong ones."""
    rows = answered(a=["1/2", "0.5", "7", "4"], b=["8/2", "4", "0.5", "3"])
    scores = pennyweight.score(rows, match="math", metrics=["majority_accuracy", "mode_accuracy"])
    assert scores["majority_accuracy"].value == scores["mode_accuracy"].value == 0.5
    apart = pennyweight.score(rows, metrics="majority_accuracy")["majority_accuracy"].value
    assert apart == pytest.approx((1 / 4 + 1 / 4) / 2)  # four different answers to each task


def test_verdicts_without_answers_cannot_vote():
    rows = [{"task_id": "a", "attempt": i, "correct": True} for i in (1, 2)]
    assert pennyweight.score(rows)["majority_accuracy"].value is None


@pytest.mark.parametrize(
    "options", [{"k": 0}, {"k": 1.5}, {"n": -1}, {"k": 3, "n": 2}, {"tau": 1.5}]
)
def test_wrong_options_are_refused(options):
    with pytest.raises(UsageError, match="it must be"):
        pennyweight.score(rows_of([[True, False]]), **options)


def test_the_interval_of_pass_at_k_holds_near_one():
    # Student's interval contains the truth in 77 to 83 % of these cases
    rng = np.random.default_rng(7)
    truth = np.mean(1 - (1 - rng.beta(2, 0.2, 200_000)) ** 3)
    passes = (rng.random((50, 5)) < rng.beta(2, 0.2, (50, 1)) for _ in range(60))
    rows = [row for i, one in enumerate(passes) for row in rows_of(one.tolist(), tier=str(i))]
    scores = pennyweight.score(rows, by="tier", metrics="pass_at_k", k=3)
    held = [g["pass_at_k"].low <= truth <= g["pass_at_k"].high for g in scores.groups]
    assert np.mean(held) >= 0.92


def test_the_variance_is_split_for_passes_and_for_judges():
    rng = np.random.default_rng(3)
    rows = rows_of(drawn(30, 4).tolist())
    for row in rows:
        row["judge_scores"] = np.clip(rng.normal(0.5, 0.1, 2), 0, 1).tolist()
    (group,) = pennyweight.score(rows).to_dict()["groups"]
    passes, judges = (group["repeats"]["variance"][n] for n in ("passed", "judge_scores"))
    assert passes["icc"] == pytest.approx(passes["task"] / (passes["task"] + passes["attempt"]))
    assert passes["icc_interval"][0] < passes["icc"] < passes["icc_interval"][1]
    assert passes["judge"] is None
    assert judges["judge"] == pytest.approx(0.01, rel=0.3)
    assert judges["advice"] == "either"


def test_the_split_compares_each_side_with_itself():
    steady = rows_of([[True] * 3] * 5) + rows_of([[False] * 3] * 5, tier="T1")
    split = pennyweight.score(steady).groups[0].repeats.variance["passed"]
    assert (split.task, split.attempt) == (0.0, 0.0)


def test_one_task_with_very_many_attempts():
    attempts, passes = 20_000, 15_000
    frame = pl.DataFrame(
        {
            "task_id": ["a"] * attempts,
            "attempt": list(range(1, attempts + 1)),
            "passed": [True] * passes + [False] * (attempts - passes),
        }
    )
    metrics = ["pass_at_k", "pass_hat_k", "g_pass_at_k", "mg_pass_at_k", "k_of_n"]
    scores = pennyweight.score(frame, metrics=metrics)
    values = [scores[name].value for name in metrics]
    assert values == [1.0, 0.0, values[2], 2 * (passes - attempts // 2) / attempts, 1.0]
