"""Extract the final answer from a response, and the chain of thought before it.

Each is an expression over a column of responses. Internally it processes a batch step by step,
because Polars would compute a shared part twice. Regular expressions run in linear time; what they
cannot express (nested braces, JSON) is a plain function that makes one pass.

The text between `<think>` and `</think>` is reasoning: the final answer is searched outside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import polars as pl

from pennyweight.errors import UsageError
from pennyweight.text.confidence import unstated
from pennyweight.text.rules import check_regex, groups, named, rule_schema
from pennyweight.text.scanning import Found, json_path, last_boxed, last_json
from pennyweight.text.thinking import choose, keep_where, thought, without_thoughts

MARKER = "FINAL_ANSWER:"
LETTERS = "A-E"

KINDS: dict[str, str] = {
    "marker": "the rest of the line after the last such marker",
    "regex": "the first match of a regular expression: its first group with text, or all of it",
    "last_regex": "the last match of a regular expression: its first group with text, or all of it",
    "last_line": "the last line that is not blank",
    "last_number": "the last number, without currency and percent signs",
    "boxed": r"what is inside the last \boxed{…}",
    "choice": "the letter of a multiple-choice answer",
    "json": "a value inside JSON in the response, by its path",
    "reply": "the whole response as it is, with its white space",
}
LITERAL = ("regex", "last_regex", "json", "reply")
"""The kinds that define where an answer ends."""
_DEFAULTS = {"marker": MARKER, "choice": LETTERS}
_EXAMPLES = {
    "marker": MARKER,
    "regex": "'answer: (.*)'",
    "last_regex": "'[0-9]+'",
    "choice": "A-J",
    "json": "$.answer",
}
"""The kinds that take a value, each with an example."""


@dataclass(frozen=True, slots=True)
class AnswerRule:
    """How the final answer is extracted from a response."""

    kind: str = "marker"
    value: str = MARKER
    """The marker, the pattern, the letters or the path; empty if none is needed."""
    but_confidence: bool = field(default=False, repr=False)
    """Whether a stated confidence is removed from the answer, because it is read separately.

    It does not affect patterns and paths, which define their answer themselves.
    """

    @classmethod
    def parse(cls, given: object) -> AnswerRule:
        """Read a rule from a suite (`{marker: "X:"}`) or an option (`marker=X:`).

        >>> AnswerRule.parse("marker=ANSWER:") == AnswerRule.parse({"marker": "ANSWER:"})
        True
        >>> AnswerRule.parse("last_number")
        AnswerRule(kind='last_number', value='')
        """
        kind, value = named(given, KINDS, "The way to find an answer")
        if value is None:
            value = _DEFAULTS.get(kind, "")
        if not isinstance(value, str):
            raise UsageError(f"{kind} needs text, not {value!r}.")
        if not value.strip() and kind in _EXAMPLES:
            raise UsageError(f"{kind} needs a value, as in {kind}={_EXAMPLES[kind]}.")
        if value and kind not in _EXAMPLES:
            raise UsageError(f"{kind} takes no value; write only {kind!r}.")
        if kind in {"regex", "last_regex"}:
            check_regex(value)
        if kind == "json":
            json_path(value)
        if kind == "choice" and not re.fullmatch("[A-Z](-[A-Z])?", value):
            raise UsageError(f"choice takes a range of letters such as A-J, not {value!r}.")
        return cls(kind, value)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> AnswerRule:
        """Return the rule in the settings of a run."""
        return cls(**settings.get("answer", {})).with_confidence(settings.get("confidence"))

    def with_confidence(self, confidence: str | None) -> AnswerRule:
        """Return the rule for a setting of `confidence`: a stated one is not part of the answer."""
        return replace(self, but_confidence=True) if confidence == "stated" else self

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON schema of what `parse` reads."""
        return rule_schema(KINDS, {kind: {"type": "string"} for kind in _EXAMPLES})


