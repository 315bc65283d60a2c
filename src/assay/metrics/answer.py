"""How often the answer is right."""

from __future__ import annotations

import polars as pl

from assay.define import metric
from assay.stats.resample import Linearised, smoothed_variance
from assay.text.normalize import normalize


@metric(formula="(1/N) Σ correct_i", range=(0, 1), better="higher", spec="Zeta Reason 2.1")
def accuracy(correct: pl.Expr) -> pl.Expr:
    """Share of records whose answer equals the target.

    >>> evaluate(accuracy, answer=["4", "5", None], target=["4", "4", "4"])
    0.3333333333333333
    """
    return correct.mean()


@metric(formula="1 − accuracy", range=(0, 1), better="lower", spec="Zeta Reason 2.3")
def error_rate(correct: pl.Expr) -> pl.Expr:
    """Share of records whose answer does not equal the target.

    >>> evaluate(error_rate, correct=[True, False, False, None])
    0.6666666666666666
    """
    return (~correct).mean()


@metric(formula="(1/N) Σ (1 − correct_i)", range=(0, 1), better="lower", spec="Zeta Reason 2.2")
def usr(correct: pl.Expr) -> pl.Expr:
    """Unsupported step rate: reasoning counts as unsupported where it led to a wrong answer.

    >>> evaluate(usr, correct=[True, False])
    0.5
    """
    return (~correct).mean()


def _shares(correct: pl.Expr, label: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Sort by label and give, label by label, how many are correct and how many records it has."""
    label = label.to_physical()  # labels are kept as codes, which sort much faster than texts
    right = correct.filter(label.is_not_null()).sort_by(label.drop_nulls())
    sizes = label.drop_nulls().sort().rle().struct.field("len")
    last = sizes.cum_sum() - 1
    hits = right.cast(pl.Int64).cum_sum().gather(last)
    return hits - hits.shift(1, fill_value=0), sizes


def _terms(correct: pl.Expr, label: pl.Expr) -> pl.Expr:
    """What each record contributes to the macro average, as a deviation from its label's share."""
    right, size = correct.cast(pl.Float64), pl.len().over(label)
    within = (right - right.mean().over(label)) * (size / (size - 1).clip(lower_bound=1)).sqrt()
    scaled = within / size * label.count() / label.drop_nulls().n_unique()
    return pl.when(label.is_not_null()).then(scaled)


def _least(correct: pl.Expr, label: pl.Expr) -> pl.Expr:
    """What is left of the variance where the records of a label all agree."""
    hits, sizes = _shares(correct, label)
    return (smoothed_variance(hits, sizes) / sizes).sum() / sizes.len() ** 2


def _hit(target: pl.Expr, answer: pl.Expr) -> pl.Expr:
    return (target == answer).fill_null(value=False)


def _precision_terms(target: pl.Expr, answer: pl.Expr, *, positive: str | None) -> pl.Expr:
    if positive is not None:
        return _positive_answers(target, answer, positive)
    return _terms(_hit(target, answer), pl.when(target.is_not_null()).then(answer))


def _recall_terms(target: pl.Expr, answer: pl.Expr, *, positive: str | None) -> pl.Expr:
    if positive is not None:
        return _positive_targets(target, answer, positive)
    return _terms(_hit(target, answer), target)


def _precision_least(target: pl.Expr, answer: pl.Expr, *, positive: str | None) -> pl.Expr:
    asked = pl.when(target.is_not_null()).then(answer)
    return pl.lit(0.0) if positive is not None else _least(_hit(target, answer), asked)


def _recall_least(target: pl.Expr, answer: pl.Expr, *, positive: str | None) -> pl.Expr:
    return pl.lit(0.0) if positive is not None else _least(_hit(target, answer), target)


def _positive_answers(target: pl.Expr, answer: pl.Expr, positive: str) -> pl.Expr:
    chosen = target.is_not_null() & (answer == _label(positive))
    return pl.when(chosen).then(_hit(target, answer))


def _positive_targets(target: pl.Expr, answer: pl.Expr, positive: str) -> pl.Expr:
    return pl.when(target == _label(positive)).then(_hit(target, answer))


@metric(
    formula="TP / (TP + FP); without a positive label the mean over labels",
    range=(0, 1),
    better="higher",
    needs=("normalized_target",),
    interval=Linearised(
        _precision_terms, rate=True, least=_precision_least, text="Wilson, clustered by task"
    ),
    spec="Metrics Guide, precision",
)
def precision(
    normalized_target: pl.Expr, normalized_answer: pl.Expr, *, positive: str | None = None
) -> pl.Expr:
    """Of the answers that gave a label, the share that was right.

    With `positive` it is about that label; without, the mean over all labels that were answered.

    >>> evaluate(precision, target=["y", "n", "y"], answer=["y", "y", "n"], positive="y")
    0.5
    """
    if positive is not None:
        return _positive_answers(normalized_target, normalized_answer, positive).mean()
    answered = pl.when(normalized_target.is_not_null()).then(normalized_answer)
    hits, sizes = _shares(_hit(normalized_target, normalized_answer), answered)
    return (hits / sizes).mean()


@metric(
    formula="TP / (TP + FN); without a positive label the mean over labels",
    range=(0, 1),
    better="higher",
    needs=("normalized_target",),
    interval=Linearised(
        _recall_terms, rate=True, least=_recall_least, text="Wilson, clustered by task"
    ),
    spec="Metrics Guide, recall",
)
def recall(
    normalized_target: pl.Expr, normalized_answer: pl.Expr, *, positive: str | None = None
) -> pl.Expr:
    """Of the records that have a label, the share that was answered with it.

    With `positive` it is about that label; without, the mean over all labels of the targets.

    >>> evaluate(recall, target=["y", "y", "n"], answer=["y", None, "n"], positive="y")
    0.5
    """
    if positive is not None:
        return _positive_targets(normalized_target, normalized_answer, positive).mean()
    hits, sizes = _shares(_hit(normalized_target, normalized_answer), normalized_target)
    return (hits / sizes).mean()


def _label(positive: str) -> str:
    return str(pl.select(normalize(pl.lit(str(positive)))).item())
