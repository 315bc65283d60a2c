"""Read a judge's reply: find the JSON wherever it stands, and check every score in it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pennyweight.suite.rubric import Item, Rubric

LONGEST = 200_000
"""How many characters of a reply are searched, from its end."""
STARTS, REPAIRS = 500, 20
"""How many braces are tried as the beginning of an object, and how many are mended."""
TOLD = 8
_NA = {"n/a", "na", "not applicable", "none", "null", "n.a."}
_NUMBER = re.compile(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*(?:/\s*([0-9]+(?:\.[0-9]+)?))?\s*")
_DECODER = json.JSONDecoder(strict=False)


class UnreadableError(ValueError):
    """A reply that cannot be used; says everything that is wrong with it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What a judge gave one item; no score is N/A."""

    score: float | None
    evidence: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a judge said: its marks by item, its confidence, and what it claims they add up to."""

    marks: Mapping[str, Mark]
    confidence: float | None = None
    claimed_score: float | None = None
    claimed_passed: bool | None = None

    @property
    def scores(self) -> dict[str, float | None]:
        """The scores alone."""
        return {name: mark.score for name, mark in self.marks.items()}

    def plain(self) -> dict[str, Any]:
        """Give the marks as plain data."""
        return {n: {"score": m.score, "evidence": m.evidence} for n, m in self.marks.items()}


def read(text: str, rubric: Rubric, *, truncated: bool = False) -> Reading:
    """Read a reply; raises UnreadableError with all that is wrong.

    A judge may quote what it judges, and that may hold a judgment. So one that was cut off, or
    that stands beside another, is not taken for the judge's own.
    """
    if truncated:
        raise UnreadableError("it is cut off before its end. Keep the evidence short.")
    text = _said(text)[-LONGEST:]
    best, end = _best(text, rubric)
    if best is None:
        raise UnreadableError("there is no complete JSON object in it.")
    if _goes_on(text, end, [item.id for item in rubric.items]):
        raise UnreadableError("a JSON object that is not complete follows the complete one.")
    problems: list[str] = []
    given = _given(best)
    missing = [name for name in (i.id for i in rubric.items) if name not in given]
    if missing:
        problems.append(f"these items are missing: {', '.join(missing[:TOLD])}.")
    marks = {
        item.id: _mark(item, given[item.id], problems) for item in rubric.items if item.id in given
    }
    confidence = _confidence(best.get("confidence"), problems)
    if problems:
        more = f" And {len(problems) - TOLD} more." if len(problems) > TOLD else ""
        raise UnreadableError(" ".join(problems[:TOLD]) + more)
    score, passed = _claims(best)
    return Reading(marks, confidence, score, passed)


def _said(text: str) -> str:
    """Leave out what a judge thought before it spoke."""
    thought, mark, rest = text.partition("</think>")
    return rest if mark and thought.lstrip().startswith("<think>") else text


def _best(text: str, rubric: Rubric) -> tuple[dict[str, Any] | None, int]:
    """Find the object that holds most items, the last of equals, and where it ends."""
    names = [item.id for item in rubric.items]
    best, most, end = None, -1, 0
    whole: list[Any] = []
    for found, stop in objects(text):
        given = _given(found)
        held = sum(name in given for name in names)
        if held == len(names):
            marks = [_mark(item, given[item.id], []).score for item in rubric.items]
            whole.append((marks, found.get("confidence")))
        if held >= most:
            best, most, end = found, held, stop
    if any(one != whole[0] for one in whole):
        raise UnreadableError("it holds several JSON objects with other scores.")
    return best, end


def _goes_on(text: str, end: int, names: Sequence[str]) -> bool:
    """Whether something follows that is an object cut off, or a judgment that is no JSON."""
    at = text.find("{", end)
    while at >= 0:
        value, stop = _decoded(text, at)
        if not isinstance(value, dict):
            kept, stop, closed = _without_trailing_commas(text, at)
            if not closed or any(f'"{name}"' in kept or f"'{name}'" in kept for name in names):
                return True
        at = text.find("{", stop)
    return False


def objects(text: str) -> Iterator[tuple[dict[str, Any], int]]:
    r"""Find the JSON objects in a text: after prose, in code fences, with trailing commas.

    >>> list(objects('Well {maybe}: ```json\n{"a": "}", "b": [1,],}\n``` done'))
    [({'a': '}', 'b': [1]}, 44)]
    """
    at, repairs = text.find("{"), REPAIRS
    for _ in range(STARTS):
        if at < 0:
            return
        value, end = _decoded(text, at)
        if end < 0 and repairs:
            repairs -= 1
            value, end = _repaired(text, at)
        if isinstance(value, dict):
            yield value, end
            at = text.find("{", end)
        else:
            at = text.find("{", at + 1)