@dataclass(frozen=True, slots=True)
class Parts:
    """Responses split into the answers and, computed on demand, the text before each."""

    answer: pl.Series
    before: Callable[[], pl.Series]


def answer(response: pl.Expr, rule: AnswerRule) -> pl.Expr:
    r"""Extract the final answer; null if there is none.

    >>> reply = pl.lit("So 40 + 2.\n**Final_Answer:** `42`.")
    >>> pl.select(answer(reply, AnswerRule())).item()
    '42'
    """
    return response.map_batches(
        lambda text: _answers(text, rule), return_dtype=pl.String, is_elementwise=True
    )


def cot(response: pl.Expr, reasoning: pl.Expr, rule: AnswerRule) -> pl.Expr:
    r"""Return the chain of thought: the reasoning channel, then the text before the final answer.

    A response without a final answer is all thought. Null if there is no thought.

    >>> reply = pl.lit("<think>40 + 2</think>Easy.\nFINAL_ANSWER: 42")
    >>> pl.select(cot(reply, pl.lit(None, dtype=pl.String), AnswerRule())).item()
    '40 + 2\nEasy.'
    """
    both = pl.struct(response.alias("response"), reasoning.alias("reasoning"))
    return both.map_batches(
        lambda pairs: _thoughts(pairs.struct.unnest(), rule),
        return_dtype=pl.String,
        is_elementwise=True,
    )


def before(text: pl.Series, rule: AnswerRule) -> pl.Series:
    """Return the text before each final answer, for texts without thoughts."""
    return _FINDERS[rule.kind](text, rule.value).before()


def _answers(response: pl.Series, rule: AnswerRule) -> pl.Series:
    if response.null_count() == len(response):
        return response.cast(pl.String)
    found = _FINDERS[rule.kind](_read(response, rule), rule.value).answer
    return keep_where(found != "", found) if rule.kind == "reply" else _filled(found)


def _thoughts(frame: pl.DataFrame, rule: AnswerRule) -> pl.Series:
    response, reasoning = (frame[name].cast(pl.String) for name in ("response", "reasoning"))
    if response.null_count() == len(response):
        return _filled(reasoning)
    text = _read(response, rule)
    found = _FINDERS[rule.kind](text, rule.value)
    head = choose(found.answer.is_null(), text, found.before())
    parts = [_filled(part) for part in (reasoning, thought(response), head)]
    return _filled(pl.select(pl.concat_str(parts, separator="\n", ignore_nulls=True)).to_series())


def _read(response: pl.Series, rule: AnswerRule) -> pl.Series:
    """Return the part of a response that may contain an answer."""
    text = without_thoughts(response)
    return unstated(text) if rule.but_confidence and rule.kind not in LITERAL else text


def _filled(text: pl.Series) -> pl.Series:
    """Strip a text; an empty text becomes null."""
    stripped = text.str.strip_chars()
    return keep_where(stripped != "", stripped)


# --- one finder for each kind --------------------------------------------------------------------

_CURRENCY = r"[$€£¥₹]"
_UNSIGNED = r"(?:[0-9]+(?:,[0-9]+)*(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_THOUSANDS = r"^[0-9]{1,3}(?:,[0-9]{3})+(?:[.eE]|$)"
_ONE = rf"\\?{_CURRENCY}?\s?{_UNSIGNED}"
_CHAIN = rf"(?:[\p{{L}}\p{{N}}_)\]][-−–])?[-−]?\\?{_CURRENCY}?[-−]?{_UNSIGNED}(?:[-−–]{_ONE})*"
_NEGATIVE = rf"^(?:[-−]\\?{_CURRENCY}?|\\?{_CURRENCY}[-−]){_UNSIGNED}$"


def _marker(text: pl.Series, marker: str) -> Parts:
    """Split at the last marker, ignoring case and Markdown around it.

    If nothing follows the marker on its line, the answer is the next line that is not blank.
    """
    pattern = marker_pattern(marker)
    head = text.str.extract_all(rf"(?is)^.*{pattern}").list.first()
    rest = text.str.strip_prefix(head).str.strip_chars_start(" \t\r\n*`_")
    return Parts(
        _tidy(_first_part(rest, "\n")), lambda: head.str.replace(rf"(?i)[\s*`_#>]*{pattern}$", "")
    )


