"""The position of the final answer in a response, according to the rule that extracted it.

Patterns run in Polars, in linear time, because a response may be hostile. Python's regular
expressions only search for simple things.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation

import polars as pl

from pennyweight.text import extraction as extract
from pennyweight.text.confidence import UNSTATED
from pennyweight.text.extraction import AnswerRule
from pennyweight.text.scanning import json_path, last_boxed, last_json

Span = tuple[int, int]

_TAG = re.compile(r"(?i)<(/?)think(?:ing)?>")
LONGEST = 500
"""The longest sign, in characters, that is searched for a letter."""
_NUMBER = re.compile(r"[-−]?[0-9][0-9,]*(?:\.[0-9]+)?")


def place(response: str, answer: str | None, rule: AnswerRule | None) -> tuple[int, int] | None:
    r"""Return where an answer is in a response; None if the response does not show it.

    >>> from pennyweight.text.extraction import AnswerRule
    >>> place("FINAL_ANSWER: 4\nConfidence: 94%", "4", AnswerRule())
    (14, 15)
    >>> place("It costs $1,000.", "1000", None)
    (10, 15)
    """
    if not answer:
        return None
    text = _blank(response)
    if rule is not None:
        if rule.but_confidence and rule.kind not in extract.LITERAL:
            text = _unstated(text)
        found = _PLACES[rule.kind](text, answer, rule.value)
        if found is not None:
            return found
    return _anywhere(text, answer)


def _blank(response: str) -> str:
    """Replace thoughts by blanks, so that everything else keeps its position."""
    spans: list[Span] = []
    begun: int | None = None
    for tag in _TAG.finditer(response):
        if tag[1]:
            spans = [*spans, (begun, tag.end())] if begun is not None else [(0, tag.end())]
            begun = None
        elif begun is None:
            begun = tag.start()
    if begun is not None:
        spans.append((begun, len(response)))
    pieces, done = [], 0
    for start, end in spans:
        pieces += [response[done:start], " " * (end - start)]
        done = end
    return "".join([*pieces, response[done:]])


def _unstated(text: str) -> str:
    """Replace a stated confidence by blanks."""
    done = 0
    pieces = []
    for words in _all(UNSTATED, text):
        at = text.find(words, done)
        pieces += [text[done:at], " " * len(words)]
        done = at + len(words)
    return "".join([*pieces, text[done:]])


def _after(text: str, answer: str, start: int) -> Span | None:
    at = text.find(answer, max(start, 0))
    return (at, at + len(answer)) if at >= 0 else None


def _marker(text: str, answer: str, marker: str) -> Span | None:
    head = _all(f"(?is)^.*{extract.marker_pattern(marker)}", text)
    return _after(text, answer, len(head[0])) if head else None


def _all(pattern: str, text: str) -> list[str]:
    return pl.Series([text]).str.extract_all(pattern).to_list()[0] or []


def _regex(text: str, answer: str, pattern: str) -> Span | None:
    before = extract.before(pl.Series([text]), extract.AnswerRule("regex", pattern))[0]
    return None if before is None else _after(text, answer, len(before))


def _last_regex(text: str, answer: str, pattern: str) -> Span | None:
    before = extract.before(pl.Series([text]), extract.AnswerRule("last_regex", pattern))[0]
    return None if before is None else _after(text, answer, len(before))


def _last_line(text: str, answer: str, _: str) -> Span | None:
    trimmed = text.rstrip()
    return _after(text, answer, trimmed.rfind("\n") + 1)


def _last_number(text: str, answer: str, _: str) -> Span | None:
    digits = answer.lstrip("-−")
    at = text.rfind(digits)
    if at < 0:
        return None
    start = at
    if digits != answer:
        start = max(text.rfind(sign, 0, at) for sign in "-−")
        start = start if start >= 0 and at - start <= 3 else at
    return start, at + len(digits)


def _choice(text: str, answer: str, letters: str) -> Span | None:
    """Find the letter by the first pattern that matches, as the rule does."""
    for position, pattern in zip(_WHERE, extract.choice_patterns(letters), strict=True):
        if signs := _all(pattern, text):
            sign = signs[-1]
            letter = re.search(pattern, sign) if len(sign) <= LONGEST else None
            if letter is None or letter[1].upper() != answer.upper():
                return None
            at = position(text, sign)
            return at + letter.start(1), at + letter.end(1)
    return None


def _line(text: str, sign: str) -> int:
    """Find the last line that consists of this text."""
    at = text.rfind(sign)
    while at > 0 and (text[at - 1] != "\n" or text[at + len(sign) : at + len(sign) + 1].strip()):
        at = text.rfind(sign, 0, at + len(sign) - 1)
    return max(at, 0)


_WHERE: tuple[Callable[[str, str], int], ...] = (str.rfind, str.rfind, _line, str.find)
"""How the sign of each pattern is located: the last, the last line, the first."""


def _boxed(text: str, answer: str, _: str) -> Span | None:
    found = last_boxed(text)
    return _after(text, answer, text.find("{", found[1])) if found else None


def _json(text: str, answer: str, path: str) -> Span | None:
    steps = json_path(path)
    found = last_json(text, steps)
    if not found:
        return None
    start = found[1]
    for step in steps:
        named = text.find(f'"{step}"', start) if isinstance(step, str) else -1
        start = named + len(f'"{step}"') if named >= 0 else start
    return _after(text, answer, start)


def _anywhere(text: str, answer: str) -> Span | None:
    """Find the last occurrence of an answer as a word, or of the same number as digits."""
    start = r"(?<!\w)" if answer[0].isalnum() else ""
    end = r"(?!\w|[.,]\d)" if answer[-1].isalnum() else ""
    words = [match.span() for match in re.finditer(start + re.escape(answer) + end, text)]
    if words:
        return words[-1]
    wanted = _value(answer)
    numbers = _NUMBER.finditer(text) if wanted is not None else ()
    same = [match.span() for match in numbers if _value(match[0]) == wanted]
    return same[-1] if same else None


def _value(text: str) -> Decimal | None:
    try:
        found = Decimal(text.replace(",", "").replace("−", "-").strip())
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


_PLACES: dict[str, Callable[[str, str, str], Span | None]] = {
    "marker": _marker,
    "regex": _regex,
    "last_regex": _last_regex,
    "last_line": _last_line,
    "last_number": _last_number,
    "boxed": _boxed,
    "choice": _choice,
    "json": _json,
    "reply": lambda text, answer, _: _after(text, answer, 0),
}