def _decoded(text: str, start: int) -> tuple[Any, int]:
    """Decode the object that begins here; its end is -1 where a comma may be what is wrong."""
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        near = text[error.pos : error.pos + 1] in {"}", "]"}
        comma = text[max(start, error.pos - 80) : error.pos].rstrip().endswith(",")
        return None, -1 if near or comma or text[error.pos : error.pos + 1] == "," else start
    except (ValueError, RecursionError):
        return None, start


def _repaired(text: str, start: int) -> tuple[Any, int]:
    kept, end, _ = _without_trailing_commas(text, start)
    try:
        return _DECODER.decode(kept), end
    except (ValueError, RecursionError):
        return None, start


def _without_trailing_commas(text: str, start: int) -> tuple[str, int, bool]:
    """Take a balanced object out of a text, and the commas before closing brackets out of it.

    Gives where it ends, too, and whether it is closed there.
    """
    kept: list[str] = []
    depth, quoted, at = 0, False, start
    while at < len(text):
        sign = text[at]
        at += 1
        if quoted:
            kept.append(sign)
            if sign == "\\" and at < len(text):
                kept.append(text[at])
                at += 1
            quoted = sign != '"'
            continue
        if sign in "}]":
            while kept and (kept[-1].isspace() or kept[-1] == ","):
                kept.pop()
        kept.append(sign)
        quoted = sign == '"'
        depth += (sign in "{[") - (sign in "}]")
        if not depth:
            break
    return "".join(kept), at, not depth


def _given(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Find the items in an object: a mapping, a list with ids, or the object itself."""
    items = found.get("items", found)
    if isinstance(items, list):
        rows = [one for one in items if isinstance(one, dict)]
        return {str(one.get("id", one.get("item", ""))): one for one in rows}
    return items if isinstance(items, dict) else found


def _mark(item: Item, given: Any, problems: list[str]) -> Mark:
    """Read what one item got; what is wrong with it is added to the problems."""
    table = given if isinstance(given, dict) else {"score": given}
    key = next((k for k in ("score", "achieved", "points") if k in table), None)
    evidence = table.get("evidence", table.get("reason", ""))
    said = evidence if isinstance(evidence, str) else json.dumps(evidence, ensure_ascii=False)
    if key is None:
        problems.append(f"{item.id}: it has no score.")
        return Mark(None, said)
    raw = table[key]
    if raw is None or (isinstance(raw, str) and raw.strip().lower() in _NA):
        if item.na_when is None:
            problems.append(f"{item.id}: it always applies; give a score, not N/A.")
        return Mark(None, said)
    number = _number(raw, item.points)
    if number is None or not 0 <= number <= item.points:
        problems.append(
            f"{item.id}: the score must be a number from 0 to {item.points:g}, "
            f"not {json.dumps(raw, ensure_ascii=False)[:40]}."
        )
        return Mark(None, said)
    return Mark(number, said)


def _number(raw: Any, points: float | None = None) -> float | None:
    """Read a number, also where it is written as text; `3/4` only if 4 is what there is."""
    if isinstance(raw, bool):
        return None
    if isinstance(raw, int | float):
        return float(raw) if abs(raw) < 1e300 and math.isfinite(raw) else None
    found = _NUMBER.fullmatch(raw) if isinstance(raw, str) else None
    if not found or (found[2] and float(found[2]) != points):
        return None
    return float(found[1])


def _confidence(raw: Any, problems: list[str]) -> float | None:
    if raw is None:
        return None
    number = _number(raw)
    if number is None or not 0 <= number <= 1:
        problems.append("confidence must be a number from 0 to 1.")
    return number


def _claims(found: Mapping[str, Any]) -> tuple[float | None, bool | None]:
    """Take what a judge says the whole comes to; wrong as it may be, it is only kept."""
    summary = found.get("summary")
    where: Mapping[str, Any] = {**(summary if isinstance(summary, dict) else {}), **found}
    passed = where.get("passed")
    if isinstance(passed, str):
        passed = {"true": True, "yes": True, "false": False, "no": False}.get(passed.lower())
    return _number(where.get("weighted_score")), passed if isinstance(passed, bool) else None
