"""The shape of one chain of thought."""

from __future__ import annotations

import polars as pl

from pennyweight.define import measure
from pennyweight.text.extraction import AnswerRule
from pennyweight.text.extraction import cot as find_cot
from pennyweight.text.tokens import tokens

STEP = r"[^\S\r\n]*(?:\d+\.|-|\*)[^\S\r\n]"
"""How a step line begins; a match never leaves its line, which ends at \\n, \\r\\n or \\r."""

CORRECTION = r"(?i-u:actually|sorry|correction|let me fix|i made a mistake)"


@measure(spec="Zeta Reason 5")
def cot(
    cot: pl.Expr,
    response: pl.Expr,
    reasoning: pl.Expr,
    *,
    answer_rule: AnswerRule | None = None,
    confidence_from: str | None = None,
) -> pl.Expr:
    r"""The chain of thought: as given, else the reasoning and the text before the final answer.

    >>> evaluate(cot, response=["2 and 2 make 4.\nFINAL_ANSWER: 4"])
    ['2 and 2 make 4.']
    """
    rule = (answer_rule or AnswerRule()).with_confidence(confidence_from)
    found = find_cot(response, reasoning, rule)
    own = pl.coalesce(cot, pl.when(response.is_null()).then(reasoning))
    if answer_rule is None:
        return pl.coalesce(own, found)
    return pl.when(response.is_not_null()).then(found).otherwise(own)


@measure(unit="tokens", spec="Zeta Reason 5.1")
def cot_tokens(cot: pl.Expr) -> pl.Expr:
    """The number of tokens in the chain of thought.

    >>> evaluate(cot_tokens, cot=["one two", None, ""])
    [2, None, 0]
    """
    return tokens(cot)


@measure(unit="characters", spec="Zeta Reason 5.2")
def cot_chars(cot: pl.Expr) -> pl.Expr:
    """The number of characters in the chain of thought.

    >>> evaluate(cot_chars, cot=["naïve", None])
    [5, None]
    """
    return cot.str.len_chars()


@measure(unit="steps", spec="Zeta Reason 5.3")
def step_count(cot: pl.Expr) -> pl.Expr:
    r"""The number of lines that start like a step: `1.`, `-` or `*`, followed by a space.

    >>> evaluate(step_count, cot=["1. add\n2. divide\nso 7", "- a\n* b", "1.5 is it"])
    [2, 2, 0]
    """
    later = cot.str.count_matches(r"[\r\n]" + STEP)  # three times as fast as (?m)^ with one pattern
    return later + cot.str.contains(r"\A" + STEP).cast(pl.UInt32)


@measure(spec="Zeta Reason 5.4")
def ra_ratio(cot_tokens: pl.Expr, answer: pl.Expr) -> pl.Expr:
    """The number of reasoning tokens per answer token.

    >>> evaluate(ra_ratio, cot=["a b c d", "a b c"], answer=["x y", None])
    [2.0, 3.0]
    """
    return cot_tokens / tokens(answer).fill_null(0).clip(lower_bound=1)


@measure(spec="Zeta Reason 5.5")
def self_correcting(cot: pl.Expr) -> pl.Expr:
    """Whether the chain of thought contains a phrase of self-correction, even inside a word.

    >>> evaluate(self_correcting, cot=["Sorry, that is 5", "factually so", "fine", None])
    [True, True, False, None]
    """
    return cot.str.contains(CORRECTION)
