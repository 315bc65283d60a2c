"""Metrics of diversity: how varied the answers are."""

from __future__ import annotations

import math

import polars as pl

from pennyweight.define import metric
from pennyweight.metrics.repeats import over_tasks
from pennyweight.stats.resample import Linearised


def _surprise(answer: pl.Expr) -> pl.Expr:
    """Return each record's term of the entropy: −log of its answer's share."""
    return -(pl.len().over(answer) / pl.len()).log()


def _bias(answer: pl.Expr) -> pl.Expr:
    """Return an upper bound of the entropy's negative bias.

    The entropy of a sample of n records is too low by (|A| − 1)/2n on average (Miller and Madow).
    It may also miss an answer that n records did not show, whose share can be as high as 3/n (rule
    of three). The share of answers seen only once estimates what was not seen (Chao and Shen). If
    more than half of the answers were seen only once, nothing bounds the entropy from above.
    """
    n, counts = pl.len(), answer.unique_counts()
    unseen = (3 / n).clip(upper_bound=0.5)
    more = -(unseen * unseen.log() + (1 - unseen) * (1 - unseen).log())
    plain = (answer.n_unique() - 1) / (2 * n) + more
    once = (counts == 1).sum() / n
    share = counts / n * (1 - once)
    shown = 1 - (1 - share) ** n
    covered = -(share * share.log() / shown).sum() - _entropy(answer)
    bounded = pl.max_horizontal(plain, covered + more)
    return pl.when(once > 0.5).then(math.inf).otherwise(bounded)


def _entropy(answer: pl.Expr) -> pl.Expr:
    share = answer.unique_counts() / pl.len()
    return (share * share.log()).sum().abs()


@metric(
    title="entropy of answers",
    formula="−Σ_a p_a ln p_a",
    unit="nats",
    range=(0, None),
    needs=(),
    interval=Linearised(
        _surprise,
        bias=_bias,
        text="t, linearised, clustered by task; the upper end allows for unseen answers",
    ),
    spec="Zeta Reason 4.1",
    also=("SCE_v0",),
)
def sce(normalized_answer: pl.Expr) -> pl.Expr:
    """Entropy of the answers over the whole data set; 0 if all answers are the same.

    It measures how varied the answers are across tasks, not whether repeated attempts agree. A
    missing answer counts as one more distinct answer.

    >>> round(evaluate(sce, answer=["a", "b", "a", "b"]), 4)
    0.6931
    """
    return pl.when(normalized_answer.count() > 0).then(_entropy(normalized_answer))


@metric(
    title="entropy of answers, normalized",
    formula="sce / ln |A|",
    range=(0, 1),
    needs=(),
    interval=Linearised(
        lambda answer: _surprise(answer) / answer.n_unique().log(),
        rate=True,
        bias=lambda answer: _bias(answer) / answer.n_unique().log(),
        text="Wilson, linearised, clustered by task; the upper end allows for unseen answers",
    ),
    spec="Zeta Reason 4.1",
)
def sce_normalized(normalized_answer: pl.Expr) -> pl.Expr:
    """Entropy of the answers as a share of its maximum; null if there is one distinct answer.

    >>> evaluate(sce_normalized, answer=["a", "b", "c", None])
    1.0
    """
    distinct = normalized_answer.n_unique()
    return pl.when((normalized_answer.count() > 0) & (distinct > 1)).then(
        (_entropy(normalized_answer) / distinct.log()).clip(upper_bound=1.0)
    )


def _repeated(answer_class: pl.Expr, value: pl.Expr) -> pl.Expr:
    """Return a value of a task that was tried at least twice and answered at least once."""
    return pl.when((answer_class.len() > 1) & (answer_class.count() > 0)).then(value)


def _unseen(values: pl.Expr) -> pl.Expr:
    """Return what tasks that agree may hide: 3.7 of n tasks (97.5 %), split evenly.

    It counts only if no task varies; otherwise the error shows how much tasks differ.
    """
    hidden = (3.7 / values.count()).clip(upper_bound=1.0) * math.log(2)
    return pl.when(values.max() > values.min()).then(0.0).otherwise(hidden)


_MEAN_OVER_TASKS = Linearised(
    lambda values: values,
    bias=_unseen,
    text="t for a mean over tasks; if all agree, the upper end allows for unseen disagreement",
)


