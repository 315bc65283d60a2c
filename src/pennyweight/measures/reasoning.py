"""The shape of one chain of thought."""

from __future__ import annotations

from typing import Any

import polars as pl

from pennyweight.define import measure
from pennyweight.text.equations import SIGNS, equations
from pennyweight.text.extraction import AnswerRule
from pennyweight.text.extraction import cot as find_cot
from pennyweight.text.rational import written
from pennyweight.text.thinking import spoken
from pennyweight.text.tokens import tokens

STEP = r"[^\S\r\n]*(?:\d+\.|-|\*)[^\S\r\n]"
"""How a step line begins; a match never leaves its line, which ends at \\n, \\r\\n or \\r."""

STEP_OR_NAMED = r"[^\S\r\n]*(?:(?:\d+[.)]|[-*•])[^\S\r\n]|[#*_ \t]*(?i:step)[^\S\r\n]+\d+\b)"
"""How a line of a step begins, also `Step 1:`, `### Step 1` and `1)`."""

BACKTRACKING = (
    r"(?i)\b(?:wait|hold on|hmm|oops|scratch that|on second thou?ght|let me (?:re-?)?"
    r"(?:check|verify|think again|reconsider|recalculate|recompute|redo|start over)|double[- ]check"
    r"|that(?:'s| is| can(?:no|'|’)t be)(?: not)? (?:wrong|right|correct)|actually|i made a mistake"
    r"|correction|let me fix)\b"
)
"""Phrases with which models question what they wrote, each as whole words."""

_NUMBER = r"-?\d+(?:\.\d+)?"

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
    return _lines(cot, STEP)


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


@measure(unit="steps", spec="Pennyweight; Zeta Reason 5.3")
def steps(cot: pl.Expr) -> pl.Expr:
    r"""The number of steps: lines that start with a number, a bullet or `Step 1`.

    Unlike `step_count`, which the specification defines, it knows `Step 1:`, `### Step 1` and `1)`.

    >>> evaluate(steps, cot=["Step 1: add\n**Step 2:** halve", "1) add\n2. halve", "no steps"])
    [2, 2, 0]
    """
    return _lines(cot, STEP_OR_NAMED)


def _lines(text: pl.Expr, start: str) -> pl.Expr:
    """Count the lines that start like this: three times as fast as (?m)^ with one pattern."""
    later = text.str.count_matches(r"[\r\n]" + start)
    return later + text.str.contains(r"\A" + start).cast(pl.UInt32)


@measure(spec="Pennyweight; Zeta Reason 5.5")
def backtracking(cot: pl.Expr) -> pl.Expr:
    """Whether the chain of thought questions itself: wait, let me check, actually, and so on.

    Unlike `self_correcting`, which the specification defines, it looks for whole words.

    >>> evaluate(backtracking, cot=["Wait, that is 5.", "factually so", "Let me double-check."])
    [True, False, True]
    """
    return cot.str.contains(BACKTRACKING)


_CHECKED = pl.Struct(
    {"readable": pl.Int64, "wrong": pl.Int64, "first_wrong": pl.Int64, "last": pl.String}
)


@measure(spec="Zeta Reason 8")
def equation_check(cot: pl.Expr) -> pl.Expr:
    """The equations of the chain of thought: how many are `readable`, how many of them `wrong`.

    `first_wrong` is the number of the first wrong one, counted from 1, and `last` the value that
    the last one states. Null without a chain of thought.

    >>> evaluate(equation_check, cot=["2 + 2 = 5, then 5 * 3 = 15."])
    [{'readable': 2, 'wrong': 1, 'first_wrong': 1, 'last': '15'}]
    """
    return cot.map_batches(_checked, return_dtype=_CHECKED, is_elementwise=True)


_NONE_READ = {"readable": 0, "wrong": 0, "first_wrong": None, "last": None}


