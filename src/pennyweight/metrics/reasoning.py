"""Metrics of the reasoning's shape, over the records that have a chain of thought."""

from __future__ import annotations

import polars as pl

from pennyweight.define import metric, share
from pennyweight.stats.resample import Linearised, ratio_terms


@metric(
    title="reasoning tokens",
    formula="(1/M) Σ cot_tokens_i",
    unit="tokens",
    range=(0, None),
    spec="Zeta Reason 5.1",
)
def cot_tokens_mean(cot_tokens: pl.Expr) -> pl.Expr:
    """Mean length of the chain of thought, in tokens.

    >>> evaluate(cot_tokens_mean, cot=["one two", None, "one two three four"])
    3.0
    """
    return cot_tokens.mean()


@metric(
    title="reasoning characters",
    formula="(1/M) Σ cot_chars_i",
    unit="characters",
    range=(0, None),
    spec="Zeta Reason 5.2",
)
def cot_chars_mean(cot_chars: pl.Expr) -> pl.Expr:
    """Mean length of the chain of thought, in characters.

    >>> evaluate(cot_chars_mean, cot=["abc", "abcde"])
    4.0
    """
    return cot_chars.mean()


@metric(
    title="reasoning steps",
    formula="(1/M) Σ step_count_i",
    unit="steps",
    range=(0, None),
    spec="Zeta Reason 5.3",
)
def step_count_mean(step_count: pl.Expr) -> pl.Expr:
    r"""Mean number of lines in the chain of thought that start like a step.

    >>> evaluate(step_count_mean, cot=["1. a\n2. b", "no steps"])
    1.0
    """
    return step_count.mean()


@metric(
    title="reasoning per answer token",
    formula="(1/M) Σ ra_ratio_i",
    range=(0, None),
    spec="Zeta Reason 5.4",
)
def ra_ratio_mean(ra_ratio: pl.Expr) -> pl.Expr:
    """Mean number of reasoning tokens per answer token.

    >>> evaluate(ra_ratio_mean, cot=["a b c d", "a b"], answer=["x y", "z"])
    2.0
    """
    return ra_ratio.mean()


@metric(
    title="self-corrections",
    formula="(1/M) Σ self_correcting_i",
    unit="share",
    range=(0, 1),
    spec="Zeta Reason 5.5",
)
def self_correction_rate(self_correcting: pl.Expr) -> pl.Expr:
    """Share of the chains of thought that contain a phrase of self-correction.

    >>> evaluate(self_correction_rate, cot=["Actually, 5", "5", None])
    0.5
    """
    return self_correcting.mean()


@metric(
    formula="(1/M) Σ steps_i", unit="steps", range=(0, None), spec="Pennyweight; Zeta Reason 5.3"
)
def steps_mean(steps: pl.Expr) -> pl.Expr:
    r"""Mean number of steps in the chain of thought, `Step 1:` and `1)` included.

    `step_count_mean` counts only what the specification names.

    >>> evaluate(steps_mean, cot=["Step 1: a\nStep 2: b", "no steps"])
    1.0
    """
    return steps.mean()


@metric(
    formula="(1/M) Σ backtracking_i",
    unit="share",
    range=(0, 1),
    spec="Pennyweight; Zeta Reason 5.5",
)
def backtracking_rate(backtracking: pl.Expr) -> pl.Expr:
    """Share of the chains of thought that question themselves: wait, let me check, actually.

    It looks for whole words; `self_correction_rate` counts exactly what the specification names.

    >>> evaluate(backtracking_rate, cot=["Wait, no: 5", "factually 5", None])
    0.5
    """
    return backtracking.mean()


def _ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    return part.sum() / pl.when(whole.sum() > 0).then(whole.sum())


_OF_SUMS = Linearised(ratio_terms, rate=True, text="Wilson, linearised, clustered by task")


@metric(
    title="equations that do not hold",
    formula="Σ wrong_equations_i / Σ readable_equations_i",
    unit="share",
    range=(0, 1),
    better="lower",
    interval=_OF_SUMS,
    spec="Zeta Reason 8",
)
def usr_math(wrong_equations: pl.Expr, readable_equations: pl.Expr) -> pl.Expr:
    """Share of the equations in chains of thought that do not hold, of those that can be read.

    An equation holds if both sides are equal, within half a unit of the last digit that is stated.
    `usr_math_coverage` says in how many chains there was one to read.

    >>> evaluate(usr_math, cot=["2 + 2 = 5, 5 * 3 = 15", "1 + 1 = 2, 3 * 3 = 9"])
    0.25
    """
    return _ratio(wrong_equations, readable_equations)


