"""The final answer and whether it is correct."""

from __future__ import annotations

import polars as pl

from pennyweight.define import measure
from pennyweight.text.arithmetic import canonical
from pennyweight.text.choice_letter import choice_letter
from pennyweight.text.confidence import from_logprobs, read_logprobs, stated
from pennyweight.text.extraction import AnswerRule
from pennyweight.text.extraction import answer as find_answer
from pennyweight.text.matching import MatchRule, matches
from pennyweight.text.normalize import normalize, single

VERIFY = "verify"
"""`matched_by` of a record that a command verified."""


@measure(spec="Zeta Reason 1")
def answer(
    answer: pl.Expr,
    response: pl.Expr,
    *,
    answer_rule: AnswerRule | None = None,
    confidence_from: str | None = None,
) -> pl.Expr:
    r"""The final answer: the given one, else the one extracted from the response.

    `answer_rule` defines how it is extracted. If the rule is set, the extracted answer replaces the
    given one. A confidence that is read from the response (`confidence_from`) is not part of the
    answer.

    >>> evaluate(answer, response=["So it is 4.\nFINAL_ANSWER: 4", "no idea"])
    ['4', None]
    """
    found = find_answer(response, (answer_rule or AnswerRule()).with_confidence(confidence_from))
    if answer_rule is None:
        return pl.coalesce(answer, found)
    return pl.when(response.is_not_null()).then(found).otherwise(answer)


@measure(spec="Zeta Reason 1")
def normalized_answer(answer: pl.Expr, *, match_rule: MatchRule | None = None) -> pl.Expr:
    """The answer in its normalised form, in which it is compared with the target.

    A list of one value is that value. With `match: text` it is the text as it is written.

    >>> evaluate(normalized_answer, answer=[" 1,000 ", "Yes", None])
    ['1000', 'yes', None]
    """
    return _compared(answer, match_rule)


@measure(spec="Zeta Reason 1")
def normalized_target(target: pl.Expr, *, match_rule: MatchRule | None = None) -> pl.Expr:
    """The target in its normalised form, in which it is compared with the answer.

    A list of one value is that value. With `match: text` it is the text as it is written, and
    with `match: none` there is none.

    >>> evaluate(normalized_target, target=["1e3"])
    ['1000']
    """
    if match_rule is not None and match_rule.kind == "none":
        return pl.lit(None, dtype=pl.String)
    return _compared(target, match_rule)


def _compared(text: pl.Expr, rule: MatchRule | None) -> pl.Expr:
    if rule is not None and rule.kind == "text":
        return single(text).str.strip_chars()
    if rule is not None and rule.kind == "verbatim":
        return single(text)
    return normalize(single(text))


@measure(spec="Zeta Reason 2.1")
def correct(
    normalized_answer: pl.Expr,
    normalized_target: pl.Expr,
    answer: pl.Expr,
    target: pl.Expr,
    correct: pl.Expr,
    matched_by: pl.Expr,
    tool: pl.Expr,
    status: pl.Expr,
    *,
    match_rule: MatchRule | None = None,
    match_verified: bool = False,
) -> pl.Expr:
    """Whether the normalised answer equals the normalised target. A missing answer is wrong.

    `match_rule` selects a looser comparison: numbers within a tolerance, a choice, and so on. A
    record without a target keeps its given `correct`, if any; so does one that a run matched more
    loosely (`matched_by`), unless `match_rule` is set. A record of another tool's log (`tool`)
    has no other `correct` than the given one, unless `match_rule` is set. An attempt with status
    `error` is neither correct nor wrong. The work of an agent that a command verified
    (`matched_by: verify`) is compared only with `match_verified`.

    >>> evaluate(correct, answer=["4", "5", None], target=["4.0", "4", "4"])
    [True, False, False]
    """
    same = normalized_answer.eq_missing(normalized_target)
    if match_rule is not None and match_rule.kind != "exact":
        same = matches(single(answer), target, match_rule)
    compared = normalized_target.is_not_null()
    if match_rule is None:
        compared &= tool.is_null() & (matched_by.is_null() | correct.is_null())
    if not match_verified:
        compared &= matched_by.ne_missing(pl.lit(VERIFY))
    decided = pl.coalesce(pl.when(compared).then(same), correct)
    return pl.when(status.ne_missing("error")).then(decided)


@measure(spec="Metrics Guide, precision")
def label(normalized_answer: pl.Expr, normalized_target: pl.Expr, correct: pl.Expr) -> pl.Expr:
    """The answer as a label: its target if it is correct, however loosely, else its own text.

    A wrong answer is never the label of its target: one of the same text is marked with ≠.

    >>> evaluate(label, answer=["(B)", "C"], target=["b", "b"], correct=[True, False],
    ...          matched_by=["choice", "choice"])
    ['b', 'c']
    """
    return (
        pl.when(correct & normalized_target.is_not_null())
        .then(normalized_target)
        .when(~correct & (normalized_answer == normalized_target))
        .then(pl.concat_str(pl.lit("≠ "), normalized_answer))
        .otherwise(normalized_answer)
    )


