"""An attempt as checks see it: its texts, its tool calls, and the work of an agent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from pennyweight.checks.traces import traced
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
        return (
            "\n\n".join(filter(None, map(without_thoughts, replies)))
            if replies
            else without_thoughts(text)
        )

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
