"""Calibration by the source of the confidence: stated, log-probabilities, agreement of repeats.

`brier`, `ece` and the others use the probability that a record has, or the source that the suite
names. These compare all sources of one set of records. Agreement is the share of a task's attempts
that give the same answer, as far as the suite's matching sees a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import polars as pl

from pennyweight.define import Metric, metric
from pennyweight.metrics.calibration import check_bins, confidence_auroc, ece
from pennyweight.metrics.sums import add
from pennyweight.stats.resample import Ends, Interval, Sample


@dataclass(frozen=True, slots=True)
class OfDerived:
    """The interval of a metric whose probability is derived from several columns."""

    probability: Callable[..., pl.Expr]
    inner: Interval

    @property
    def text(self) -> str:
        """The method in a few words."""
        return self.inner.text

    def __call__(self, sample: Sample) -> Ends:
        """Return both ends, or None."""
        columns = [pl.col(name) for name in sample.inputs[:-1]]
        frame = sample.frame.with_columns(self.probability(*columns).alias("\0p"))
        return self.inner(replace(sample, frame=frame, inputs=("\0p", sample.inputs[-1])))


def _agreement(subject: pl.Expr, tier: pl.Expr, task_id: pl.Expr, answer_class: pl.Expr) -> pl.Expr:
    attempts = pl.len().over(subject, tier, task_id)
    return pl.when(attempts > 1).then(
        pl.len().over(subject, tier, task_id, answer_class) / attempts
    )


def _mean(
    stated_confidence: pl.Expr,
    logprob_confidence: pl.Expr,
    subject: pl.Expr,
    tier: pl.Expr,
    task_id: pl.Expr,
    answer_class: pl.Expr,
) -> pl.Expr:
    agreement = _agreement(subject, tier, task_id, answer_class)
    known = (stated_confidence, logprob_confidence, agreement)
    number = add(one.is_not_null().cast(pl.Float64) for one in known)
    return pl.when(number > 0).then(add(one.fill_null(0.0) for one in known) / number)


def _derived(
    of: Metric, probability: Callable[..., pl.Expr], *columns: pl.Expr, **options: Any
) -> pl.Expr:
    """Return a metric of a derived probability, which is computed once: windows are slow.

    The last columns are the subject, tier, task and answer class, and whether it is correct.
    """

    def value(found: Sequence[pl.Series]) -> float | None:
        *sources, _, _, task, _, _ = found
        given = any(one.null_count() < len(one) for one in sources)
        if not given and task.n_unique() == len(task):  # nothing is repeated
            return None
        frame = pl.DataFrame([one.alias(f"{i}") for i, one in enumerate(found)])
        *inputs, correct = map(pl.col, frame.columns)
        pairs = frame.select(probability(*inputs).alias("p"), correct.alias("y"))
        number: float | None = pairs.select(of(pl.col("p"), pl.col("y"), **options)).item()
        return number

    return pl.map_groups(columns, value, return_dtype=pl.Float64, returns_scalar=True)


assert ece.interval is not None
assert confidence_auroc.interval is not None
_error = partial(
    metric,
    formula="Σ_k |S_k|/M · |acc_k − conf_k|",
    range=(0, 1),
    better="lower",
    spec="Zeta Reason 8; Zeta Reason 3.2",
)
_area = partial(
    metric,
    formula="P(p_i > p_j) + P(p_i = p_j) / 2, i correct, j wrong",
    range=(0, 1),
    better="higher",
    spec="Zeta Reason 8",
)
_NEEDED = ("task_id", "correct")


@_error(title="calibration error, stated confidence", interval=ece.interval)
def ece_stated(stated_confidence: pl.Expr, correct: pl.Expr, *, bins: int = 10) -> pl.Expr:
    """Expected calibration error of the confidence that responses state.

    >>> evaluate(ece_stated, stated_confidence=[1.0, 0.5], correct=[True, True])
    0.25
    """
    return ece(stated_confidence, correct, bins=bins)


@_error(title="calibration error, token probabilities", interval=ece.interval)
def ece_logprobs(logprob_confidence: pl.Expr, correct: pl.Expr, *, bins: int = 10) -> pl.Expr:
    """Expected calibration error of the probability of the answer's tokens.

    >>> evaluate(ece_logprobs, logprob_confidence=[1.0, 0.5], correct=[True, True])
    0.25
    """
    return ece(logprob_confidence, correct, bins=bins)


@_error(
    title="calibration error, agreement of attempts",
    interval=OfDerived(_agreement, ece.interval),
    needs=_NEEDED,
)
def ece_agreement(
    subject: pl.Expr,
    tier: pl.Expr,
    task_id: pl.Expr,
    answer_class: pl.Expr,
    correct: pl.Expr,
    *,
    bins: int = 10,
) -> pl.Expr:
    """Expected calibration error of agreement: the share of a task's attempts that answer alike.

    Tasks with one attempt have no agreement.

    >>> evaluate(ece_agreement, task_id=["a", "a"], answer=["4", "4"], target=["4", "4"])
    0.0
    """
    check_bins(bins)
    return _derived(ece, _agreement, subject, tier, task_id, answer_class, correct, bins=bins)


@_error(
    title="calibration error, mean confidence",
    interval=OfDerived(_mean, ece.interval),
    needs=_NEEDED,
)
def ece_mean_confidence(
    stated_confidence: pl.Expr,
    logprob_confidence: pl.Expr,
    subject: pl.Expr,
    tier: pl.Expr,
    task_id: pl.Expr,
    answer_class: pl.Expr,
    correct: pl.Expr,
    *,
    bins: int = 10,
) -> pl.Expr:
    """Expected calibration error of the mean of all sources that a record has.

    >>> evaluate(ece_mean_confidence, stated_confidence=[1.0], logprob_confidence=[0.5],
    ...          correct=[True])
    0.25
    """
    sources = stated_confidence, logprob_confidence, subject, tier, task_id, answer_class
    check_bins(bins)
    return _derived(ece, _mean, *sources, correct, bins=bins)


@_area(title="stated confidence tells right from wrong", interval=confidence_auroc.interval)
def auroc_stated(stated_confidence: pl.Expr, correct: pl.Expr) -> pl.Expr:
    """How well the stated confidence tells correct answers from wrong ones.

    >>> evaluate(auroc_stated, stated_confidence=[0.9, 0.8], correct=[True, False])
    1.0
    """
    return confidence_auroc(stated_confidence, correct)


@_area(title="token probabilities tell right from wrong", interval=confidence_auroc.interval)
def auroc_logprobs(logprob_confidence: pl.Expr, correct: pl.Expr) -> pl.Expr:
    """How well the probability of the answer's tokens tells correct answers from wrong ones.

    >>> evaluate(auroc_logprobs, logprob_confidence=[0.9, 0.8], correct=[True, False])
    1.0
    """
    return confidence_auroc(logprob_confidence, correct)


@_area(
    title="agreement of attempts tells right from wrong",
    interval=OfDerived(_agreement, confidence_auroc.interval),
    needs=_NEEDED,
)
def auroc_agreement(
    subject: pl.Expr,
    tier: pl.Expr,
    task_id: pl.Expr,
    answer_class: pl.Expr,
    correct: pl.Expr,
) -> pl.Expr:
    """How well the agreement of a task's attempts tells correct answers from wrong ones.

    >>> evaluate(auroc_agreement, task_id=["a", "a", "b", "b"], answer=["4", "4", "4", "5"],
    ...          target=["4", "4", "6", "6"])
    1.0
    """
    return _derived(confidence_auroc, _agreement, subject, tier, task_id, answer_class, correct)


@_area(
    title="mean confidence tells right from wrong",
    interval=OfDerived(_mean, confidence_auroc.interval),
    needs=_NEEDED,
)
def auroc_mean_confidence(
    stated_confidence: pl.Expr,
    logprob_confidence: pl.Expr,
    subject: pl.Expr,
    tier: pl.Expr,
    task_id: pl.Expr,
    answer_class: pl.Expr,
    correct: pl.Expr,
) -> pl.Expr:
    """How well the mean of all sources that a record has tells correct answers from wrong ones.

    >>> evaluate(auroc_mean_confidence, stated_confidence=[0.9, 0.8], task_id=["a", "b"],
    ...          correct=[True, False])
    1.0
    """
    sources = stated_confidence, logprob_confidence, subject, tier, task_id, answer_class
    return _derived(confidence_auroc, _mean, *sources, correct)
