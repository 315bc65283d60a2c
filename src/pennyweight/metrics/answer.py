"""Metrics of correctness: accuracy, error rate, precision and recall."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from pennyweight.define import metric
from pennyweight.stats.interval import bounded_interval
from pennyweight.stats.resample import Ends, Linearised, Sample, smoothed_variance
from pennyweight.text.normalize import normalize


@metric(
    formula="(1/N) Σ correct_i", unit="share", range=(0, 1), better="higher", spec="Zeta Reason 2.1"
)
def accuracy(correct: pl.Expr) -> pl.Expr:
    """Share of records whose answer equals the target.

    >>> evaluate(accuracy, answer=["4", "5", None], target=["4", "4", "4"])
    0.3333333333333333
    """
    return correct.mean()


@metric(formula="1 − accuracy", unit="share", range=(0, 1), better="lower", spec="Zeta Reason 2.3")
def error_rate(correct: pl.Expr) -> pl.Expr:
    """Share of records whose answer does not equal the target.

    >>> evaluate(error_rate, correct=[True, False, False, None])
    0.6666666666666666
    """
    return (~correct).mean()


@metric(
    formula="(1/N) Σ (1 − correct_i)",
    unit="share",
    range=(0, 1),
    better="lower",
    spec="Zeta Reason 2.2",
)
def usr(correct: pl.Expr) -> pl.Expr:
    """Unsupported step rate: the share of records whose reasoning led to a wrong answer.

    The specification treats reasoning as unsupported if its answer is wrong, so the value equals
    `error_rate`.

    >>> evaluate(usr, correct=[True, False])
    0.5
    """
    return (~correct).mean()


def _shares(correct: pl.Expr, label: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Return, for each label, the number of hits and the number of records.

    Labels are sorted as integer codes with the hit as the lowest bit, so that one sort serves both.
    """
    code = label.cast(pl.Categorical).to_physical().cast(pl.UInt64)
    packed = (code * 2 + correct.cast(pl.UInt64)).filter(label.is_not_null()).sort()
    sizes = (packed // 2).rle().struct.field("len")
    hits = (packed % 2).cast(pl.Int64).cum_sum().gather(sizes.cum_sum() - 1)
    return hits - hits.shift(1, fill_value=0), sizes


def _terms(correct: pl.Expr, label: pl.Expr) -> pl.Expr:
    """Return each record's term of the macro average: its deviation from its label's share."""
    right, size = correct.cast(pl.Float64), pl.len().over(label)
    within = (right - right.mean().over(label)) * (size / (size - 1).clip(lower_bound=1)).sqrt()
    scaled = within / size * label.count() / label.drop_nulls().n_unique()
    return pl.when(label.is_not_null()).then(scaled)


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


def _positive_answers(target: pl.Expr, answer: pl.Expr, positive: str) -> pl.Expr:
    chosen = target.is_not_null() & (answer == _label(positive))
    return pl.when(chosen).then(_hit(target, answer))


def _positive_targets(target: pl.Expr, answer: pl.Expr, positive: str) -> pl.Expr:
    return pl.when(target == _label(positive)).then(_hit(target, answer))


def _answered(target: pl.Expr, answer: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    return _hit(target, answer), pl.when(target.is_not_null()).then(answer)


def _asked(target: pl.Expr, answer: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    return _hit(target, answer), target


@dataclass(frozen=True, slots=True)
class MacroShare:
    """Interval of a share of hits averaged over labels; for a single label, Wilson's interval."""

    terms: Callable[..., pl.Expr]
    parts: Callable[..., tuple[pl.Expr, pl.Expr]]
    text: str = "Wilson, clustered by task"

    def __call__(self, sample: Sample) -> Ends:
        """Return both ends. A label whose records all agree still contributes some variance."""
        linear = Linearised(self.terms, rate=True)
        if sample.options["positive"] is not None:
            return linear(sample)
        hit, label = self.parts(*map(pl.col, sample.inputs))
        rows = sample.frame.select(hit.alias("hit"), label.alias("label")).drop_nulls("label")
        labels = rows.group_by("label").agg(pl.col("hit").sum(), n=pl.len())
        share, n = pl.col("hit") / pl.col("n"), pl.col("n")
        own = share * (1 - share) / (n - 1).clip(lower_bound=1)
        least = smoothed_variance(pl.col("hit"), n) / n
        variance = labels.select(pl.max_horizontal(own, least).sum()).item() / labels.height**2
        if sample.clustered:
            return replace(linear, least=lambda *_, **__: pl.lit(variance))(sample)
        error, tasks = np.array([math.sqrt(variance)]), np.array([float(sample.clusters)])
        low, high = bounded_interval(np.array([sample.value]), error, tasks, sample.confidence)
        return (low.item(), high.item()) if tasks > 1 else None


@metric(
    formula="TP / (TP + FP); without a positive label the mean over labels",
    unit="share",
    range=(0, 1),
    better="higher",
    needs=("normalized_target",),
    interval=MacroShare(_precision_terms, _answered),
    spec="Metrics Guide, precision",
)
def precision(
    normalized_target: pl.Expr, normalized_answer: pl.Expr, *, positive: str | None = None
) -> pl.Expr:
    """Of the answers with a label, the share that is correct.

    With `positive`, precision of that label; otherwise the mean over all labels that were answered.

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
    unit="share",
    range=(0, 1),
    better="higher",
    needs=("normalized_target",),
    interval=MacroShare(_recall_terms, _asked),
    spec="Metrics Guide, recall",
)
def recall(
    normalized_target: pl.Expr, normalized_answer: pl.Expr, *, positive: str | None = None
) -> pl.Expr:
    """Of the records whose target is a label, the share that was answered with it.

    With `positive`, recall of that label; otherwise the mean over all labels among the targets.

    >>> evaluate(recall, target=["y", "y", "n"], answer=["y", None, "n"], positive="y")
    0.5
    """
    if positive is not None:
        return _positive_targets(normalized_target, normalized_answer, positive).mean()
    hits, sizes = _shares(_hit(normalized_target, normalized_answer), normalized_target)
    return (hits / sizes).mean()


def _label(positive: str) -> str:
    return str(pl.select(normalize(pl.lit(str(positive)))).item())