def _checked(cots: pl.Series) -> pl.Series:
    sides = cots.str.contains(SIGNS).fill_null(value=False)
    places = sides.arg_true().filter(cots.filter(sides).str.contains(r"\d"))
    if places.is_empty():  # building rows would take longer than looking for equations
        nothing = pl.lit(_NONE_READ, dtype=_CHECKED)
        return pl.select(pl.when(cots.is_not_null()).then(nothing).alias(cots.name)).to_series()
    rows: list[Any] = [_NONE_READ if cot is not None else None for cot in cots]
    for place in places:
        found = equations(cots[place])
        wrong = [number for number, one in enumerate(found, start=1) if not one.holds]
        if found:
            rows[place] = {
                "readable": len(found),
                "wrong": len(wrong),
                "first_wrong": wrong[0] if wrong else None,
                "last": written(found[-1].value),
            }
    return pl.Series(cots.name, rows, dtype=_CHECKED)


@measure(unit="equations", spec="Zeta Reason 8")
def readable_equations(equation_check: pl.Expr) -> pl.Expr:
    """The number of equations in the chain of thought that can be read and checked.

    >>> evaluate(readable_equations, cot=["2 + 2 = 4 and 2x = 8", "no equation", None])
    [1, 0, None]
    """
    return equation_check.struct.field("readable")


@measure(unit="equations", spec="Zeta Reason 8")
def wrong_equations(equation_check: pl.Expr) -> pl.Expr:
    """The number of readable equations that do not hold.

    >>> evaluate(wrong_equations, cot=["2 + 2 = 5", "2 + 2 = 4", None])
    [1, 0, None]
    """
    return equation_check.struct.field("wrong")


@measure(spec="Zeta Reason 8")
def first_wrong_equation(equation_check: pl.Expr) -> pl.Expr:
    """The number of the first equation that does not hold, among those that can be read.

    >>> evaluate(first_wrong_equation, cot=["1 + 1 = 2, 2 + 2 = 5, 3 + 3 = 7", "1 + 1 = 2"])
    [2, None]
    """
    return equation_check.struct.field("first_wrong")


@measure(spec="Zeta Reason 8")
def answer_follows(equation_check: pl.Expr, answer: pl.Expr) -> pl.Expr:
    """Whether the final answer is the value that the last readable equation states.

    Null without such an equation, or if the answer does not have exactly one number.

    >>> evaluate(answer_follows, cot=["6 * 7 = 42", "6 * 7 = 42"], answer=["$42", "24 apples"])
    [True, False]
    """
    last = equation_check.struct.field("last")
    compared = pl.when(last.is_not_null()).then(answer)
    numbers = compared.str.replace_all(r"(\d),(\d{3})\b", "$1$2").str.extract_all(_NUMBER)
    number = pl.when(numbers.list.len() == 1).then(numbers.list.first())
    stated = last.str.split_exact("/", 1).struct
    top, bottom = (stated.field(f"field_{i}").cast(pl.Float64, strict=False) for i in (0, 1))
    value = top / bottom.fill_null(1.0)
    given = number.cast(pl.Float64, strict=False)
    return (given - value).abs() <= 1e-9 * pl.max_horizontal(given.abs(), value.abs(), 1e-9)


@measure(spec="Pennyweight")
def cut_in_thought(truncated: pl.Expr, response: pl.Expr, reasoning: pl.Expr) -> pl.Expr:
    """Whether the token limit cut the attempt while it was still thinking: it says nothing else.

    >>> evaluate(cut_in_thought, truncated=[True, True, False], response=["", "So 4", ""],
    ...          reasoning=["Let me see", "Let me see", "x"])
    [True, False, False]
    """
    silent = spoken(response).fill_null("").str.strip_chars() == ""
    thinking = reasoning.is_not_null() | response.str.contains(r"(?i)<think").fill_null(value=False)
    return pl.when(truncated.is_not_null()).then(truncated & silent & thinking)
