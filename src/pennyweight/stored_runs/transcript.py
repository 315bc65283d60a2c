"""The messages of an attempt, turn by turn, as judges and people read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pennyweight.suite.scenarios import LATER

Turn = tuple[str, str]
"""The role and the text."""


def turns_of(row: Mapping[str, Any]) -> list[Turn]:
    """Return the turns of a conversation from the last question on; none for a single reply."""
    work = _read(row.get("work"))
    turns = work.get("turns") if isinstance(work, dict) else None
    return [_turn(turn) for turn in _mappings(turns)]


def asked_of(row: Mapping[str, Any]) -> list[Turn]:
    """Return the messages that were sent first: system prompt, earlier turns, the question."""
    sent = [one for one in _mappings(row.get("messages")) if one.get("role") != LATER]
    return [_turn(one) for one in sent] or [("user", row.get("input") or "")]


def script_of(row: Mapping[str, Any]) -> list[str]:
    """Return what the scripted user would say after the reply."""
    sent = [one for one in _mappings(row.get("messages")) if one.get("role") == LATER]
    lines = [_read(one.get("content")) for one in sent]
    return [_scripted(line) for line in lines if isinstance(line, dict) and "say" in line]


def left_out_of(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """List the files of an agent that did not reach its checks: their paths, and why."""
    done = _read(row.get("work"))
    listed = done.get("left_out") if isinstance(done, dict) else None
    return [one for one in listed or () if isinstance(one, dict) and {"path", "why"} <= one.keys()]


def calls_of(calls: Any) -> list[str]:
    r"""Return tool calls in a readable form, from JSON or values.

    >>> calls_of('[{"name": "find", "arguments": "{\\"id\\": 1}"}]')
    ['find({"id": 1})']
    """
    return [_call(one) for one in _mappings(calls)]


def _turn(one: Mapping[str, Any]) -> Turn:
    role = str(one.get("role", ""))
    if role == "tool" and one.get("name"):
        role = f"tool {one['name']}"
    calls = (f"[calls {call}]" for call in calls_of(one.get("tool_calls")))
    return role, "\n".join(filter(None, [str(one.get("content") or ""), *calls]))


def _call(one: Mapping[str, Any]) -> str:
    arguments = one.get("arguments", "")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return f"{one.get('name', '')}({arguments})"


def _scripted(line: Mapping[str, Any]) -> str:
    if "if" not in line:
        return str(line["say"])
    other = f"; else: {line['else']}" if line.get("else") else ""
    return f"{line['say']} (if {line['if'].get('name', 'a check holds')}{other})"


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    """Parse a JSON column that is a list of mappings; anything else in it is left out."""
    read = _read(value)
    return [one for one in read if isinstance(one, dict)] if isinstance(read, list) else []


def _read(value: Any) -> Any:
    """Parse a JSON column of the store."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None


def written(turns: Iterable[Turn]) -> list[str]:
    """Return turns as lines; a single turn without its role."""
    several = list(turns)
    if len(several) == 1:
        return [several[0][1]]
    return [f"{role}: {text}" for role, text in several]
