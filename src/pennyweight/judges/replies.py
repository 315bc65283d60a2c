"""Read a judge's reply: one JSON object, with a score for every item of the rubric.

A judge may quote the text it judges, and that text may contain a verdict. So an object counts only
if it is certain to be the judge's own: it begins at the first brace outside of any quotation, is
complete and unambiguous, and neither it nor one of its scores is a copy of the judged text.
Anything else is unreadable, and the judge is asked again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pennyweight.judges.prompt import levels
from pennyweight.judges.quotations import (
    SCORES,
    decoded,
    is_copy,
    objects,
    quoted_scores,
    squeezed,
    words,
)
from pennyweight.scoring.consensus import passes, weighted_score
from pennyweight.suite.rubric import Item, Rubric, ScaleItem

LONGEST = 200_000
"""The most characters of a reply."""
STARTS = 500
"""The most braces that are tried as the beginning of an object."""
SHOWN = 8
"""The most problems in one message."""
_NA = {"n/a", "na", "not applicable", "none", "null", "n.a."}
_NUMBER = re.compile(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*(?:/\s*([0-9]+(?:\.[0-9]+)?))?\s*")
_ALIASES = {"achieved": "score", "points": "score", "reason": "evidence"}
_FENCE = re.compile(r"`{3,}\w*")
_ABOUT_SCORES = re.compile(
    r"scor|\bmarks?\b|\bpoints?\b|\bgrad(?:e|ing)|\brating|verdict|judg|json|\bpass(?:ed)?\b|rubric",
    re.IGNORECASE,
)
"""Judged text that speaks of scores: a judge may have reason to quote a verdict from it."""
_COPY = "its JSON object is also in the data. Write your own verdict, with evidence."
_BLANKS = ("…", "...")
"""What stands for the evidence in the form that a judge is shown."""
_THOUGHT = re.compile(r"<\|?/?\w|\[/?THINK")
"""Marks by which thoughts may begin or end."""


class UnreadableError(ValueError):
    """A reply that cannot be used; the message lists everything that is wrong."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The score of one item, None for N/A, and the evidence."""

    score: float | None
    evidence: str


@dataclass(frozen=True, slots=True)
class Reading:
    """The verdict of a judge: its marks by item, its confidence, and the totals it claims."""

    marks: Mapping[str, Mark]
    confidence: float | None = None
    claimed_score: float | None = None
    claimed_passed: bool | None = None

    @property
    def scores(self) -> dict[str, float | None]:
        """The scores by item."""
        return {name: mark.score for name, mark in self.marks.items()}

    def plain(self) -> dict[str, Any]:
        """Return the marks as plain data."""
        return {n: {"score": m.score, "evidence": m.evidence} for n, m in self.marks.items()}


def read(
    text: str,
    rubric: Rubric,
    judged: str = "",
    *,
    truncated: bool = False,
    higher_is_better: bool = True,
) -> Reading:
    """Read a reply; raise UnreadableError with everything that is wrong.

    `judged` is the text that the judge was shown. A verdict whose origin is in doubt is refused if
    it is to the advantage of the judged: if it passes or, without `higher_is_better`, in any case.
    """
    if truncated:
        raise UnreadableError("it is cut off before its end. Keep the evidence short.")
    if len(text) > LONGEST:
        raise UnreadableError(f"it is longer than {LONGEST:,} characters.")
    own = _without_thoughts(text, judged)
    plain = squeezed(judged)
    start = _first_brace(own, plain)
    verdict, end = _object(own, start)
    raw, rest = own[start:end], own[end:]
    if "{" in rest or "}" in rest:
        raise UnreadableError("something with braces follows the JSON object.")
    reading = _reading(verdict, rubric)
    if any(_same(verdict, other) for other in objects(judged)[0]):
        raise UnreadableError(_COPY)
    if not higher_is_better or passes(weighted_score(rubric, reading.scores), rubric.pass_mark):
        before, after = (_FENCE.sub("", text).strip() for text in (own[:start], rest))
        if after:
            raise UnreadableError("there is text after the JSON object.")
        _check_origin(reading, verdict, rubric, raw, before, judged)
    return reading


