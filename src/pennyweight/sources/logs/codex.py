"""Codex: the transcript of a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pennyweight.sources.json_array import loads
from pennyweight.sources.json_lines import json_lines
from pennyweight.sources.log_format import Log, LogFormat, Row
from pennyweight.sources.log_values import count, items, mapping
from pennyweight.sources.peek import Peek
from pennyweight.text.format import plural

_CONTEXT = ("<environment_context>", "<user_instructions>", "<permissions")
"""How messages begin that the program adds in the name of the user."""


def recognise(peek: Peek) -> bool:
    """Whether a file is a session."""
    return any(row.get("type") == "session_meta" and "payload" in row for row in peek.rows)


def read(log: Log) -> Iterator[Row]:
    """Yield one record a session."""
    for path in log.files:
        yield _session(path, log)


def _session(path: Path, log: Log) -> Row:
    session = _CodexSession({"run": path.parent.name, "task_id": path.stem, "status": "ok"})
    bad = 0
    for _, line in json_lines(path):
        if isinstance(line, dict):
            session.add(line)
        else:
            bad += 1
    if bad:
        log.note(f"{plural(bad, 'line')} left out that are not JSON.")
    return session.record()


@dataclass(slots=True)
class _CodexSession:
    row: Row
    usage: Mapping[str, Any] = field(default_factory=dict)
    chat: list[Row] = field(default_factory=list)
    calls: list[Row] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)

    def add(self, line: Mapping[str, Any]) -> None:
        """Add one line."""
        kind, payload = line.get("type"), mapping(line.get("payload"))
        when = line.get("timestamp")
        self.row |= {"start_time": self.row.get("start_time") or when, "end_time": when}
        if kind == "session_meta":
            self.row["task_id"] = payload.get("id") or payload.get("session_id")
        elif kind == "turn_context":
            self.row["subject"] = payload.get("model") or self.row.get("subject")
        elif kind == "event_msg":
            self._event(payload)
        elif kind == "response_item":
            self._item(payload, str(payload.get("type")))

    def _event(self, payload: Mapping[str, Any]) -> None:
        kind = payload.get("type")
        if kind == "token_count":  # of the session so far
            self.usage = (
                mapping(mapping(payload.get("info")).get("total_token_usage")) or self.usage
            )
        elif kind == "task_complete":
            self.row["response"] = payload.get("last_agent_message")
        elif kind in {"error", "stream_error"}:
            self.row["error"] = payload.get("message")

    def _item(self, payload: Mapping[str, Any], kind: str) -> None:
        if kind == "message":
            text = _text(payload.get("content"))
            self.chat.append({"role": str(payload.get("role")), "content": text})
            if payload.get("role") == "user" and not text.startswith(_CONTEXT):
                self.row.setdefault("input", text)
        elif kind == "reasoning":
            self.thoughts.append(_text(payload.get("summary")))
        elif kind.endswith("_call_output"):
            self.chat.append({"role": "tool", "content": _said(payload.get("output"))})
        elif kind.endswith("_call"):
            call = {"name": payload.get("name") or kind, "arguments": _arguments(payload)}
            self.calls.append(call)
            self.chat.append({"role": "assistant", "content": "", "tool_calls": [call]})

    def record(self) -> Row:
        """Return the record. A session that ended within a turn has the last reply there is."""
        if self.row.get("response") is None:
            said = [one["content"] for one in self.chat if one["role"] == "assistant"]
            self.row["response"] = next((text for text in reversed(said) if text), None)
            self.row["status"] = "error" if self.row.get("error") else "ok"
        return {
            **self.row,
            "reasoning": "\n".join(self.thoughts) or None,
            "prompt_tokens": count(self.usage.get("input_tokens")),
            "cached_tokens": count(self.usage.get("cached_input_tokens")),
            "completion_tokens": count(self.usage.get("output_tokens")),
            "reasoning_tokens": count(self.usage.get("reasoning_output_tokens")),
            "messages": self.chat or None,
            "tool_calls": self.calls or None,
        }


def _text(parts: Any) -> str:
    return "\n".join(str(mapping(one).get("text") or "") for one in items(parts))


def _arguments(payload: Mapping[str, Any]) -> Any:
    given = payload.get("arguments", payload.get("input"))
    found = loads(given.encode("utf-8", "replace")) if isinstance(given, str) else given
    return given if found is None else found


def _said(output: Any) -> str:
    text = mapping(output).get("content", output)
    return text if isinstance(text, str) else _text(text)


FORMAT = LogFormat(
    "codex", "Codex", recognise, read, lost="verdicts (there are none), approvals, world state"
)
