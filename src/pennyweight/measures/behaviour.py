"""Expected and observed behaviours of a scenario, and whether the attempt passed."""

from __future__ import annotations

import polars as pl

from pennyweight.define import measure
from pennyweight.errors import UsageError
from pennyweight.record import FAILED

ERRORS = ("exclude", "failures")
"""What an attempt that ended in an error counts as: it is left out, or has failed."""


@measure(unit="behaviours", spec="Metrics Guide, per-scenario calculation")
def expected(expected: pl.Expr, expected_behaviors: pl.Expr) -> pl.Expr:
    """The number of expected behaviours: the given count, else the length of the list.

    >>> evaluate(expected, expected_behaviors=[["greets", "asks"], [], None])
    [2, 0, None]
    """
    return pl.coalesce(expected, expected_behaviors.list.n_unique().cast(pl.Int64))


@measure(unit="behaviours", spec="Metrics Guide, per-scenario calculation")
def observed(
    observed: pl.Expr, observed_behaviors: pl.Expr, expected_behaviors: pl.Expr
) -> pl.Expr:
    """The number of expected behaviours that were observed.

    >>> evaluate(observed, observed_behaviors=[["a", "x"]], expected_behaviors=[["a", "b"]])
    [1]
    """
    among = pl.coalesce(
        observed_behaviors.list.set_intersection(expected_behaviors), observed_behaviors
    )
    return pl.coalesce(observed, among.list.n_unique().cast(pl.Int64))


@measure(unit="violations", spec="Metrics Guide, per-scenario calculation")
def violations(violations: pl.Expr, violated: pl.Expr) -> pl.Expr:
    """The number of violated must-nots: the given count or the length of the list, if larger.

    >>> evaluate(violations, violations=[None, 0], violated=[["leaks a key"], ["leaks a key"]])
    [1, 1]
    """
    return pl.max_horizontal(violations, violated.list.n_unique().cast(pl.Int64))


@measure(spec="Metrics Guide, per-scenario calculation")
def scenario_score(
    expected: pl.Expr,
    observed: pl.Expr,
    violations: pl.Expr,
    undecided: pl.Expr,
    behavior_score: pl.Expr,
) -> pl.Expr:
    """Observed behaviours divided by expected ones; 0 after a violation, 1 if none are expected.

    Null if something could not be decided, unless a violation decides. A given score stands where
    behaviours were not counted.

    >>> evaluate(scenario_score, expected=[4, 4, 0], observed=[3, 4, 0], violations=[0, 1, 0])
    [0.75, 0.0, 1.0]
    """
    return (
        pl.when(violations > 0)
        .then(0.0)
        .when(undecided.list.len() > 0)
        .then(None)
        .when(expected == 0)
        .then(1.0)
        .otherwise(pl.coalesce(observed / expected, behavior_score))
    )


@measure(spec="ProjectScylla, pass rate; Metrics Guide, suite-level aggregation")
def passed(
    passed: pl.Expr,
    scenario_score: pl.Expr,
    pass_score: pl.Expr,
    violations: pl.Expr,
    judge_passed: pl.Expr,
    judge_scores: pl.Expr,
    correct: pl.Expr,
    status: pl.Expr,
    undecided: pl.Expr,
    tool: pl.Expr,
    *,
    errors: str = "exclude",
) -> pl.Expr:
    """Whether the attempt passed: as given, else by the scenario, the judges, or `correct`.

    `correct` decides only in a source none of whose records comes with a verdict. If judges were
    asked and none gave a valid judgment, `correct` does not replace them. An attempt
    with a violation, or one that exceeded its time or budget, never passes, unless the log of
    another tool says so; and neither does an attempt with an undecided check. An attempt with
    status `error` has neither passed nor failed; with `errors` set to `failures` it has failed, as
    one that exceeded its time.

    >>> evaluate(passed, expected=[2, 2], observed=[1, 1], pass_score=[None, 0.5])
    [False, True]
    """
    if errors not in ERRORS:
        raise UsageError(f"errors={errors!r} is neither {' nor '.join(ERRORS)}.")
    verdict = scenario_score >= pass_score.fill_null(1.0)
    stopped = status.is_in(["timeout", "budget", FAILED]) & (tool.is_null() | passed.is_null())
    matched = pl.when(judge_scores.is_null()).then(correct)
    return (
        pl.when(status.eq_missing(pl.lit("error")))
        .then(None)
        .when((violations > 0) | stopped)
        .then(statement=False)
        .when(undecided.list.len() > 0)
        .then(pl.when(~passed).then(statement=False))
        .otherwise(pl.coalesce(passed, verdict, judge_passed, matched))
    )


@measure(spec="ProjectScylla, implementation rate")
def impl_rate(impl_rate: pl.Expr, scenario_score: pl.Expr, judge_scores: pl.Expr) -> pl.Expr:
    """The share of the requirements that are met: the judges' score, else the scenario score.

    Null if judges were asked and none gave a valid judgment.

    >>> evaluate(impl_rate, impl_rate=[0.85, None], expected=[2, 2], observed=[1, 1])
    [0.85, 0.5]
    """
    return pl.coalesce(impl_rate, pl.when(judge_scores.is_null()).then(scenario_score))


@measure(spec="Metrics Guide, token efficiency")
def quality(scenario_score: pl.Expr, impl_rate: pl.Expr, correct: pl.Expr) -> pl.Expr:
    """The quality of the attempt: the scenario score, else the implementation rate, else `correct`.

    >>> evaluate(quality, impl_rate=[0.5, None], answer=["4", "4"], target=["4", "4"])
    [0.5, 1.0]
    """
    return pl.coalesce(scenario_score, impl_rate, correct.cast(pl.Float64))
