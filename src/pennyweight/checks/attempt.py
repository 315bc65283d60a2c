"""An attempt as checks see it: what was said, which tools were called, what was left behind."""

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
"""The texts that a check may look at: all that was said, the last reply alone, and so on."""

_THOUGHT = re.compile(r"\s*<(think(?:ing)?)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CalledTool:
    """A call of a tool: its name and arguments, and where in the list it stands."""

    name: str
    arguments: Any
    """A mapping; the text itself where it is no JSON object."""
    place: int


@dataclass(slots=True)
class AttemptView:
    """One record, read once for all its checks."""

    row: Mapping[str, Any]
    rule: AnswerRule = field(default_factory=AnswerRule)
    of: str = "response"
    """Which text is looked at."""
    whole: bool = False
    """Whether thoughts in the reply are looked at too."""
    _kept: dict[str, Any] = field(default_factory=dict)

    def at(self, of: str, *, whole: bool = False) -> AttemptView:
        """Look at another text of the same record."""
        return AttemptView(self.row, self.rule, of, whole, self._kept)

    @property
    def text(self) -> str | None:
        """The text that is looked at.

        A `<think>…</think>` with which a reply begins is no part of it, unless the whole is
        looked at. Any other such mark is a word like all others: nothing hides behind it.
        """
        key = f"text:{self.of}:{self.whole}"
        if key not in self._kept:
            self._kept[key] = self._text()
        kept: str | None = self._kept[key]
        return kept

    def _text(self) -> str | None:
        said: str | None = self.row.get("reasoning" if self.of == "reasoning" else "response")
        if self.of == "reasoning":
            return said
        replies = [str(t.get("content") or "") for t in self.turns if t.get("role") == "assistant"]
        if self.of == "last" and replies:
            said, replies = replies[-1], replies[-1:]
        if said is None:
            return None
        if self.of == "answer":
            return self._answer(said)
        if self.whole or "<think" not in said.lower():
            return said
        return (
            "\n\n".join(filter(None, map(without_thoughts, replies)))
            if replies
            else without_thoughts(said)
        )

    def _answer(self, said: str) -> str | None:
        """Find the final answer; in the whole, marks of thoughts do not count."""
        frame = pl.DataFrame({"said": [_TAG.sub(" ", said) if self.whole else said]})
        text: str | None = frame.select(answer(pl.col("said"), self.rule)).item()
        return text

    @property
    def tools(self) -> tuple[CalledTool, ...]:
        """The calls of tools, in their order."""
        if "tools" not in self._kept:
            given = self._json("tool_calls") or traced(str(self.work.get("stdout") or ""))
            self._kept["tools"] = tuple(
                CalledTool(str(one.get("name", "")), _arguments(one), place)
                for place, one in enumerate(given)
                if isinstance(one, Mapping)
            )
        tools: tuple[CalledTool, ...] = self._kept["tools"]
        return tools

    @property
    def work(self) -> Mapping[str, Any]:
        """What an agent did and left behind; empty for a model."""
        found = self._json("work")
        return found if isinstance(found, Mapping) else {}

    @property
    def turns(self) -> list[Mapping[str, Any]]:
        """The turns of a conversation of several; empty for a single one."""
        given = self.work.get("turns")
        return given if isinstance(given, list) else []

    def _json(self, column: str) -> Any:
        key = f"json:{column}"
        if key not in self._kept:
            given = self.row.get(column)
            try:
                self._kept[key] = json.loads(given) if isinstance(given, str) else given
            except (ValueError, RecursionError):
                self._kept[key] = None
        return self._kept[key]


def without_thoughts(reply: str) -> str:
    """Leave out the thoughts with which a reply begins.

    >>> without_thoughts("<think>Hm.</think> Yes. </think>")
    'Yes. </think>'
    """
    at = 0
    while found := _THOUGHT.match(reply, at):
        at = found.end()
    return reply[at:]


def _arguments(call: Mapping[str, Any]) -> Any:
    """Read the arguments of a call, however they were written."""
    given = call.get("arguments", call.get("input", call.get("args")))
    if not isinstance(given, str):
        return given if isinstance(given, Mapping) else {}
    try:
        value = json.loads(given or "{}")
    except (ValueError, RecursionError):
        return given
    return value if isinstance(value, Mapping) else given
