"""Whether the answer is right."""

from __future__ import annotations

import polars as pl

from assay.define import measure
from assay.text.normalize import normalize


@measure(spec="Zeta Reason 1")
def normalized_answer(answer: pl.Expr) -> pl.Expr:
    """The answer in the form in which it is compared.

    >>> evaluate(normalized_answer, answer=[" 1,000 ", "Yes", None])
    ['1000', 'yes', None]
    """
    return normalize(answer)


@measure(spec="Zeta Reason 1")
def normalized_target(target: pl.Expr) -> pl.Expr:
    """The right answer in the form in which it is compared.

    >>> evaluate(normalized_target, target=["1e3"])
    ['1000']
    """
    return normalize(target)


@measure(spec="Zeta Reason 2.1")
def correct(normalized_answer: pl.Expr, normalized_target: pl.Expr, correct: pl.Expr) -> pl.Expr:
    """Whether the normalised answer equals the normalised target; no answer is a wrong answer.

    A record without a target keeps the `correct` it came with, if any.

    >>> evaluate(correct, answer=["4", "5", None], target=["4.0", "4", "4"])
    [True, False, False]
    """
    return pl.coalesce(
        pl.when(normalized_target.is_not_null()).then(
            normalized_answer.eq_missing(normalized_target)
        ),
        correct,
    )
