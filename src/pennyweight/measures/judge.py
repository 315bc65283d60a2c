"""The judges' scores of one attempt, summarised."""

from __future__ import annotations

import polars as pl

from pennyweight.define import measure


@measure(unit="judges", spec="Pennyweight")
def judges(judge_scores: pl.Expr) -> pl.Expr:
    """The number of judges that gave a valid judgment.

    >>> evaluate(judges, judge_scores=[[0.5, 0.75], [], None])
    [2, 0, None]
    """
    return judge_scores.list.len().cast(pl.Int64)


@measure(spec="Pennyweight")
def judge_mean(judge_scores: pl.Expr) -> pl.Expr:
    """Mean of the judges' scores, if at least two judged.

    >>> evaluate(judge_mean, judge_scores=[[0.5, 0.75], [1.0]])
    [0.625, None]
    """
    return pl.when(judge_scores.list.len() > 1).then(judge_scores.list.mean())


@measure(spec="Krippendorff, alpha")
def judge_variance(judge_scores: pl.Expr) -> pl.Expr:
    """Population variance of the judges' scores, if at least two judged.

    >>> evaluate(judge_variance, judge_scores=[[0.5, 1.0], [1.0]])
    [0.0625, None]
    """
    return pl.when(judge_scores.list.len() > 1).then(judge_scores.list.var(ddof=0))


@measure(spec="Pennyweight")
def judge_difference(judge_scores: pl.Expr) -> pl.Expr:
    """Mean absolute difference over all pairs of judges, if at least two judged.

    >>> evaluate(judge_difference, judge_scores=[[0.5, 0.75, 1.0], [1.0]])
    [0.3333333333333333, None]
    """
    n = pl.len().cast(pl.Float64)
    ranks = 2 * pl.int_range(pl.len(), dtype=pl.Int64) - n + 1
    total = (pl.element().sort() * ranks).sum() / (n * (n - 1) / 2)
    apart = judge_scores.list.eval(total).list.first()
    return pl.when(judge_scores.list.len() > 1).then(apart)
