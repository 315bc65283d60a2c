"""The texts of one record as a page shows them: prompt, reply, chain of thought, tool calls."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pennyweight.measures.reasoning import CORRECTION, STEP
from pennyweight.text.answer_place import place
from pennyweight.text.extraction import KINDS, AnswerRule
from pennyweight.text.format import duration

_STEP = re.compile(STEP)
_CORRECTION = re.compile(f"({CORRECTION.replace('(?i-u:', '(?:')})", re.IGNORECASE)
MAX_SHOWN_CHARACTERS = 60_000
"""Longer texts are cut on the page, which links to the complete text."""
FOLD_FROM, FOLD_HEAD, FOLD_TAIL = 6_000, 2_000, 1_000
"""Characters from which a text is folded, and how many of its start and end stay visible."""
TIME_KEYS = ("at", "started", "timestamp", "time")
"""Keys under which logs store when a tool was called."""
RESULT_KEYS = ("result", "output", "response")
"""Keys under which logs store the result of a tool."""
MarkedText = tuple[str, str]
"""A piece of text, and the kind of its mark: empty for none."""


@dataclass(frozen=True, slots=True)
class ThoughtLine:
    """A line of a chain of thought; `step` if the measure counts it as a step."""

    step: bool
    pieces: Sequence[MarkedText]


@dataclass(frozen=True, slots=True)
class FoldedText:
    """A text in three parts, of which the middle one is folded."""

    head: Sequence[MarkedText]
    middle: Sequence[MarkedText] = ()
    tail: Sequence[MarkedText] = ()
    hidden: int = 0
    """How many characters the middle part has."""


@dataclass(frozen=True, slots=True)
class PromptTurn:
    """One message of the prompt."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A tool call; what the log does not contain is empty."""

    name: str
    arguments: str = ""
    result: str = ""
    time: str = ""


def thought_lines(thought: str | None) -> list[ThoughtLine]:
    r"""Split a chain of thought into lines and mark the words of self-correction.

    >>> [(line.step, line.pieces) for line in thought_lines("1. add\nActually no")]
    [(True, [('1. add', '')]), (False, [('Actually', 'correction'), (' no', '')])]
    """
    lines = re.split(r"\r\n|\r|\n", (thought or "")[:MAX_SHOWN_CHARACTERS])
    return [ThoughtLine(bool(_STEP.match(n)), _corrections(n)) for n in lines if n.strip()]


def _corrections(text: str) -> list[MarkedText]:
    parts = _CORRECTION.split(text)
    return [(part, "correction" if i % 2 else "") for i, part in enumerate(parts) if part]


def marked_reply(
    reply: str | None,
    answer: str | None,
    rule: AnswerRule | None = None,
    evidence: Sequence[tuple[int, int]] = (),
) -> list[MarkedText]:
    """Mark the extracted answer in a reply, and the evidence of checks.

    >>> marked_reply("7, or 8. So 7.", "7", None, [(3, 7)])
    [('7, ', ''), ('or 8', 'evidence'), ('. So ', ''), ('7', 'found'), ('.', '')]
    """
    text = (reply or "")[:MAX_SHOWN_CHARACTERS]
    first, last = place(reply or "", answer, rule) or (len(text), len(text))
    marks = [(first, last, "found")]
    for start, end in evidence:
        if end - start < len(text):
            marks.append((start, min(end, first), "evidence"))
            marks.append((max(start, last), end, "evidence"))
    pieces, done = [], 0
    for start, end, kind in sorted(marks):
        if done <= start < end <= len(text):
            pieces += [(text[done:start], ""), (text[start:end], kind)]
            done = end
    return [piece for piece in (*pieces, (text[done:], "")) if piece[0]]


