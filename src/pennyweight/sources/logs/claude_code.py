"""Claude Code: the transcript of a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pennyweight.sources.json_lines import json_lines
from pennyweight.sources.log_format import Log, LogFormat, Row
from pennyweight.sources.log_values import count, items, mapping, text_of
from pennyweight.sources.peek import Peek
from pennyweight.text.format import plural


def recognise(peek: Peek) -> bool:
    """Whether a file is a session."""
    return any({"sessionId", "uuid", "message"} <= row.keys() for row in peek.rows)


def read(log: Log) -> Iterator[Row]:
    """Yield one record a session. Sub-agents are part of it, in its tokens alone."""
    for path in log.files:
        yield _session(path, log)


def _session(path: Path, log: Log) -> Row:
    session = _ClaudeSession({"run": path.parent.name, "task_id": path.stem, "status": "ok"})
    bad = 0
    for number, line in json_lines(path):
        if not isinstance(line, dict):
            bad += 1
        elif message := mapping(line.get("message")):
            session.add(line, message, number)
    if bad:
        log.note(f"{plural(bad, 'line')} left out that are not JSON.")
    return session.record()


@dataclass(slots=True)
class _ClaudeSession:
    row: Row
    usages: dict[Any, Mapping[str, Any]] = field(default_factory=dict)
    chat: list[Row] = field(default_factory=list)
    calls: list[Row] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    shown: int = 0
    """How many of the thoughts are part of a message."""

    def add(self, line: Mapping[str, Any], message: Mapping[str, Any], number: int) -> None:
        """Add one line."""
        when = line.get("timestamp")
        self.row["task_id"] = line.get("sessionId") or self.row["task_id"]
        self.row |= {"start_time": self.row.get("start_time") or when, "end_time": when}
        if line.get("type") == "assistant":
            self.row["subject"] = self.row.get("subject") or message.get("model")
            self.usages[message.get("id") or number] = mapping(message.get("usage"))
        if not line.get("isSidechain"):
            self._said(message, str(line.get("type")), when)
        if line.get("isApiErrorMessage"):
            self.row |= {"status": "error", "error": text_of(message.get("content"))}

    def _said(self, message: Mapping[str, Any], kind: str, when: Any) -> None:
        parts = [mapping(part) for part in items(message.get("content"))]
        self.thoughts += [
            str(p.get("thinking") or "") for p in parts if p.get("type") == "thinking"
        ]
        known: Row = {"timestamp": when} if isinstance(when, str) else {}
        made = [
            {"name": part.get("name"), "arguments": part.get("input")}
            for part in parts
            if part.get("type") == "tool_use"
        ]
        self.calls += made
        self.chat += [
            {"role": "tool", "content": text_of(part.get("content")) or "", **known}
            | ({"is_error": True} if part.get("is_error") is True else {})
            for part in parts
            if part.get("type") == "tool_result"
        ]
        text = text_of(message.get("content"))
        if text or made:
            said: Row = {"role": str(message.get("role")), "content": text or "", **known}
            thought = "\n".join(self.thoughts[self.shown :])
            said |= {"reasoning": thought} if thought else {}
            self.shown = len(self.thoughts)
            self.chat.append(said | ({"tool_calls": made} if made else {}))
        if text and kind == "user":
            self.row.setdefault("input", text)
        elif text:
            self.row["response"] = text

    def record(self) -> Row:
        """Return the record."""
        cached = self._sum("cache_read_input_tokens")
        written = self._sum("cache_creation_input_tokens")
        fresh = self._sum("input_tokens")
        return {
            **self.row,
            "reasoning": "\n".join(self.thoughts) or None,
            "prompt_tokens": None if fresh is None else fresh + (cached or 0) + (written or 0),
            "cached_tokens": cached,
            "cache_write_tokens": written,
            "completion_tokens": self._sum("output_tokens"),
            "messages": self.chat or None,
            "tool_calls": self.calls or None,
        }

    def _sum(self, name: str) -> int | None:
        """Add up what each message used: of its several lines the last is right."""
        counts = [count(usage.get(name)) for usage in self.usages.values()]
        return sum(one or 0 for one in counts) if any(one is not None for one in counts) else None


FORMAT = LogFormat(
    "claude_code",
    "Claude Code",
    recognise,
    read,
    lost="verdicts (there are none), the steps of sub-agents, snapshots of files",
)
