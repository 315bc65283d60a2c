"""Metrics of correctness: accuracy, error rate, precision and recall."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from pennyweight.define import share
from pennyweight.stats.interval import binomial_interval, t_quantile, z_quantile
from pennyweight.stats.resample import CLUSTER, Ends, Linearised, Sample
from pennyweight.text.normalize import normalize

Labels = Callable[[pl.Expr, pl.Expr], pl.Expr]
"""Selects, from target and answer, the label that a record counts for."""


@share(formula="(1/N) Σ correct_i", spec="Zeta Reason 2.1", also=("ACC",))
def accuracy(correct: pl.Expr) -> pl.Expr:
    """Share of records whose answer equals the target.

    >>> evaluate(accuracy, answer=["4", "5", None], target=["4", "4", "4"])
    0.3333333333333333
    """
    return correct.mean()


@share(
    title="wrong answers",
    formula="1 − accuracy",
    better="lower",
    spec="Zeta Reason 2.3",
    also=("ERR",),
)
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
    also=("USR_v0",),
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
    needs=("target_label",),
    interval=MacroShare(_answered),
    spec="Metrics Guide, precision",
)
def precision(
    target_label: pl.Expr, answer_label: pl.Expr, *, positive: str | None = None
) -> pl.Expr:
    """Of the answers with a label, the share that is correct. With choices, labels are letters.

    With `positive`, precision of that label; otherwise the mean over all labels that were answered.

    >>> evaluate(precision, target=["y", "n", "y"], answer=["y", "y", "n"], positive="y")
    0.5
    """
    return _macro(_answered, target_label, answer_label, positive)


@share(
    formula="TP / (TP + FN); without a positive label the mean over labels",
    needs=("target_label",),
    interval=MacroShare(_asked),
    spec="Metrics Guide, recall",
)
def recall(target_label: pl.Expr, answer_label: pl.Expr, *, positive: str | None = None) -> pl.Expr:
    """Of the records whose target is a label, the share that was answered with it.

    With `positive`, recall of that label; otherwise the mean over all labels among the targets.

    >>> evaluate(recall, target=["y", "y", "n"], answer=["y", None, "n"], positive="y")
    0.5
    """
    return _macro(_asked, target_label, answer_label, positive)


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


def _pairs(frame: pl.DataFrame, inputs: Sequence[str]) -> pl.DataFrame:
    """Return a row for each label that a record is about: its target, and a wrong answer.

    The share of hits among the rows of a label is J = TP / (TP + FP + FN).
    """
    target, answer = map(pl.col, inputs)
    rows = frame.select(
        CLUSTER, target.cast(pl.String).alias("t"), answer.cast(pl.String).alias("a")
    ).drop_nulls("t")
    same = (pl.col("t") == pl.col("a")).fill_null(value=False)
    asked = rows.select(CLUSTER, same.alias("hit"), pl.col("t").alias("label"))
    wrong = rows.filter(pl.col("a").is_not_null() & (pl.col("t") != pl.col("a")))
    missed = wrong.select(CLUSTER, pl.lit(value=False).alias("hit"), pl.col("a").alias("label"))
    return pl.concat([asked, missed])


@dataclass(frozen=True, slots=True)
class F1Share:
    """Interval of F1 of a label, or of its mean over the labels among the targets.

    F1 is 2J / (1 + J), and J = TP / (TP + FP + FN) is a share of records, so that a binomial
    interval of J gives that of F1. Those of several labels add up as in `MacroShare`; a wrong
    answer counts against two labels, which widens the sum as repeated attempts do.
    """

    text: str = "2J / (1 + J) of the binomial intervals of J = TP / (TP + FP + FN), by label"

    def __call__(self, sample: Sample) -> Ends:
        """Return both ends, or None with one task."""
        rows = _pairs(sample.frame, sample.inputs)
        if (positive := sample.options["positive"]) is not None:
            forms = _forms(positive)
            there = set(rows["label"].unique())
            form = next((form for form in forms if form in there), forms[0])
            own = rows.filter(pl.col("label") == form)
            value = own["hit"].mean()
            if own[CLUSTER].n_unique() < 2 or not isinstance(value, float):
                return None
            alone = replace(sample, frame=own, value=value, inputs=("hit",), options={})
            ends = Linearised(_as_they_are, rate=True)(alone)
            return None if ends is None else (_f1_of(ends[0]), _f1_of(ends[1]))
        target = sample.frame[sample.inputs[0]].drop_nulls()
        labels = target.cast(pl.String).unique()
        rows = rows.filter(pl.col("label").is_in(labels.implode()))
        tasks = rows[CLUSTER].n_unique()
        if tasks < 2:
            return None
        counts = rows.group_by("label").agg(pl.col("hit").sum(), n=pl.len()).sort("hit", "n")
        found, n = (counts[c].cast(pl.Float64).to_numpy() for c in ("hit", "n"))
        both = binomial_interval(found, n, sample.confidence)
        values = _f1_of(found / n)
        down, up = (np.linalg.norm(values - _f1_of(end)) / len(n) for end in both)
        wider = _widening(rows)
        if sample.clustered:
            t = float(t_quantile(np.array([float(tasks)]), sample.confidence)[0])
            wider *= t / z_quantile(sample.confidence)
        low, high = sample.value - wider * down, sample.value + wider * up
        return max(0.0, float(low)), min(1.0, float(high))


def _as_they_are(hit: pl.Expr) -> pl.Expr:
    return hit


def _f1_of(share: Any) -> Any:
    """Return F1, given J."""
    return 2 * share / (1 + share)


@share(
    title="F1 of labels",
    formula="2·TP / (2·TP + FP + FN); without a positive label the mean over labels",
    needs=("target_label",),
    interval=F1Share(),
    spec="Pennyweight",
)
def f1(target_label: pl.Expr, answer_label: pl.Expr, *, positive: str | None = None) -> pl.Expr:
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

    columns = [target_label, answer_label]
    return pl.map_groups(columns, value, return_dtype=pl.Float64, returns_scalar=True)
