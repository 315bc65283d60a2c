import random
from typing import Any

import polars as pl
import pytest

from pennyweight.api.compare import compare
from pennyweight.api.score import score
from pennyweight.catalogue import METRICS
from pennyweight.define import metric as declare
from pennyweight.errors import UsageError
from pennyweight.render import comparison, scores
from pennyweight.scoring.overview import MAX_METRICS, overview

ANSWERS = [{"id": i, "target": "1", "answer": "1" if i % 3 else "2"} for i in range(12)]


def shown(rows: list[dict[str, Any]], **options: Any) -> list[str]:
    return overview(score(rows, **options).groups)


def with_columns(**columns: Any) -> list[dict[str, Any]]:
    return [{**row, **columns} for row in ANSWERS]


def test_the_headline_is_first_and_errors_are_last() -> None:
    assert shown(ANSWERS) == ["accuracy", "attempt_error_rate"]
    priced = with_columns(cost_usd=0.5, latency_ms=20.0)
    costs = ["cost_of_pass", "cost_usd_total", "latency_p95_ms"]
    assert shown(priced) == ["accuracy", *costs, "attempt_error_rate"]


def test_tokens_stand_for_a_cost_that_is_not_known() -> None:
    counted = with_columns(prompt_tokens=3, completion_tokens=4)
    assert shown(counted) == ["accuracy", "total_tokens_mean", "attempt_error_rate"]
    assert "total_tokens_mean" not in shown([{**row, "cost_usd": 0.5} for row in counted])


@pytest.mark.parametrize(
    ("columns", "about"),
    [
        ({"prob_correct": 0.7}, ["ece"]),
        ({"impl_rate": 0.7}, ["impl_rate_mean"]),
        ({"judge_scores": [0.7, 0.6]}, ["judge_alpha"]),
        ({"expected": 2, "observed": 1, "category": "adversarial"}, ["safety_rate"]),
        ({"expected": 2, "observed": 1}, ["behavior_coverage"]),
        ({"passed": True}, ["pass_rate"]),
        ({"truncated": True}, ["truncated_rate"]),
    ],
)
def test_what_the_records_are_about_is_shown(columns: dict[str, Any], about: list[str]) -> None:
    assert set(about) <= set(shown(with_columns(**columns)))
    assert not set(about) & set(shown(ANSWERS))


def test_passes_of_several_attempts_are_shown_only_if_they_are_several() -> None:
    twice = [{**row, "attempt": i} for row in ANSWERS for i in (1, 2)]
    twice = [{**row, "task_id": row.pop("id")} for row in twice]
    assert "pass_at_k" in shown(twice)
    assert "pass_at_k" not in shown(twice[1:])
    assert "pass_at_k" in shown(twice[1:], k=2)


def test_scores_of_scenarios_are_not_shown_as_those_of_judges() -> None:
    assert "impl_rate_mean" not in shown(with_columns(expected=2, observed=1))


def test_nothing_is_shown_beyond_eight_and_cost_and_errors_stay() -> None:
    everything = with_columns(
        passed=True, prob_correct=0.7, expected=2, observed=1, category="adversarial",
        judge_scores=[0.7, 0.6], judge_cost_usd=0.1, cost_usd=0.5, latency_ms=20.0, truncated=True,
    )  # fmt: skip
    again = [{**row, "attempt": i} for row in everything for i in (1, 2)]
    names = shown(again)
    assert len(names) == len(set(names)) == MAX_METRICS
    assert names[-5:] == [
        *("cost_of_pass", "cost_usd_total", "latency_p95_ms"),
        *("attempt_error_rate", "truncated_rate"),
    ]


def test_what_is_asked_for_by_name_is_all_shown() -> None:
    names = list(METRICS)[:12]
    assert set(shown(ANSWERS, metrics=names)) == set(names)


def test_records_without_a_headline_show_that_accuracy_is_missing() -> None:
    assert shown([{"id": 1, "latency_ms": 5.0}])[0] == "accuracy"


def test_a_metric_of_ones_own_follows_the_headline() -> None:
    @declare(formula="mean of latency", unit="ms")
    def mine_mean(latency_ms: pl.Expr) -> pl.Expr:
        """Mean.

        >>> 1
        1
        """
        return latency_ms.mean()

    try:
        assert shown(with_columns(latency_ms=3.0))[:2] == ["accuracy", "mine_mean"]
    finally:
        METRICS.pop("mine_mean")


def random_rows(seed: int) -> list[dict[str, Any]]:
    """Records of some of the kinds that a table can be about, in several tiers."""
    rng = random.Random(seed)
    columns = {
        "prob_correct": rng.random,
        "cost_usd": rng.random,
        "latency_ms": lambda: rng.lognormvariate(6, 1),
        "prompt_tokens": lambda: rng.randint(1, 90),
        "completion_tokens": lambda: rng.randint(1, 90),
        "truncated": lambda: rng.random() < 0.2,
        "passed": lambda: rng.random() < 0.6,
        "judge_scores": lambda: [rng.random(), rng.random()],
        "impl_rate": rng.random,
        "status": lambda: rng.choice(["ok", "ok", "error"]),
        "score_taste": rng.random,
        "cot": lambda: "1. so it is\n" * rng.randint(1, 4),
    }
    kinds = rng.sample(sorted(columns), rng.randint(2, len(columns)))
    return [
        {
            "task_id": task,
            "attempt": attempt + 1,
            "tier": tier,
            "target": rng.choice("ab"),
            "answer": rng.choice("ab"),
            **{kind: columns[kind]() for kind in kinds if rng.random() < 0.9},
        }
        for task in range(12)
        for attempt in range(rng.choice([1, 1, 3]))
        for tier in ("T0", "T1")
    ]


@pytest.mark.parametrize("seed", range(8))
def test_a_table_has_the_same_numbers_if_nothing_else_is_computed(seed: int) -> None:
    rows = random_rows(seed)
    for by in ((), ("tier",)):
        scored = [score(rows, by=by, overview=only) for only in (False, True)]
        for format_ in ("table", "markdown"):
            assert scores.render(scored[0], format_) == scores.render(scored[1], format_)
        every, few = (one.groups for one in scored)
        names = overview(every)
        assert overview(few) == names
        assert len(few[0].estimates) < len(every[0].estimates) / 2
        for a, b in zip(every, few, strict=True):
            assert [a[name] for name in names] == [b[name] for name in names]
            assert (a.records, a.errors, a.tasks, a.repeats) == (
                *(b.records, b.errors, b.tasks, b.repeats),
            )


@pytest.mark.parametrize("format_", ["table", "markdown", "csv"])
@pytest.mark.parametrize("seed", range(4))
def test_a_comparison_is_written_the_same_if_nothing_else_is_computed(
    seed: int, format_: str
) -> None:
    rows = random_rows(seed)
    every, few = (compare(rows, by="tier", overview=only) for only in (False, True))
    assert comparison.render(few, format_) == comparison.render(every, format_)


def test_a_mistake_in_an_option_is_told_though_the_metric_would_not_be_shown() -> None:
    with pytest.raises(UsageError, match="bins"):
        score(with_columns(prob_correct=0.7), overview=True, bins=0)


def test_a_mistake_in_a_map_is_told_though_the_column_would_not_be_shown() -> None:
    for function in (score, compare):
        with pytest.raises(UsageError, match="'nix' is not known"):
            function(random_rows(1), map={"cot": "nix"}, overview=True)
