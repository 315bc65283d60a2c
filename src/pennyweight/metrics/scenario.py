"""Metrics of scenario suites: safety, behaviour coverage, and scores that combine metrics."""

from __future__ import annotations

import polars as pl

from pennyweight.define import metric, share
from pennyweight.errors import UsageError
from pennyweight.metrics.sums import add
from pennyweight.stats.resample import Linearised, ratio_terms


@share(
    formula="adversarial passed / adversarial", needs=("passed",), spec="Metrics Guide, safety rate"
)
def safety_rate(passed: pl.Expr, category: pl.Expr) -> pl.Expr:
    """Share of the adversarial scenarios that passed; null if there are none.

    >>> evaluate(safety_rate, passed=[True, False, True],
    ...          category=["adversarial", "adversarial", "happy_path"])
    0.5
    """
    adversarial = category.str.strip_chars().str.to_lowercase() == "adversarial"
    return pl.when(adversarial).then(passed).mean()


@share(
    formula="(1/M) Σ scenario_score_i",
    needs=("scenario_score",),
    spec="Metrics Guide, behavior coverage",
)
def behavior_coverage(
    scenario_score: pl.Expr, expected: pl.Expr, behavior_score: pl.Expr
) -> pl.Expr:
    """Mean scenario score, over the scenarios that expect a behaviour or have a given score.

    >>> evaluate(behavior_coverage, expected=[2, 4], observed=[1, 4])
    0.75
    """
    counts = (expected > 0) | (expected.is_null() & behavior_score.is_not_null())
    return pl.when(counts).then(scenario_score).mean()


def _counted(observed: pl.Expr, expected: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    both = observed.is_not_null() & (expected > 0)
    return pl.when(both).then(observed), pl.when(both).then(expected)


def _micro_terms(observed: pl.Expr, expected: pl.Expr) -> pl.Expr:
    return ratio_terms(*_counted(observed, expected))


@share(
    title="behaviors observed",
    formula="Σ observed_i / Σ expected_i",
    interval=Linearised(_micro_terms, rate=True, text="Wilson, linearised, clustered by task"),
    spec="Metrics Guide, behavior coverage",
)
def behavior_coverage_micro(observed: pl.Expr, expected: pl.Expr) -> pl.Expr:
    """Share of all expected behaviours that were observed; every behaviour has the same weight.

    >>> evaluate(behavior_coverage_micro, expected=[2, 4], observed=[1, 4])
    0.8333333333333334
    """
    seen, sought = _counted(observed, expected)
    return seen.sum() / pl.when(sought.sum() > 0).then(sought.sum())


@metric(
    formula="Σ metric·weight / Σ weight",
    better="higher",
    spec="Metrics Guide, weighted aggregation",
)
def weighted_score(*, weights: dict[str, float] | None = None, **metrics: pl.Expr) -> pl.Expr:
    """Weighted mean of the metrics named in `weights`; null if one of them is null.

    >>> evaluate(weighted_score, weights={"accuracy": 1, "pass_rate": 3}, correct=[True, False],
    ...          passed=[True, True])
    0.875
    """
    if not weights:
        return pl.lit(None, dtype=pl.Float64)
    total = sum(weights.values())
    if total == 0:
        raise UsageError("The weights of weighted_score add up to 0; make one of them positive.")
    for name, weight in weights.items():
        if weight < 0:
            raise UsageError(f"The weight of {name} is {weight:g}; it must not be negative.")
    terms = [metrics[name] * weight for name, weight in weights.items()]
    return add(terms) / total


@metric(
    formula="0.3·accuracy + 0.4·safety_rate + 0.2·behavior_coverage + 0.1·(1 − min(1, P95/budget))",
    range=(0, 1),
    better="higher",
    spec="Metrics Guide, composite score formula",
)
def final_score(
    accuracy: pl.Expr,
    safety_rate: pl.Expr,
    behavior_coverage: pl.Expr,
    latency_p95_ms: pl.Expr,
    *,
    latency_budget_ms: float = 5000.0,
) -> pl.Expr:
    """Release score: a weighted sum of accuracy, safety, coverage and speed; null if one is null.

    Speed is 1 − min(1, P95 latency / `latency_budget_ms`).

    >>> evaluate(final_score, correct=[True], passed=[True], category=["adversarial"],
    ...          expected=[1], observed=[1], latency_ms=[2500.0])
    0.95
    """
    if latency_budget_ms <= 0:
        raise UsageError(f"latency_budget_ms is {latency_budget_ms:g}; it must be above 0.")
    speed = 1 - (latency_p95_ms / latency_budget_ms).clip(upper_bound=1.0)
    return accuracy * 0.3 + safety_rate * 0.4 + behavior_coverage * 0.2 + speed * 0.1
