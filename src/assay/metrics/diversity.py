"""How varied the answers are."""

from __future__ import annotations

import polars as pl

from assay.define import metric
from assay.stats.resample import Linearised


def _surprise(answer: pl.Expr) -> pl.Expr:
    """Each record's own part in the entropy: −log of its answer's share."""
    return -(pl.len().over(answer) / pl.len()).log()


def _bias(answer: pl.Expr) -> pl.Expr:
    """What the entropy of a sample is expected to lie below the truth (Miller and Madow)."""
    return (answer.n_unique() - 1) / (2 * pl.len())


def _scaled_surprise(answer: pl.Expr) -> pl.Expr:
    return _surprise(answer) / answer.n_unique().log()


def _scaled_bias(answer: pl.Expr) -> pl.Expr:
    return _bias(answer) / answer.n_unique().log()


def _entropy(answer: pl.Expr) -> pl.Expr:
    share = answer.unique_counts() / pl.len()
    return (share * share.log()).sum().abs()


@metric(
    formula="−Σ_a p_a ln p_a",
    unit="nats",
    range=(0, None),
    needs=(),
    interval=Linearised(
        _surprise,
        bias=_bias,
        text="t, linearised, clustered by task; the upper end also takes in the sample's bias",
    ),
    spec="Zeta Reason 4.1",
)
def sce(normalized_answer: pl.Expr) -> pl.Expr:
    """Entropy of the answers over the whole data set: 0 if they are all the same.

    It tells how varied the answers are across tasks, not whether repeated tries agree. A missing
    answer counts as one more distinct answer.

    >>> round(evaluate(sce, answer=["a", "b", "a", "b"]), 4)
    0.6931
    """
    return pl.when(normalized_answer.is_not_null().any()).then(_entropy(normalized_answer))


@metric(
    formula="sce / ln |A|",
    range=(0, 1),
    needs=(),
    interval=Linearised(
        _scaled_surprise,
        bias=_scaled_bias,
        text="t, linearised, clustered by task; the upper end also takes in the sample's bias",
    ),
    spec="Zeta Reason 4.1",
)
def sce_normalized(normalized_answer: pl.Expr) -> pl.Expr:
    """Entropy of the answers as a share of the most it could be; null with one distinct answer.

    >>> evaluate(sce_normalized, answer=["a", "b", "c", None])
    1.0
    """
    distinct = normalized_answer.n_unique()
    return pl.when(normalized_answer.is_not_null().any() & (distinct > 1)).then(
        _entropy(normalized_answer) / distinct.log()
    )