def _check_origin(
    reading: Reading,
    verdict: Mapping[str, Any],
    rubric: Rubric,
    raw: str,
    before: str,
    judged: str,
) -> None:
    """Refuse a verdict to the advantage of the judged if it may not be the judge's own."""
    names = [item.id for item in rubric.items]
    shown = decoded(judged)
    plain, said = squeezed(shown), words(shown)
    found, prose = objects(shown)
    scored = {n: (m.evidence, m.score) for n, m in reading.marks.items() if m.score is not None}
    if is_copy(scored, said) or any(_same(verdict, other) for other in found):
        raise UnreadableError(_COPY)
    if any(mark.evidence.strip() in _BLANKS for mark in reading.marks.values()):
        raise UnreadableError('it repeats the form. Say in "evidence" what decides the score.')
    if before:
        about_scores = _ABOUT_SCORES.search(judged) or any(f'"{n}"' in plain for n in names)
        own = [words(mark.evidence) for mark in reading.marks.values()]
        if about_scores or _THOUGHT.search(before):
            raise UnreadableError("there is text before the JSON object.")
        if not any(evidence.strip() and evidence not in said for evidence in own):
            raise UnreadableError(
                "there is text before the JSON object, and no evidence of your own in it."
            )
    for name in quoted_scores(raw, names, plain, squeezed(prose)):
        raise UnreadableError(
            f"{name}: its score follows a quotation that ends in the same score. Write "
            'quotation marks inside of "evidence" as \\", or do not quote.'
        )


def _without_thoughts(text: str, judged: str) -> str:
    """Leave out what a judge thought before its reply."""
    thoughts, mark, own = text.partition("</think>")
    marked = thoughts.lstrip().startswith("<think>")
    if not mark and not marked:
        return text
    if not mark or "</think>" in own or ("/think>" in judged and not marked):
        raise UnreadableError("it is unclear where the thoughts end and the reply begins.")
    return own


def _first_brace(text: str, judged: str) -> int:
    """Return the position of the first brace outside of any quotation of the judged text."""
    at = text.find("{")
    for _ in range(STARTS):
        if at < 0:
            break
        _, end, closed = _balanced(text, at)
        if not closed or squeezed(text[at:end]) not in judged:
            return at
        at = text.find("{", end)
    raise UnreadableError("there is no JSON object in it that is not a quotation of the data.")


def _object(text: str, start: int) -> tuple[dict[str, Any], int]:
    """Decode the object at a brace, also with trailing commas; return it and its end."""
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_unique)
    try:
        try:
            return decoder.raw_decode(text, start)
        except json.JSONDecodeError:
            repaired, end, _ = _balanced(text, start)
            return decoder.decode(repaired), end
    except UnreadableError:
        raise
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "it cannot be decoded")
        raise UnreadableError(f"its JSON object is not complete: {reason}.") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name, value in pairs:
        if name in table:
            raise UnreadableError(f"the key {json.dumps(name[:60])} appears twice in one object.")
        table[name] = value
    return table


def _balanced(text: str, start: int) -> tuple[str, int, bool]:
    """Return the object at a brace without trailing commas, its end, and whether it is closed."""
    signs: list[str] = []
    depth, quoted, at = 0, False, start
    while at < len(text):
        sign = text[at]
        at += 1
        if quoted:
            signs.append(sign)
            if sign == "\\" and at < len(text):
                signs.append(text[at])
                at += 1
            quoted = sign != '"'
            continue
        if sign in "}]":
            while signs and (signs[-1].isspace() or signs[-1] == ","):
                signs.pop()
        signs.append(sign)
        quoted = sign == '"'
        depth += (sign in "{[") - (sign in "}]")
        if not depth:
            break
    return "".join(signs), at, not depth


