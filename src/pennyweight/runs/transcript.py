"""What was said in an attempt, turn by turn, as judges and people read it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pennyweight.suite.scenarios import LATER

Turn = tuple[str, str]
"""Who speaks, and what is said."""


def turns_of(row: Mapping[str, Any]) -> list[Turn]:
    """Give the turns of a conversation from the last question on; none for a single reply."""
    done = _read(row.get("work"))
    given = done.get("turns") if isinstance(done, dict) else None
    return [_turn(one) for one in given or () if isinstance(one, dict)]


def asked_of(row: Mapping[str, Any]) -> list[Turn]:
    """Give what was sent first: system text, earlier turns, the question."""
    sent = [one for one in _read(row.get("messages")) or () if one.get("role") != LATER]
    return [_turn(one) for one in sent] or [("user", row.get("input") or "")]


def script_of(row: Mapping[str, Any]) -> list[str]:
    """Give what a scripted user was going to say after the reply, in words."""
    sent = [one for one in _read(row.get("messages")) or () if one.get("role") == LATER]
    lines = [_read(one.get("content")) for one in sent]
    return [_scripted(line) for line in lines if isinstance(line, dict) and "say" in line]


def calls_of(given: Any) -> list[str]:
    r"""Write calls of tools as people read them, wherever they were kept.

    >>> calls_of('[{"name": "find", "arguments": "{\\"id\\": 1}"}]')
    ['find({"id": 1})']
    """
    calls = _read(given)
    return [_call(one) for one in calls or () if isinstance(one, dict)]


def _turn(one: Mapping[str, Any]) -> Turn:
    role = str(one.get("role", ""))
    if role == "tool" and one.get("name"):
        role = f"tool {one['name']}"
    calls = (f"[calls {call}]" for call in calls_of(one.get("tool_calls")))
    return role, "\n".join(filter(None, [one.get("content") or "", *calls]))


def _call(one: Mapping[str, Any]) -> str:
    given = one.get("arguments", "")
    said = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return f"{one.get('name', '')}({said})"


def _scripted(line: Mapping[str, Any]) -> str:
    if "if" not in line:
        return str(line["say"])
    other = f"; else: {line['else']}" if line.get("else") else ""
    return f"{line['say']} (if {line['if'].get('name', 'a check holds')}{other})"


def _read(value: Any) -> Any:
    """Read what a store keeps as JSON."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None


def written(turns: Iterable[Turn]) -> list[str]:
    """Write turns as lines; one turn alone needs no name."""
    several = list(turns)
    if len(several) == 1:
        return [several[0][1]]
    return [f"{role}: {text}" for role, text in several]
