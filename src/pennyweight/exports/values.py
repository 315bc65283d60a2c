"""Values that several formats share: sides, file names, times, conversations, JSON columns."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from pennyweight.exports.export_format import RecordRow
from pennyweight.suite.scenarios import LATER

Side = tuple[str, str]
"""The subject and the tier."""

_UNSAFE = re.compile(r"[^A-Za-z0-9.-]+")
_NAME_LENGTH = 60


def side_of(row: RecordRow) -> Side:
    """Return the subject and the tier of a record."""
    return row["subject"], row["tier"]


def file_name(*parts: str) -> str:
    """Return a name that every file system takes; a hash keeps names apart that were changed.

    >>> file_name("s", "T0"), file_name("a/b", "T0")
    ('s_T0', 'a-b_T0_82e83b')
    """
    safe = "_".join(_UNSAFE.sub("-", part).strip(".-") or "-" for part in parts)
    if safe == "_".join(parts) and len(safe) <= _NAME_LENGTH:
        return safe
    mark = hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=3).hexdigest()
    return f"{safe[:_NAME_LENGTH]}_{mark}"


def iso(seconds: float | None) -> str | None:
    """Return a Unix time in ISO 8601, in UTC.

    >>> iso(0.5)
    '1970-01-01T00:00:00.500000+00:00'
    """
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


def dumped(value: Any) -> bytes:
    """Return a value as JSON; text that no file can hold is replaced."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # an unpaired surrogate
        return orjson.dumps(_encodable(value), option=orjson.OPT_NON_STR_KEYS)


def parsed(text: Any) -> Any:
    """Return what a JSON column holds; None if it holds none."""
    if not isinstance(text, str):
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def mappings(text: Any) -> list[Mapping[str, Any]]:
    """Return the mappings in a JSON column that holds a list."""
    found = parsed(text)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def asked(row: RecordRow) -> list[Mapping[str, Any]]:
    """Return the messages that were sent first; of a task without any, its input."""
    sent = [one for one in mappings(row.get("messages")) if one.get("role") != LATER]
    return sent or [{"role": "user", "content": row.get("input") or ""}]


def steps(row: RecordRow) -> list[Mapping[str, Any]]:
    """Return the messages after those: turns and tool calls, or the one reply."""
    work = parsed(row.get("work"))
    turns = mappings(work.get("turns")) if isinstance(work, dict) else []
    if turns:
        sent = asked(row)
        return turns[1:] if turns[0].get("content") == sent[-1].get("content") else turns
    if row.get("response") is None:
        return []
    reply: dict[str, Any] = {"role": "assistant", "content": row["response"]}
    if calls := mappings(row.get("tool_calls")):
        reply["tool_calls"] = calls
    return [reply]


def conversation(row: RecordRow) -> list[Mapping[str, Any]]:
    """Return all messages; each tool call has an id, and each result the id of its call."""
    waiting: deque[str] = deque()
    made: list[Mapping[str, Any]] = []
    number = 0
    for one in (*asked(row), *steps(row)):
        message: dict[str, Any] = {**one}
        if calls := mappings(one.get("tool_calls")):
            waiting.clear()
            message["tool_calls"] = []
            for call in calls:
                number += 1
                known = {**call, "id": str(call.get("id") or f"call_{number}")}
                message["tool_calls"].append(known)
                waiting.append(known["id"])
        elif one.get("role") == "tool" and waiting:
            message["call_id"] = waiting.popleft()
        made.append(message)
    return made


def arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a tool call as a mapping.

    >>> arguments({"arguments": '{"id": 1}'}), arguments({"arguments": "ls"}), arguments({})
    ({'id': 1}, {'input': 'ls'}, {})
    """
    given = call.get("arguments")
    found = parsed(given)
    if isinstance(found, dict):
        return found
    return {} if given in {None, ""} else {"input": given}


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(one) for key, one in value.items()}
    return [_encodable(one) for one in value] if isinstance(value, list | tuple) else value