@share(
    title="chains with an equation",
    formula="(1/M) Σ [readable_equations_i > 0]",
    spec="Zeta Reason 8",
)
def usr_math_coverage(readable_equations: pl.Expr) -> pl.Expr:
    """Share of the chains of thought in which an equation could be read.

    >>> evaluate(usr_math_coverage, cot=["2 + 2 = 4", "It is four.", None])
    0.5
    """
    return (readable_equations > 0).mean()


@share(
    title="answers that follow from the reasoning",
    formula="(1/M) Σ answer_follows_i",
    spec="Zeta Reason 8",
)
def answer_follows_rate(answer_follows: pl.Expr) -> pl.Expr:
    """Share of the answers that are the value which the last readable equation states.

    >>> evaluate(answer_follows_rate, cot=["6 * 7 = 42", "6 * 7 = 42"], answer=["42", "24"])
    0.5
    """
    return answer_follows.mean()


def _field(check: pl.Expr, name: str) -> pl.Expr:
    return check.struct.field(name)


@metric(
    title="unsupported sentences",
    formula="Σ unsupported_i / Σ sentences_i; a record with a score counts as one sentence",
    unit="share",
    range=(0, 1),
    better="lower",
    interval=Linearised(
        lambda found: ratio_terms(_field(found, "unsupported"), _field(found, "sentences")),
        rate=True,
        text="Wilson, linearised, clustered by task",
    ),
    spec="Zeta Reason 8",
    replaceable=True,
)
def usr_rag(support_verdict: pl.Expr) -> pl.Expr:
    """Share of the sentences in replies that their context does not support.

    A screen, not a verdict: it compares letters, numbers and quotations. Only records with a
    `context` count. A scorer named `usr_rag`, a judge's or your own, takes its place: the share
    from 0 to 1 that it gave a record is used. `usr_rag_scored` says for how many records.

    >>> evaluate(usr_rag, context=["The mill opened in 1887."],
    ...          answer=["It opened in 1887. It closed in 1990."])
    0.5
    """
    return _ratio(_field(support_verdict, "unsupported"), _field(support_verdict, "sentences"))


@metric(
    formula="(1/M) Σ scored_i",
    unit="share",
    range=(0, 1),
    interval=Linearised(
        lambda found: ratio_terms(
            _field(found, "scored").cast(pl.Float64),
            _field(found, "scored").is_not_null().cast(pl.Float64),
        ),
        rate=True,
        text="Wilson, linearised, clustered by task",
    ),
    spec="Pennyweight; Zeta Reason 8",
)
def usr_rag_scored(support_verdict: pl.Expr) -> pl.Expr:
    """Share of the records behind `usr_rag` that a scorer of this name decided, not the screen.

    Null where no record has such a score: then all of it is the screen's.

    >>> evaluate(usr_rag_scored, context=["The mill is old."] * 2, answer=["It has 3 floors."] * 2,
    ...          scores=[None, '{"usr_rag": 0.25}'])
    0.5
    """
    scored = _field(support_verdict, "scored")
    return pl.when(scored.any()).then(scored.mean())


def _supported(check: pl.Expr) -> pl.Expr:
    return _field(check, "sentences") - _field(check, "unsupported")


@share(
    formula="citations of a passage that supports the sentence / citations",
    interval=Linearised(
        lambda check: ratio_terms(_field(check, "right_citations"), _field(check, "citations")),
        rate=True,
        text="Wilson, linearised, clustered by task",
    ),
    spec="Zeta Reason 8",
)
def citation_precision(support_check: pl.Expr) -> pl.Expr:
    """Share of the citations, such as [2], that name a passage which supports their sentence.

    >>> evaluate(citation_precision, context=['["The mill is old.", "The cat is grey."]'],
    ...          answer=["The mill is old [1]. The cat is grey [1]."])
    0.5
    """
    return _ratio(_field(support_check, "right_citations"), _field(support_check, "citations"))


@share(
    formula="supported sentences that cite a supporting passage / supported sentences",
    interval=Linearised(
        lambda check: ratio_terms(_field(check, "cited"), _supported(check)),
        rate=True,
        text="Wilson, linearised, clustered by task",
    ),
    spec="Zeta Reason 8",
)
def citation_recall(support_check: pl.Expr) -> pl.Expr:
    """Share of the supported sentences that cite a passage which supports them.

    Null if no reply cites anything.

    >>> evaluate(citation_recall, context=['["The mill is old.", "The cat is grey."]'],
    ...          answer=["The mill is old [1]. The cat is grey."])
    0.5
    """
    cites = _field(support_check, "citations").sum() > 0
    return pl.when(cites).then(_ratio(_field(support_check, "cited"), _supported(support_check)))