def folded(pieces: Sequence[MarkedText]) -> FoldedText:
    """Fold the middle of a long text.

    >>> folded([("a" * 9_000, ""), ("7", "found")]).hidden
    6001
    """
    total = sum(len(text) for text, _ in pieces)
    if total <= FOLD_FROM:
        return FoldedText(pieces)
    edges = (0, FOLD_HEAD, total - FOLD_TAIL, total)
    head: list[MarkedText] = []
    middle: list[MarkedText] = []
    tail: list[MarkedText] = []
    at = 0
    for text, kind in pieces:
        for part, (low, high) in zip((head, middle, tail), pairwise(edges), strict=True):
            if cut := text[max(0, low - at) : max(0, high - at)]:
                part.append((cut, kind))
        at += len(text)
    return FoldedText(head, middle, tail, total - FOLD_HEAD - FOLD_TAIL)


def rule_in_words(rule: AnswerRule | None) -> str:
    """Describe the rule that extracts the answer."""
    value = f" ({rule.value})" if rule and rule.value else ""
    return f"{KINDS[rule.kind]}{value}" if rule else ""


def shown_thought(measures: Mapping[str, Any], reply: str) -> str | None:
    """Return the chain of thought, or None where it only repeats the reply."""
    cot: str | None = measures["cot"]
    repeats = (cot or "").strip() == reply.strip()
    informative = measures.get("step_count") or measures.get("self_correcting")
    return None if repeats and not informative else cot


def prompt_turns(messages: str | None) -> list[PromptTurn]:
    """Read the messages of the prompt as it was sent."""
    read = _json(messages or "[]")
    if not isinstance(read, list):
        return [PromptTurn("prompt", messages or "")]
    return [
        PromptTurn(str(turn.get("role", "")), _as_text(turn.get("content")))
        for turn in read
        if isinstance(turn, dict)
    ]


def tool_calls(row: Mapping[str, Any]) -> list[ShownCall]:
    """Read the tool calls of a record in their order, with their results where logged."""
    calls: list[ShownCall] = []
    results = _tool_results(row.get("messages"))
    for text in (row.get("tool_calls"), row.get("work")):
        read = _json(text or "null")
        if isinstance(read, dict):
            read = read.get("tool_calls") or read.get("calls") or read.get("trace") or []
        read = read if isinstance(read, list) else []
        calls += [_shown_call(call, results) for call in read if isinstance(call, dict)]
    return calls


def _shown_call(call: Mapping[str, Any], results: Mapping[str, Any]) -> ShownCall:
    name = str(call.get("name") or call.get("tool") or call.get("kind") or "call")
    result = next((call[n] for n in RESULT_KEYS if call.get(n) is not None), None)
    result = results.get(str(call.get("id"))) if result is None else result
    arguments = call.get("arguments", call.get("input"))
    given, returned = (_as_text(value) if value else "" for value in (arguments, result))
    return ShownCall(name, given, returned, _call_time(call))


def _call_time(call: Mapping[str, Any]) -> str:
    """Write when a tool was called and how long it took, where the log says so."""
    at = next((str(call[n]) for n in TIME_KEYS if isinstance(call.get(n), str | int | float)), "")
    took = next((call[n] for n in ("latency_ms", "duration_ms") if call.get(n) is not None), None)
    return ", ".join(filter(None, (at, duration(took) if isinstance(took, int | float) else "")))


def _tool_results(messages: str | None) -> dict[str, Any]:
    """Read the results of tools from the conversation, by the ids of their calls."""
    read = _json(messages or "[]")
    turns = [m for m in read if isinstance(m, dict)] if isinstance(read, list) else []
    return {str(m["tool_call_id"]): m.get("content") for m in turns if m.get("tool_call_id")}


def agent_output(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Read what an agent left in its workspace, as labelled texts."""
    read = _json(row.get("work") or "null")
    if not isinstance(read, dict):
        return []
    shown = ((n, v) for n, v in read.items() if n != "turns" and v not in (None, "", [], {}))
    return [(str(n), _as_text(v)) for n, v in shown]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def markdown(text: str) -> str:
    """Render Markdown as HTML; raw HTML, links and images stay text."""
    from markdown_it import MarkdownIt  # noqa: PLC0415

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.disable(["link", "image", "autolink", "html_inline", "html_block", "reference"])
    return str(reader.render(text[:MAX_SHOWN_CHARACTERS]))