@metric(
    title="entropy of the answers to a task",
    formula="mean over tasks of −Σ_a p_a ln p_a over the task's attempts",
    unit="nats",
    range=(0, None),
    better="lower",
    needs=(),
    over="tasks",
    interval=_MEAN_OVER_TASKS,
    spec="Zeta Reason 8",
)
def task_sce_mean(answer_class: pl.Expr) -> pl.Expr:
    """Mean entropy of the answers to one task over its attempts; 0 if repeats always agree.

    Answers that the suite's matching takes for the same are one class; a missing answer is one more
    class. Tasks with one attempt are left out. If all repeats agree, the upper end of the interval
    is above 0: a few tasks cannot rule out that others disagree.

    >>> tasks, answers = ["a", "a", "b", "b"], ["4", "4.0", "4", "5"]
    >>> round(evaluate(task_sce_mean, task_id=tasks, answer=answers), 4)
    0.3466
    """
    return _repeated(answer_class, _entropy(answer_class))


@metric(
    title="entropy of the answers to a task, corrected",
    formula="mean over tasks of −Σ_a p_a ln p_a + (|A| − 1) / 2n",
    unit="nats",
    range=(0, None),
    better="lower",
    needs=(),
    over="tasks",
    interval=_MEAN_OVER_TASKS,
    spec="Miller 1955; Zeta Reason 8",
)
def task_sce_corrected(answer_class: pl.Expr) -> pl.Expr:
    """Mean entropy of the answers to one task, corrected for few attempts (Miller and Madow).

    The entropy of n attempts is too low by about (|A| − 1)/2n, where |A| is the number of different
    answers.

    >>> tasks, answers = ["a", "a", "b", "b"], ["4", "4.0", "4", "5"]
    >>> round(evaluate(task_sce_corrected, task_id=tasks, answer=answers), 4)
    0.4716
    """
    bias = (answer_class.n_unique() - 1) / (2 * answer_class.len())
    return _repeated(answer_class, _entropy(answer_class) + bias)


@over_tasks(
    formula="share of the tasks with one answer class, over attempts at temperature 0",
    needs=("temperature",),
    spec="Zeta Reason 8",
)
def di_at_0(answer_class: pl.Expr, temperature: pl.Expr) -> pl.Expr:
    """Determinism index: share of the tasks whose attempts at temperature 0 all agree.

    Tasks with fewer than two such attempts are left out, and so are those without an answer.

    >>> tasks, answers = ["a", "a", "b", "b"], ["4", "4.0", "4", "5"]
    >>> evaluate(di_at_0, task_id=tasks, answer=answers, temperature=[0.0] * 4)
    0.5
    """
    cold = answer_class.filter(temperature == 0)
    return _repeated(cold, (cold.n_unique() == 1).cast(pl.Float64))


@over_tasks(
    formula="mean over tasks of the largest share of attempts with one answer",
    needs=(),
    spec="Zeta Reason 8",
)
def mode_share(answer_class: pl.Expr) -> pl.Expr:
    """Mean share of a task's attempts that give its most frequent answer.

    >>> tasks, answers = ["a", "a", "b", "b"], ["4", "4.0", "4", "5"]
    >>> evaluate(mode_share, task_id=tasks, answer=answers)
    0.75
    """
    return _repeated(answer_class, answer_class.unique_counts().max() / answer_class.len())


@over_tasks(
    formula="mean over tasks of the correctness of the most frequent answer",
    needs=("correct",),
    spec="Zeta Reason 8",
)
def mode_accuracy(answer_class: pl.Expr, correct: pl.Expr) -> pl.Expr:
    """Share of the tasks whose most frequent answer is correct.

    Answers that are equally frequent count in equal parts. For k of the attempts there is
    `majority_accuracy`.

    >>> tasks, answers = ["a", "a", "a", "b", "b"], ["4", "4", "5", "7", "8"]
    >>> evaluate(mode_accuracy, task_id=tasks, answer=answers, target=["4"] * 3 + ["8"] * 2)
    0.75
    """
    known = correct.is_not_null()
    votes = correct.count().over(answer_class)
    return _repeated(
        answer_class.filter(known), correct.filter(known & (votes == votes.max())).mean()
    )


@over_tasks(
    formula="mean over tasks of Σ_a c_a (c_a − 1) / n (n − 1)",
    needs=(),
    spec="Zeta Reason 8",
)
def stability(answer_class: pl.Expr) -> pl.Expr:
    """Chance that two attempts at a task give the same answer.

    >>> tasks, answers = ["a", "a", "a", "b", "b"], ["4", "4", "5", "7", "7"]
    >>> round(evaluate(stability, task_id=tasks, answer=answers), 6)
    0.666667
    """
    counts, n = answer_class.unique_counts().cast(pl.Float64), answer_class.len()
    return _repeated(answer_class, (counts * (counts - 1)).sum() / (n * (n - 1)))
