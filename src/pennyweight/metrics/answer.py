"""Metrics of correctness: accuracy, error rate, precision and recall."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from pennyweight.define import share
from pennyweight.stats.interval import binomial_interval, t_quantile, z_quantile
from pennyweight.stats.resample import CLUSTER, SLICE, Ends, Linearised, Sample
from pennyweight.text.normalize import normalize

Labels = Callable[[pl.Expr, pl.Expr], pl.Expr]
"""Selects, from target and answer, the label that a record counts for."""


@share(formula="(1/N) Σ correct_i", spec="Zeta Reason 2.1")
def accuracy(correct: pl.Expr) -> pl.Expr:
    """Share of records whose answer equals the target.

    >>> evaluate(accuracy, answer=["4", "5", None], target=["4", "4", "4"])
    0.3333333333333333
    """
    return correct.mean()


@share(title="wrong answers", formula="1 − accuracy", better="lower", spec="Zeta Reason 2.3")
def error_rate(correct: pl.Expr) -> pl.Expr:
    """Share of records whose answer does not equal the target.

    >>> evaluate(error_rate, correct=[True, False, False, None])
    0.6666666666666666
    """
    return (~correct).mean()


@share(
    title="unsupported steps",
    formula="(1/N) Σ (1 − correct_i)",
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


def _ordered_sum(values: pl.Expr) -> pl.Expr:
    """Add values in a fixed order, so that the last digit does not depend on the order of labels.

    That order differs between processes. Polars leaves out a sort before `sum` or `mean`.
    """
    return values.sort().cum_sum().last()


def _hit(target: pl.Expr, answer: pl.Expr) -> pl.Expr:
    return (target == answer).fill_null(value=False)


def _answered(target: pl.Expr, answer: pl.Expr) -> pl.Expr:
    """Return the labels that precision is about."""
    return pl.when(target.is_not_null()).then(answer)


def _asked(target: pl.Expr, answer: pl.Expr) -> pl.Expr:  # noqa: ARG001
    """Return the labels that recall is about."""
    return target


def _of_positive(hit: pl.Expr, label: pl.Expr, positive: str) -> pl.Expr:
    written, normal = _forms(positive)
    same = label == normal
    if written != normal:
        same = pl.when((label == written).any()).then(label == written).otherwise(same)
    return pl.when(same).then(hit)


def _forms(positive: str) -> tuple[str, str]:
    """Return a named label as it is written, as `match: text` compares it, and normalised."""
    text = str(positive)
    return text.strip(), str(pl.select(normalize(pl.lit(text))).item())


def _macro(labels: Labels, target: pl.Expr, answer: pl.Expr, positive: str | None) -> pl.Expr:
    hit, label = _hit(target, answer), labels(target, answer)
    if positive is not None:
        return _of_positive(hit, label, positive).mean()
    hits, sizes = _shares(hit, label)
    return _ordered_sum(hits / sizes) / sizes.len()


def _positive_hit(labels: Labels, target: pl.Expr, answer: pl.Expr, *, positive: str) -> pl.Expr:
    return _of_positive(_hit(target, answer), labels(target, answer), positive)


@dataclass(frozen=True, slots=True)
class MacroShare:
    """Interval of a share of hits averaged over labels; for a single label that of a rate.

    The squared distances of each label's share from the ends of its own interval add up (MOVER,
    Zou and Donner). Repeated attempts widen it.
    """

    labels: Labels
    text: str = "from the binomial intervals of the labels, clustered by task"

    def __call__(self, sample: Sample) -> Ends:
        """Return both ends, or None with one task."""
        if sample.options["positive"] is not None:
            return Linearised(partial(_positive_hit, self.labels), rate=True)(sample)
        target, answer = map(pl.col, sample.inputs)
        hit, label = _hit(target, answer), self.labels(target, answer)
        rows = sample.frame.select(CLUSTER, hit.alias("hit"), label.alias("label"))
        rows = rows.drop_nulls("label")
        tasks = rows[CLUSTER].n_unique()
        if tasks < 2:
            return None
        labels = rows.group_by("label").agg(pl.col("hit").sum(), n=pl.len()).sort("hit", "n")
        hits, n = (labels[c].cast(pl.Float64).to_numpy() for c in ("hit", "n"))
        ends = binomial_interval(hits, n, sample.confidence)
        down, up = (np.linalg.norm(hits / n - end) / len(n) for end in ends)
        wider = 1.0
        if sample.clustered:
            t = float(t_quantile(np.array([float(tasks)]), sample.confidence)[0])
            wider = _widening(rows) * t / z_quantile(sample.confidence)
        low, high = sample.value - wider * down, sample.value + wider * up
        return max(0.0, float(low)), min(1.0, float(high))


def _widening(rows: pl.DataFrame) -> float:
    """Return by how much repeated attempts widen an interval of independent records.

    A rare label has few tasks, which show little of how alike the attempts at a task are. So the
    factor is the larger of two: in one each label counts as it does in the average, in the other
    each record counts the same. Repeats never make the average more certain than independent
    records would. If nothing varies, the attempts at a task count as one.
    """
    right, tasks = pl.col("hit").cast(pl.Float64), pl.col(CLUSTER).n_unique()
    apart, deviation = right - right.mean(), right.std(ddof=0)
    terms = rows.select(
        CLUSTER,
        few=(tasks / (tasks - 1).clip(lower_bound=1)).sqrt().over("label"),
        x=(apart / pl.len()).over("label"),
        y=pl.when(deviation > 0).then(apart / deviation).otherwise(0.0).over("label"),
    )
    single = terms.select(pl.col("x", "y").pow(2).sum()).row(0)
    if single[0] <= 0:
        return math.sqrt(rows.height / rows[CLUSTER].n_unique())
    sums = terms.group_by(CLUSTER, maintain_order=True).agg(
        (pl.col("x", "y") * pl.col("few")).sum()
    )
    by_task = sums.select(pl.col("x", "y").pow(2).sum()).row(0)
    return math.sqrt(max(1.0, *(a / b for a, b in zip(by_task, single, strict=True))))


@share(
    formula="TP / (TP + FP); without a positive label the mean over labels",
    needs=("normalized_target",),
    interval=MacroShare(_answered),
    spec="Metrics Guide, precision",
)
def precision(
    normalized_target: pl.Expr, label: pl.Expr, *, positive: str | None = None
) -> pl.Expr:
    """Of the answers with a label, the share that is correct.

    With `positive`, precision of that label; otherwise the mean over all labels that were answered.

    >>> evaluate(precision, target=["y", "n", "y"], answer=["y", "y", "n"], positive="y")
    0.5
    """
    return _macro(_answered, normalized_target, label, positive)


@share(
    formula="TP / (TP + FN); without a positive label the mean over labels",
    needs=("normalized_target",),
    interval=MacroShare(_asked),
    spec="Metrics Guide, recall",
)
def recall(normalized_target: pl.Expr, label: pl.Expr, *, positive: str | None = None) -> pl.Expr:
    """Of the records whose target is a label, the share that was answered with it.

    With `positive`, recall of that label; otherwise the mean over all labels among the targets.

    >>> evaluate(recall, target=["y", "y", "n"], answer=["y", None, "n"], positive="y")
    0.5
    """
    return _macro(_asked, normalized_target, label, positive)


def _label_counts(
    columns: Sequence[pl.Series], forms: tuple[str, ...] | None
) -> dict[str, tuple[int, int]]:
    """Return the hits of each label, and how often it is a target or an answer.

    `forms` are those of one label: the first that occurs is counted.
    """
    target, answer = columns
    right = target.filter((target == answer).fill_null(value=False))
    asked, answered, hits = (
        Counter(dict(one.drop_nulls().value_counts().iter_rows()))
        for one in (target, answer, right)
    )
    labels = asked if forms is None else [n for n in forms if asked[n] + answered[n]][:1]
    return {n: (hits[n], asked[n] + answered[n]) for n in labels}


def _labels(columns: Sequence[pl.Series]) -> list[pl.Series]:
    """Return targets and answers as codes, those of a record without a target as null."""
    target, answer = (column.cast(pl.Categorical) for column in columns)
    return [target, pl.select(pl.when(target.is_not_null()).then(answer)).to_series()]


def _f1_terms(target: pl.Expr, answer: pl.Expr, *, positive: str | None = None) -> pl.Expr:
    """Return how far each record moves F1 away from its value."""
    forms = None if positive is None else _forms(positive)

    def terms(columns: Sequence[pl.Series]) -> pl.Series:
        labels = _labels(columns)
        counts = _label_counts(labels, forms)
        size = labels[0].count() / max(1, len(counts))
        codes = [one.to_physical() for one in labels]
        highest = max(int(one.fill_null(0).to_numpy().max(initial=0)) for one in codes)
        each, lost = np.zeros(highest + 2), np.zeros(highest + 2)  # the last is for nulls
        places = pl.Series(list(counts), dtype=pl.Categorical).to_physical().to_numpy()
        each[places] = [1 / both for _, both in counts.values()]
        lost[places] = [-2 * hits / both**2 for hits, both in counts.values()]
        moved = np.empty(len(labels[0]))
        for start in range(0, len(moved), SLICE):  # so that little more than the result is held
            t, a = (one.slice(start, SLICE).fill_null(highest + 1).to_numpy() for one in codes)
            gained = 2 * each[t] * (t == a)
            moved[start : start + SLICE] = size * (gained + lost[t] + lost[a])
        return pl.select(pl.when(labels[0].is_not_null()).then(pl.Series(moved))).to_series()

    return pl.map_batches([target, answer], terms, return_dtype=pl.Float64)


@share(
    title="F1 of labels",
    formula="2·TP / (2·TP + FP + FN); without a positive label the mean over labels",
    needs=("normalized_target",),
    interval=Linearised(_f1_terms, rate=True, text="Wilson, linearised, clustered by task"),
    spec="Pennyweight",
)
def f1(normalized_target: pl.Expr, label: pl.Expr, *, positive: str | None = None) -> pl.Expr:
    """F1 of labels: the harmonic mean of precision and recall.

    With `positive`, F1 of that label; otherwise the mean over all labels among the targets. The
    scorer `token_f1` compares the words of free-form answers.

    >>> evaluate(f1, target=["y", "n", "y"], answer=["y", "y", "n"], positive="y")
    0.5
    """
    chosen = None if positive is None else _forms(positive)

    def value(columns: Sequence[pl.Series]) -> float | None:
        counts = _label_counts(_labels(columns), chosen)
        parts = [2 * hits / both for hits, both in counts.values()]
        return math.fsum(parts) / len(parts) if parts else None

    columns = [normalized_target, label]
    return pl.map_groups(columns, value, return_dtype=pl.Float64, returns_scalar=True)