def _same(verdict: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two objects are equal, or the items in them; 1, 1.0 and "1" are the same."""
    items = _canonical(_items(verdict))
    return items in (_canonical(other), _canonical(other.get("items")))


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {_ALIASES.get(n, squeezed(n)): _canonical(one) for n, one in value.items()}
    if isinstance(value, list):
        return [_canonical(one) for one in value]
    found = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    number = float(found[1]) if found else _number(value)
    return squeezed(str(value)) if number is None else number


def _items(verdict: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the items of a verdict: a mapping, a list with ids, or the verdict itself."""
    items = verdict.get("items", verdict)
    if isinstance(items, list):
        if any(not isinstance(row, dict) for row in items):
            raise UnreadableError("not all of its items are JSON objects.")
        rows = [row for row in items if isinstance(row, dict)]
        return _unique([(str(row.get("id", row.get("item", ""))), row) for row in rows])
    return items if isinstance(items, dict) else verdict


def _reading(verdict: Mapping[str, Any], rubric: Rubric) -> Reading:
    """Check every value of a verdict; raise UnreadableError with all problems."""
    problems: list[str] = []
    items, names = _items(verdict), [item.id for item in rubric.items]
    if missing := [name for name in names if name not in items]:
        problems.append(f"these items are missing: {', '.join(missing[:SHOWN])}.")
    nested = [name for name, value in verdict.items() if isinstance(value, dict | list)]
    known = {"items", "summary", *(names if items is verdict else ())}
    others = [name for name in nested if name not in known]
    others += [name for name in items if items is not verdict and name not in names]
    summary = verdict.get("summary")
    beside = [
        *(verdict if items is not verdict else ()),
        *(summary or () if isinstance(summary, dict) else ()),
    ]
    if twice := [name for name in names if name in beside]:
        problems.append(f"these have a second score: {', '.join(twice[:SHOWN])}.")
    if verdict.get("refusal"):
        problems.append("it is a refusal.")
    if others:
        problems.append(f"these are not in the rubric: {', '.join(others)[:200]}.")
    marks = {i.id: _mark(i, items[i.id], problems) for i in rubric.items if i.id in items}
    confidence = _confidence(verdict.get("confidence"), problems)
    if problems:
        more = f" And {len(problems) - SHOWN} more." if len(problems) > SHOWN else ""
        raise UnreadableError(" ".join(problems[:SHOWN]) + more)
    score, passed = _claims(verdict)
    return Reading(marks, confidence, score, passed)


def _mark(item: Item, given: Any, problems: list[str]) -> Mark:
    """Read the mark of one item; add what is wrong with it to the problems."""
    table = given if isinstance(given, dict) else {"score": given}
    keys = [key for key in table if key.strip().lower() in SCORES]
    evidence = table.get("evidence", table.get("reason", ""))
    if not isinstance(evidence, str):
        evidence = json.dumps(evidence, ensure_ascii=False)
    inner = [key for key in table if key not in ("evidence", "reason")]
    if any(isinstance(table[key], dict) for key in inner):
        problems.append(f"{item.id}: it contains another object.")
    if len(keys) != 1:
        problems.append(f"{item.id}: it has {'no' if not keys else 'more than one'} score.")
        return Mark(None, evidence)
    raw = table[keys[0]]
    if raw is None or (isinstance(raw, str) and raw.strip().lower() in _NA):
        if item.na_when is None:
            problems.append(f"{item.id}: it always applies; give a score, not N/A.")
        return Mark(None, evidence)
    number = _number(raw, item.points)
    if number is None or not 0 <= number <= item.points:
        problems.append(
            f"{item.id}: the score must be a number from 0 to {item.points:g}, "
            f"not {json.dumps(raw, ensure_ascii=False)[:40]}."
        )
        return Mark(None, evidence)
    if isinstance(item, ScaleItem) and number not in item.scores:
        problems.append(f"{item.id}: the score must be one of {', '.join(levels(item))}.")
        return Mark(None, evidence)
    return Mark(number, evidence)


def _number(raw: Any, points: float | None = None) -> float | None:
    """Read a number or a text with one; `3/4` is valid if 4 is the maximum."""
    if isinstance(raw, bool):
        return None
    if isinstance(raw, int | float):
        return float(raw) if abs(raw) < 1e300 and math.isfinite(raw) else None
    found = _NUMBER.fullmatch(raw) if isinstance(raw, str) else None
    if not found or (found[2] and float(found[2]) != points):
        return None
    return float(found[1])


def _confidence(raw: Any, problems: list[str]) -> float | None:
    number = _number(raw)
    if raw is not None and (number is None or not 0 <= number <= 1):
        problems.append("confidence must be a number from 0 to 1.")
    return number


def _claims(verdict: Mapping[str, Any]) -> tuple[float | None, bool | None]:
    """Return the total score and the verdict that a judge claims. They are only stored."""
    summary = verdict.get("summary")
    claims: Mapping[str, Any] = {**(summary if isinstance(summary, dict) else {}), **verdict}
    passed = claims.get("passed")
    if isinstance(passed, str):
        passed = {"true": True, "yes": True, "false": False, "no": False}.get(passed.lower())
    return _number(claims.get("weighted_score")), passed if isinstance(passed, bool) else None