@lru_cache
def marker_pattern(marker: str) -> str:
    r"""Allow Markdown inside and around a marker: `**Final\_Answer**:`."""
    words = marker.strip()
    body = words.rstrip(":：").rstrip()
    colon = r"[ \t]*[*`_]{0,3}[ \t]*[:：]" if body != words and body else ""
    escaped = re.escape(body if colon else words).replace("_", r"\\?_").replace(r"\ ", r"[ \t]+")
    return escaped + colon


def _first_part(text: pl.Series, end: str | pl.Series) -> pl.Series:
    frame = pl.DataFrame(
        {"text": text, "end": end}, schema_overrides={"text": pl.String, "end": pl.String}
    )
    return frame.select(pl.col("text").str.splitn(pl.col("end"), 2)).to_series().struct[0]


_SENTENCE_END = (
    r"((?:^|\s)(?:[^\s.]*[\p{L}\p{N}%)\]}\"'”’*`]|[-−+$€£¥]*[0-9][0-9,]*\.[0-9]+%?[)*`]*))\.$"
)


def _tidy(line: pl.Series) -> pl.Series:
    """Remove Markdown and the period that ends a sentence.

    A period that may belong to the last word is kept: `U.S.` and `a.m.` keep theirs; `Paris.`,
    `42.` and `3.14.` lose it.
    """
    bare = line.str.strip_chars().str.strip_chars("*`").str.strip_chars()
    ended = bare.str.replace(_SENTENCE_END, "${1}")
    return ended.str.strip_chars("*`").str.strip_chars()


def _regex(text: pl.Series, pattern: str) -> Parts:
    found = _group(text, pattern)

    def before() -> pl.Series:
        match = text.str.extract(pattern, 0)
        return _first_part(text, keep_where(match != "", match))

    return Parts(found, before)


def _last_regex(text: pl.Series, pattern: str) -> Parts:
    match = text.str.extract_all(pattern).list.last()
    return Parts(_group(match, pattern), lambda: _before_last(text, match))


def _group(text: pl.Series, pattern: str) -> pl.Series:
    """Return the first group of the first match that has text; all of it without groups."""
    if groups(pattern) < 2:
        return text.str.extract(pattern, groups(pattern))
    found = text.to_frame("text").select(pl.col("text").str.extract_groups(pattern).alias("groups"))
    parts = found.unnest("groups")
    return parts.select(pl.coalesce(pl.when(pl.all() != "").then(pl.all()))).to_series()


def _reply(text: pl.Series, _: str) -> Parts:
    return Parts(text, lambda: keep_where(text.is_null(), text))


def _last_line(text: pl.Series, _: str) -> Parts:
    trimmed = text.str.strip_chars()
    line = trimmed.str.extract_all(r"[^\n]*$").list.first()
    return Parts(_tidy(line), lambda: trimmed.str.strip_suffix(line))


def _last_number(text: pl.Series, _: str) -> Parts:
    """Return the last number. A minus sign belongs to it unless it joins two things (`5-3`, `x-3`).

    Commas between groups of three digits are part of the number, all others separate numbers.
    """
    chain = text.str.extract_all(_CHAIN).list.last()
    run = chain.str.extract_all(_UNSIGNED).list.last()
    listed = run.str.contains(",", literal=True) & ~run.str.contains(_THOUSANDS)
    number = choose(listed, run.str.replace("^.*,", ""), run)
    negative = chain.str.contains(_NEGATIVE) & ~listed
    return Parts(choose(negative, "-" + number, number), lambda: _before_last(text, chain))


