"""Metrics of repeated attempts: what a task gives if it is tried k times.

Each is the mean over tasks of one value per task. The value is an expectation over all ways to draw
k of the attempts that were made, so it uses all of them and is unbiased. The binomial coefficients
are whole numbers, so that nothing is lost with a thousand attempts at a task.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
import polars as pl

from pennyweight.define import share
from pennyweight.stats.resample import Linearised

over_tasks = partial(
    share,
    over="tasks",
    interval=Linearised(
        lambda values: values, rate=True, text="Wilson for a mean over tasks, clustered by task"
    ),
)
of_passes = partial(over_tasks, needs=("passed",))


@lru_cache(maxsize=65_536)
def at_least(least: int, drawn: int, passes: int, attempts: int) -> float | None:
    """Return the chance that `least` of `drawn` attempts passed; None with fewer attempts.

    >>> at_least(1, 2, passes=1, attempts=4), at_least(2, 2, passes=3, attempts=4)
    (0.5, 0.5)
    """
    if attempts < drawn:
        return None
    ways, fewest = partial(_ways, drawn, passes, attempts), max(0, drawn - attempts + passes)
    whole = math.comb(attempts, drawn)
    if 2 * least > drawn:
        return sum(map(ways, range(max(least, fewest), min(drawn, passes) + 1))) / whole
    return (whole - sum(map(ways, range(fewest, min(least, passes + 1))))) / whole


@lru_cache(maxsize=65_536)
def above_half(drawn: int, passes: int, attempts: int) -> float | None:
    """Return the mean of `at_least` over the numbers above half of `drawn`, as the paper sums it.

    >>> above_half(4, passes=4, attempts=4), above_half(1, passes=1, attempts=1)
    (1.0, None)
    """
    if drawn < 2 or attempts < drawn:
        return None
    half = (drawn + 1) // 2
    more = range(max(half + 1, drawn - attempts + passes), min(drawn, passes) + 1)
    total = sum((j - half) * _ways(drawn, passes, attempts, j) for j in more)
    return 2 * total / (drawn * math.comb(attempts, drawn))


def _ways(drawn: int, passes: int, attempts: int, hits: int) -> int:
    return math.comb(passes, hits) * math.comb(attempts - passes, drawn - hits)


def _of_counts(passed: pl.Expr, value: Callable[[int, int], float | None]) -> pl.Expr:
    """Return a value of a task that depends only on its passes and attempts."""

    def look_up(counts: pl.Series) -> pl.Series:
        pairs = counts.struct.unnest()
        kinds = pairs.unique()
        found = [value(*kind) if kind[1] else None for kind in kinds.iter_rows()]
        table = kinds.with_columns(pl.Series("value", found, dtype=pl.Float64))
        return pairs.join(table, on=pairs.columns, how="left", maintain_order="left")["value"]

    counts = pl.struct(passed.sum().alias("c"), passed.count().alias("n"))
    return counts.map_batches(look_up, return_dtype=pl.Float64, is_elementwise=True)


def _size(k: int | None, n: int | None) -> int:
    return k or n or 1


@of_passes(
    title="one of k passes",
    formula="mean over tasks of 1 − C(n−c, k) / C(n, k); c of a task's n attempts passed",
    spec="Chen et al. 2021, pass@k",
)
def pass_at_k(passed: pl.Expr, *, k: int | None = None, n: int | None = None) -> pl.Expr:
    """Chance that at least one of k attempts at a task passes.

    Unless `k` is set, it is the number of attempts that every task has. A task with fewer than k
    attempts is left out.

    >>> tasks, passed = ["a", "a", "a", "b", "b", "b"], [True, False, False, True, True, False]
    >>> round(evaluate(pass_at_k, task_id=tasks, passed=passed, k=2), 6)
    0.833333
    """
    return _of_counts(passed, partial(at_least, 1, _size(k, n)))


@of_passes(
    title="all k pass",
    formula="mean over tasks of C(c, k) / C(n, k); c of a task's n attempts passed",
    spec="Yao et al. 2024, pass^k",
)
def pass_hat_k(passed: pl.Expr, *, k: int | None = None, n: int | None = None) -> pl.Expr:
    """Chance that all of k attempts at a task pass.

    Unless `k` is set, it is the number of attempts that every task has. A task with fewer than k
    attempts is left out. The power of the pass rate would be biased upwards.

    >>> tasks, passed = ["a", "a", "a", "b", "b", "b"], [True, False, False, True, True, False]
    >>> round(evaluate(pass_hat_k, task_id=tasks, passed=passed, k=2), 6)
    0.166667
    """
    return _of_counts(passed, partial(at_least, _size(k, n), _size(k, n)))


@of_passes(
    title="a share of k passes",
    formula="mean over tasks of Σ_{j ≥ ⌈τk⌉} C(c, j) C(n−c, k−j) / C(n, k)",
    spec="Liu et al. 2025, G-Pass@k",
)
def g_pass_at_k(
    passed: pl.Expr, *, k: int | None = None, n: int | None = None, tau: float = 0.5
) -> pl.Expr:
    """Chance that at least the share τ of k attempts at a task passes.

    With `tau=1` it is `pass_hat_k`, near 0 `pass_at_k`. Unless `k` is set, it is the number of
    attempts that every task has. A task with fewer than k attempts is left out.

    >>> tasks, passed = ["a"] * 4, [True, True, True, False]
    >>> evaluate(g_pass_at_k, task_id=tasks, passed=passed, k=2, tau=1.0)
    0.5
    """
    size = _size(k, n)
    return _of_counts(passed, partial(at_least, max(1, math.ceil(tau * size - 1e-9)), size))


@of_passes(
    title="steady passes",
    formula="mean over tasks of (2/k) Σ_{i = ⌈k/2⌉+1 … k} G-Pass@k at τ = i/k",
    spec="Liu et al. 2025, mG-Pass@k",
)
def mg_pass_at_k(passed: pl.Expr, *, k: int | None = None, n: int | None = None) -> pl.Expr:
    """Mean of `g_pass_at_k` over the shares above one half: how steadily tasks are passed.

    Unless `k` is set, it is the number of attempts that every task has. A task with fewer than k
    attempts is left out. There is no value for one attempt. For an odd k it is at most 1 − 1/k,
    as in the paper.

    >>> tasks, passed = ["a"] * 4, [True, True, True, False]
    >>> evaluate(mg_pass_at_k, task_id=tasks, passed=passed, k=4)
    0.5
    """
    return _of_counts(passed, partial(above_half, _size(k, n)))


@of_passes(
    title="k of n pass",
    formula="mean over tasks of Σ_{j ≥ k} C(c, j) C(N−c, n−j) / C(N, n); c of N attempts passed",
    spec="Pennyweight",
)
def k_of_n(passed: pl.Expr, *, k: int | None = None, n: int | None = None) -> pl.Expr:
    """Chance that at least k of n attempts at a task pass.

    Unless they are set, `n` is the number of attempts that every task has, and `k` more than half
    of it; n is at least k. A task with fewer than n attempts is left out.

    >>> tasks, passed = ["a"] * 3 + ["b"] * 3, [True, True, False, True, False, False]
    >>> evaluate(k_of_n, task_id=tasks, passed=passed)
    0.5
    """
    drawn = max(n or 1, k or 1)
    return _of_counts(passed, partial(at_least, k or drawn // 2 + 1, drawn))


@lru_cache(maxsize=65_536)
def vote(drawn: int, answers: tuple[tuple[int, float], ...]) -> float:
    """Return the expected correctness of the most frequent of `drawn` answers.

    `answers` has for each answer how often it was given, and its correctness. Answers that are
    equally frequent count in equal parts.

    >>> vote(3, ((2, 1.0), (2, 0.0))), vote(1, ((3, 1.0), (1, 0.0)))
    (0.5, 0.75)
    """
    total = Fraction(0)
    for most in range(1, drawn + 1):
        # by the number of attempts drawn and of answers given `most` times: the ways to draw them,
        # and the sum of the correctness of these answers over all ways
        ways: dict[tuple[int, int], tuple[int, Fraction]] = {(0, 0): (1, Fraction(0))}
        for count, right in answers:
            more: dict[tuple[int, int], tuple[int, Fraction]] = {}
            for (size, tied), (number, correct) in ways.items():
                for taken in range(min(count, most, drawn - size) + 1):
                    place, times = (size + taken, tied + (taken == most)), math.comb(count, taken)
                    own = number * Fraction(right) if taken == most else 0
                    before = more.get(place, (0, Fraction(0)))
                    more[place] = before[0] + times * number, before[1] + times * (correct + own)
            ways = more
        total += sum(sums[1] / tied for (n, tied), sums in ways.items() if n == drawn and tied)
    return float(total / math.comb(sum(count for count, _ in answers), drawn))


@over_tasks(
    title="accuracy of the majority",
    formula="mean over tasks of the correctness of the most frequent of k answers",
    needs=("correct",),
    spec="Wang et al. 2023, self-consistency",
)
def majority_accuracy(
    correct: pl.Expr,
    answer_class: pl.Expr,
    normalized_target: pl.Expr,
    *,
    k: int | None = None,
    n: int | None = None,
) -> pl.Expr:
    """Chance that the most frequent answer of k attempts at a task is correct.

    Answers that the suite's matching takes for the same vote together. An attempt without an answer
    votes for none. If several answers are equally frequent, each counts in equal parts, as if one
    were drawn. Unless `k` is set, it is the number of attempts that every task has. A task with
    fewer than k attempts is left out.

    >>> answers = ["4", "4.0", "5", "7", "8"]
    >>> tasks, targets = ["a", "a", "a", "b", "b"], ["4", "4", "4", "8", "8"]
    >>> round(evaluate(majority_accuracy, task_id=tasks, answer=answers, target=targets), 6)
    0.583333
    """
    size = _size(k, n)

    def draw(tasks: pl.Series) -> pl.Series:
        table = tasks.struct.unnest()
        found = table["all"].to_list()
        for i, attempts in enumerate(table["n"]):
            if attempts != size:
                found[i] = vote(size, _answers(table["each"][i])) if attempts > size else None
        return pl.Series(found, dtype=pl.Float64)

    can_vote = answer_class.is_not_null() | normalized_target.is_not_null()
    voted = pl.when(can_vote).then(correct)
    votes = voted.count().over(answer_class)
    each = (2 * votes + voted.mean().over(answer_class)).filter(voted.is_not_null())
    most = voted.filter(votes == votes.max()).mean()
    task = pl.struct(most.alias("all"), voted.count().alias("n"), each.implode().alias("each"))
    return task.map_batches(draw, return_dtype=pl.Float64, is_elementwise=True)


def _answers(each: pl.Series) -> tuple[tuple[int, float], ...]:
    """Return the answers of a task, from twice the votes of each attempt's plus its correctness."""
    kinds = sorted(each.value_counts().iter_rows())
    split = ((int(kind // 2), kind % 2, number) for kind, number in kinds)
    return tuple((votes, right) for votes, right, number in split for _ in range(number // votes))


@lru_cache(maxsize=4_096)
def _weights(drawn: int, attempts: int) -> tuple[float, ...]:
    """Return the chance that each of some attempts, sorted, is the best of those drawn."""
    whole = math.comb(attempts, drawn)
    return tuple(math.comb(rank, drawn - 1) / whole for rank in range(attempts))


@over_tasks(
    title="best of k",
    formula="mean over tasks of Σ_i x_(i) C(i−1, k−1) / C(n, k); x_(1) ≤ … ≤ x_(n) its scores",
    needs=("composite_score",),
    spec="Pennyweight",
)
def best_of_k(composite_score: pl.Expr, *, k: int | None = None, n: int | None = None) -> pl.Expr:
    """Expected composite score of the best of k attempts at a task.

    Unless `k` is set, it is the number of attempts that every task has. A task with fewer than k
    attempts is left out.

    >>> tasks, scores = ["a"] * 3, [0.25, 0.5, 1.0]
    >>> round(evaluate(best_of_k, task_id=tasks, composite_score=scores, k=2), 6)
    0.833333
    """
    size = _size(k, n)

    def weigh(places: pl.Series) -> pl.Series:
        rank, count = (places.struct.field(name).fill_null(0).to_numpy() for name in "rn")
        weights = np.zeros(len(places))
        for attempts in np.unique(count[count >= size]).tolist():
            here = (count == attempts) & (rank > 0)
            weights[here] = np.array(_weights(size, attempts))[rank[here] - 1]
        return pl.Series(weights)

    places = pl.struct(r=composite_score.rank("ordinal"), n=composite_score.count())
    weight = places.map_batches(weigh, return_dtype=pl.Float64, is_elementwise=True)
    return pl.when(composite_score.count() >= size).then((composite_score * weight).sum())
