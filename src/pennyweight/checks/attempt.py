"""An attempt as checks see it: its texts, its tool calls, and the work of an agent.

The tool calls of an agent are read from its output, in the formats of Claude, Codex, Gemini and
others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from pennyweight.text.extraction import AnswerRule, answer

COLUMNS = (
    *("status", "input", "messages", "target", "response", "reasoning", "tool_calls", "refused"),
    *("truncated", "finish", "prompt_tokens", "completion_tokens", "latency_ms", "cost_usd"),
    *("work", "passed"),
)
"""The columns of a record that checks read."""

OF = ("response", "last", "answer", "reasoning")
"""The texts that a check may look at."""

_THOUGHT = re.compile(r"\s*<(think(?:ing)?)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE)
MAX_DEPTH = 12
"""Levels of nested JSON in which tool calls are looked for."""
_CODEX = {"command_execution": "shell", "file_change": "file_change", "web_search": "web_search"}
_TAG = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CalledTool:
    """A tool call: its name, its arguments, and its position in the list."""

    name: str
    arguments: Any
    """A mapping, or text if it is not a JSON object."""
    place: int


@dataclass(slots=True)
class AttemptView:
    """A record, read once for all checks."""

    row: Mapping[str, Any]
    rule: AnswerRule = field(default_factory=AnswerRule)
    of: str = "response"
    """The text that checks look at."""
    whole: bool = False
    """Whether the text includes thoughts at the start of a reply."""
    _cache: dict[str, Any] = field(default_factory=dict)

    def at(self, of: str, *, whole: bool = False) -> AttemptView:
        """Return a view of another text of the same record."""
        return AttemptView(self.row, self.rule, of, whole, self._cache)

    @property
    def text(self) -> str | None:
        """The text that checks look at.

        `<think>…</think>` at the start of a reply is left out, unless `whole` is set. Anywhere
        else the tags are ordinary text, so that nothing can hide behind them.
        """
        key = f"text:{self.of}:{self.whole}"
        if key not in self._cache:
            self._cache[key] = self._text()
        text: str | None = self._cache[key]
        return text

    @property
    def said(self) -> str:
        """The text that checks look at, empty if there is none."""
        return self.text or ""

    def _text(self) -> str | None:
        text: str | None = self.row.get("reasoning" if self.of == "reasoning" else "response")
        if self.of == "reasoning":
            return text
        replies = [str(t.get("content") or "") for t in self.turns if t.get("role") == "assistant"]
        if self.of == "last" and replies:
            text, replies = replies[-1], replies[-1:]
        if text is None:
            return None
        if self.of == "answer":
            return self._answer(text)
        if self.whole or "<think" not in text.lower():
            return text
        return "\n\n".join(filter(None, map(without_thoughts, replies or [text])))

    def _answer(self, text: str) -> str | None:
        """Extract the final answer; in the whole text, tags of thoughts are ignored."""
        frame = pl.DataFrame({"text": [_TAG.sub(" ", text) if self.whole else text]})
        found: str | None = frame.select(answer(pl.col("text"), self.rule)).item()
        return found

    @property
    def tools(self) -> tuple[CalledTool, ...]:
        """The tool calls in order."""
        if "tools" not in self._cache:
            given = self._json("tool_calls") or traced(str(self.work.get("stdout") or ""))
            self._cache["tools"] = tuple(
                CalledTool(str(one.get("name", "")), _arguments(one), place)
                for place, one in enumerate(given)
                if isinstance(one, Mapping)
            )
        tools: tuple[CalledTool, ...] = self._cache["tools"]
        return tools

    @property
    def work(self) -> Mapping[str, Any]:
        """The output and changes of an agent; empty for a model."""
        found = self._json("work")
        return found if isinstance(found, Mapping) else {}

    @property
    def turns(self) -> list[Mapping[str, Any]]:
        """The turns of a scripted conversation; empty for a single reply."""
        given = self.work.get("turns")
        return given if isinstance(given, list) else []

    def _json(self, column: str) -> Any:
        key = f"json:{column}"
        if key not in self._cache:
            given = self.row.get(column)
            try:
                self._cache[key] = json.loads(given) if isinstance(given, str) else given
            except (ValueError, RecursionError):
                self._cache[key] = None
        return self._cache[key]


def without_thoughts(reply: str) -> str:
    """Remove the thoughts at the start of a reply.

    >>> without_thoughts("<think>Hm.</think> Yes. </think>")
    'Yes. </think>'
    """
    at = 0
    while found := _THOUGHT.match(reply, at):
        at = found.end()
    return reply[at:]


def _arguments(call: Mapping[str, Any]) -> Any:
    """Return the arguments of a call as a mapping, or as text if they are not a JSON object."""
    given = call.get("arguments", call.get("input", call.get("args")))
    if not isinstance(given, str):
        return given if isinstance(given, Mapping) else {}
    try:
        value = json.loads(given or "{}")
    except (ValueError, RecursionError):
        return given
    return value if isinstance(value, Mapping) else given


def traced(output: str) -> list[dict[str, Any]]:
    r"""Return the tool calls in lines of JSON, or in one JSON value.

    >>> traced('{"type": "tool_use", "name": "Read", "input": {"path": "a"}}\nDone.')
    [{'name': 'Read', 'arguments': {'path': 'a'}}]
    """
    calls: list[dict[str, Any]] = []
    seen: set[str] = set()
    for event in _events(output):
        for call_id, call in _calls(event, 0):
            if call_id is None or call_id not in seen:
                calls.append(call)
            if call_id is not None:
                seen.add(call_id)
    return calls


def _events(output: str) -> Iterator[Any]:
    try:
        yield json.loads(output)
        return
    except (ValueError, RecursionError):
        pass
    for line in output.splitlines():
        if line.lstrip()[:1] in {"{", "["}:
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                continue


def _calls(event: Any, depth: int) -> Iterator[tuple[str | None, dict[str, Any]]]:
    if depth > MAX_DEPTH:
        return
    if isinstance(event, list):
        for one in event:
            yield from _calls(one, depth + 1)
    elif isinstance(event, Mapping):
        call = _call(event)
        if call is not None:
            given = event.get("id", event.get("tool_id"))
            yield (str(given) if given is not None else None), call
            return
        for one in event.values():
            if isinstance(one, Mapping | list):
                yield from _calls(one, depth + 1)


def _call(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read an object as a tool call, in the format of any known agent; None if it is none."""
    kind = event.get("type")
    if kind == "tool_use":
        name = event.get("name", event.get("tool_name"))
        return _tool_call(name, event.get("input", event.get("parameters")))
    if kind == "mcp_tool_call":
        return _tool_call(event.get("tool"), event.get("arguments"))
    if kind in _CODEX:
        return _tool_call(
            _CODEX[kind], {k: v for k, v in event.items() if k in {"command", "changes"}}
        )
    for key in ("function", "functionCall", "function_call"):
        below = event.get(key)
        if isinstance(below, Mapping) and isinstance(below.get("name"), str):
            return _tool_call(below["name"], below.get("arguments", below.get("args")))
    return None


def _tool_call(name: Any, arguments: Any) -> dict[str, Any] | None:
    return {"name": name, "arguments": arguments or {}} if isinstance(name, str) else None