def _choice(text: pl.Series, letters: str) -> Parts:
    r"""Return the letter from the most reliable pattern that matches.

    In this order: the last "answer is B" or "Answer: B"; the last `\boxed{B}`, `(B)`, `[B]` or
    `**B**`; the last line that is only a letter; a letter with `)`, `.` or `:` at the very start.
    """
    patterns = choice_patterns(letters)
    signs = [text.str.extract_all(p).list.last() for p in patterns]
    found = [s.str.extract(p, 1) for s, p in zip(signs, patterns, strict=True)]
    several = signs[0].str.extract(patterns[0], 2).is_not_null()
    found[0] = choose(several, pl.Series([""]), found[0])  # "A, B": none of them is chosen
    letter = pl.select(pl.coalesce(found).str.to_uppercase()).to_series()
    return Parts(letter, lambda: _before_last(text, pl.select(pl.coalesce(signs)).to_series()))


@lru_cache
def choice_patterns(letters: str) -> tuple[str, ...]:
    """Return the patterns of a chosen letter, the most reliable first."""
    low = letters.lower()
    wrap = r"""[\s*_"'`(\[{$\\]*(?:boxed\{)?(?:\\?text\{)?[(\[]?"""
    says = r"(?i:answer|option|choice)[*_`]*(?i:\s+is|\s+would\s+be)?[*_`]*\s*[:：=]?"
    # "A" is also a word: after it must come what ends a letter, not another word
    ends = r"""(?:[)\].:,;*_"'`}$\\]|\s*$|\s*\n|\s+(?i:because|since|as|is)\b)"""
    bracket = rf"(?:\\boxed\{{(?:\\text\{{)?\(?|\(|\[|\*\*\(?)([{letters}])[).:]*(?:\}}|\)|\]|\*\*)"
    # a second letter, as in "A, B" or "(A) and (B)"
    more = (
        rf"""[)\].*_"'`}}$\\]*\s*(?:[,;/&+]|\b(?:and|or)\b)\s*(?:(?:and|or)\s+)?[(\[*]*([{letters}])"""
        r"(?:[)\],;:*_/&+}$]|\.?\s*$|\.?\s*\n|\s+(?:and|or)\b)"
    )
    return (
        rf"{says}{wrap}([{letters}{low}])(?:{more}|{ends})",
        bracket,
        rf"(?m)^[ \t*`]*\(?([{letters}{low}])[).:]?[ \t\r*`]*$",
        rf"^[\s*`]*\(?([{letters}])[).:]",
    )


def _boxed(text: pl.Series, _: str) -> Parts:
    return _scanned(keep_where(text.str.contains(r"\boxed", literal=True), text), last_boxed)


def _json(text: pl.Series, path: str) -> Parts:
    steps = json_path(path)
    holding = keep_where(text.str.contains(r"[{\[]"), text)
    return _scanned(holding, lambda value: last_json(value, steps))


def _scanned(text: pl.Series, find: Callable[[str], Found | None]) -> Parts:
    """Extract the answers with a plain function over the rows that need it."""
    found = [None if value is None else find(value) for value in text]

    def before() -> pl.Series:
        cut = [value[: f[1]] if value and f else None for value, f in zip(text, found, strict=True)]
        return pl.Series(cut, dtype=pl.String)

    return Parts(pl.Series([f[0] if f else None for f in found], dtype=pl.String), before)


def _before_last(text: pl.Series, sign: pl.Series) -> pl.Series:
    """Return the text before the last occurrence of another; no expression searches backwards."""
    pairs = zip(text, sign, strict=True)
    cut = [None if t is None or s is None else t[: max(t.rfind(s), 0)] for t, s in pairs]
    return pl.Series(cut, dtype=pl.String)


_FINDERS: dict[str, Callable[[pl.Series, str], Parts]] = {
    "marker": _marker,
    "regex": _regex,
    "last_regex": _last_regex,
    "last_line": _last_line,
    "last_number": _last_number,
    "boxed": _boxed,
    "choice": _choice,
    "json": _json,
    "reply": _reply,
}
