"""Metrics of diversity: how varied the answers are."""

from __future__ import annotations

import math

import polars as pl

from pennyweight.define import metric
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