@measure(spec="Metrics Guide, precision")
def target_label(normalized_target: pl.Expr, choices: pl.Expr, target: pl.Expr) -> pl.Expr:
    """The target as a label: the letter of a choice, else the target in its normalised form.

    >>> evaluate(target_label, target=["B. Rome", "yes"], choices=['["Oslo", "Rome"]', None])
    ['b', 'yes']
    """
    return pl.when(choices.is_null()).then(normalized_target).otherwise(_letter(target, choices))


@measure(spec="Metrics Guide, precision")
def answer_label(
    label: pl.Expr, target_label: pl.Expr, choices: pl.Expr, answer: pl.Expr, correct: pl.Expr
) -> pl.Expr:
    """The answer as a label: the letter of a choice, else `label`. No choice: no label.

    >>> two = '["Oslo", "Rome"]'
    >>> evaluate(answer_label, answer=["A", "rome", "?"], target=["A", "A", "A"], choices=[two] * 3)
    ['a', 'b', None]
    """
    chosen = _letter(answer, choices)
    missed = pl.when(chosen != target_label).then(chosen)
    of_choice = pl.when(correct).then(target_label).otherwise(missed)
    return pl.when(choices.is_null()).then(label).otherwise(of_choice)


def _letter(text: pl.Expr, choices: pl.Expr) -> pl.Expr:
    """Return the letter of the choice that a text names; null if it names none."""
    both = pl.struct(text.alias("text"), choices.alias("choices"))
    return both.map_batches(_letters, return_dtype=pl.String, is_elementwise=True)


def _letters(rows: pl.Series) -> pl.Series:
    if rows.struct.field("choices").null_count() == len(rows):
        return pl.Series(rows.name, [None], dtype=pl.String).new_from_index(0, len(rows))
    found = [choice_letter(row["text"], row["choices"]) for row in rows]
    return pl.Series(rows.name, found, dtype=pl.String)


@measure(spec="Zeta Reason 8")
def answer_class(label: pl.Expr, *, match_rule: MatchRule | None = None) -> pl.Expr:
    """The answer as one of the different answers to its task: those that match are one class.

    Correct answers are one class, however they are written. With `match: math`, so are calculations
    of the same value, such as 1/2 and 0.5.

    >>> evaluate(answer_class, answer=["4", "four", "5"], target=["4", "4", "4"],
    ...          correct=[True, True, False], matched_by=["any_of"] * 3)
    ['4', '4', '5']
    """
    if match_rule is None or match_rule.kind != "math":
        return label
    return label.map_batches(_of_one_value, return_dtype=pl.String, is_elementwise=True)


def _of_one_value(labels: pl.Series) -> pl.Series:
    kinds = labels.unique()
    found = [text if text is None else canonical(text) or text for text in kinds]
    return labels.replace_strict(kinds, pl.Series(found, dtype=pl.String), return_dtype=pl.String)


@measure(spec="Zeta Reason 3")
def prob_correct(
    prob_correct: pl.Expr,
    response: pl.Expr,
    logprobs: pl.Expr,
    answer: pl.Expr,
    *,
    confidence_from: str | None = None,
) -> pl.Expr:
    r"""The probability that the subject assigned to its answer being correct.

    If none is given, `confidence_from` selects where it is read: from the response (`stated`, such
    as CONFIDENCE: 80%) or from the log-probabilities of the answer's tokens (`logprobs`).

    >>> evaluate(prob_correct, response=["FINAL_ANSWER: 4\nCONFIDENCE: 80%"],
    ...          confidence_from="stated")
    [0.8]
    """
    if confidence_from == "stated":
        return pl.coalesce(prob_correct, stated(response))
    if confidence_from == "logprobs":
        both = pl.struct(logprobs.alias("logprobs"), answer.alias("answer"))
        probability = both.map_batches(_of_logprobs, return_dtype=pl.Float64, is_elementwise=True)
        return pl.coalesce(prob_correct, probability)
    return prob_correct


@measure(spec="Zeta Reason 8")
def stated_confidence(stated_confidence: pl.Expr, response: pl.Expr) -> pl.Expr:
    """The confidence that the response states, such as CONFIDENCE: 80%.

    >>> evaluate(stated_confidence, response=["FINAL_ANSWER: 4, confidence: 0.8", "4"])
    [0.8, None]
    """
    return pl.coalesce(stated_confidence, stated(response))


@measure(spec="Zeta Reason 8")
def logprob_confidence(logprob_confidence: pl.Expr, logprobs: pl.Expr, answer: pl.Expr) -> pl.Expr:
    """The probability of the answer's tokens: the product of their probabilities.

    >>> evaluate(logprob_confidence, logprobs=['[["4", -0.5], [".", 0.0]]'], answer=["4"])
    [0.6065306597126334]
    """
    both = pl.struct(logprobs.alias("logprobs"), answer.alias("answer"))
    found = both.map_batches(_of_logprobs, return_dtype=pl.Float64, is_elementwise=True)
    return pl.coalesce(logprob_confidence, found)


def _of_logprobs(rows: pl.Series) -> pl.Series:
    if rows.struct.field("logprobs").null_count() == len(rows):
        return pl.Series(rows.name, [None], dtype=pl.Float64).new_from_index(0, len(rows))
    values = [
        from_logprobs(read_logprobs(row["logprobs"]) or (), row["answer"])
        if row["logprobs"] and row["answer"]
        else None
        for row in rows
    ]
    return pl.Series(rows.name, values, dtype=pl.Float64)
