"""Scorers that ask the judges of the suite: by a question in the suite, or ready-made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pennyweight.errors import UsageError, unknown
from pennyweight.metrics.scores import is_replaced, name_problem
from pennyweight.scorers.declaration import Scorer, as_label
from pennyweight.scorers.pairing import Pairing
from pennyweight.scorers.questions import Question


def judged_scorer(name: str, given: Mapping[str, Any]) -> Scorer:
    """Return the scorer that asks a question; raise UsageError for a mistake.

    >>> judged_scorer("tone", {"prompt": "How kind is {{ response }}?"}).inputs
    ('response',)
    """
    better = given.get("better", "higher")
    try:
        if problem := name_problem(name):
            raise UsageError(problem)
        if better not in ("higher", "lower"):
            raise UsageError("'better' is higher or lower.")
        question = Question.of(given)
        if is_replaced(name) and (question.labels or (question.lowest, question.highest) != (0, 1)):
            raise UsageError("it is a share: write 'rubric: 0-1', where 1 is not supported.")
        for label in () if question.pair else question.labels:
            as_label(label)
    except (UsageError, TypeError) as error:
        raise UsageError(f"{name}: {error}") from None
    summary = " ".join(question.text.split())
    return replace(_ready(name, summary, question), better=better)


def _ready(name: str, summary: str, question: Question) -> Scorer:
    if question.pair:
        return Scorer(
            name, _unasked, question.inputs, summary, unit="share", range=(0, 1), question=question
        )
    ends = None if question.labels else (question.lowest, question.highest)
    return Scorer(name, _unasked, question.inputs, summary, range=ends, question=question)


def with_pairing(scorer: Scorer, given: Mapping[str, Any]) -> Scorer:
    """Return a ready-made comparison with another side; raise UsageError for a mistake."""
    for one in given:
        if one != "pairwise":
            raise UsageError(unknown(f"Setting of {scorer.name}", str(one), ("pairwise",)))
    assert scorer.question
    question = replace(scorer.question, pair=Pairing.of(given.get("pairwise", True)))
    return replace(scorer, inputs=question.inputs, question=question)


def _unasked(**_: Any) -> None:
    """Stand for the judge, who is asked in a phase of the run."""


faithfulness = _ready(
    "faithfulness",
    "How far the reply is supported by the context, from 1 to 5, by a judge.",
    Question(
        "Take each statement of {{ response }} and look whether {{ context }} supports it. What "
        "you know otherwise does not count. 5: all are supported. 4: all that matter. 3: about "
        "half. 2: few. 1: none, or one that matters contradicts the context."
    ),
)
answer_relevancy = _ready(
    "answer_relevancy",
    "How well the reply addresses what was asked, from 1 to 5, by a judge.",
    Question(
        "How well does {{ response }} address what {{ input }} asks, whether it is right or not? "
        "5: all of it and nothing else. 4: all of it, with a little beside it. 3: a part of it, "
        "or much beside it. 2: hardly. 1: not at all."
    ),
)
context_precision = _ready(
    "context_precision",
    "How much of the context is of use for the answer, from 1 to 5, by a judge.",
    Question(
        "How much of {{ context }} is of use to get from {{ input }} to {{ target }}, the right "
        "answer? 5: all of it. 4: most of it, and it comes first. 3: about half. 2: little, or it "
        "comes last. 1: nothing."
    ),
)
context_recall = _ready(
    "context_recall",
    "How far the context contains what the right answer says, from 1 to 5, by a judge.",
    Question(
        "Take each statement of {{ target }}, the right answer to {{ input }}, and look whether it "
        "follows from {{ context }}. 5: all do. 4: all that matter. 3: about half. 2: few. 1: none."
    ),
)
preference = _ready(
    "preference",
    "How often a judge prefers the reply to that of the baseline, in both orders; ties count half.",
    Question.comparing(
        "Which reply to {{ input }} would its author rather have? It is right, it says all that "
        "matters, and nothing that is beside the point. Neither length nor style counts by itself.",
        Pairing(),
    ),
)
