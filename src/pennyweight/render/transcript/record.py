"""The texts of one record as a page shows them: prompt, reply, chain of thought, agent's work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pennyweight.measures.reasoning import BACKTRACKING
from pennyweight.render.page import visible
from pennyweight.render.transcript.code import code_blocks
from pennyweight.render.transcript.folds import Folded, fitting, fold
from pennyweight.render.transcript.markdown import (
    MAX_CHARACTERS,
    MarkedText,
    both_ends,
    document,
    plain,
)
from pennyweight.render.transcript.trajectory import as_text, read_json
from pennyweight.text.answer_place import place
from pennyweight.text.extraction import KINDS, AnswerRule

_CORRECTION = re.compile(f"({BACKTRACKING.removeprefix('(?i)')})", re.IGNORECASE)
GAP = "gap"
"""The kind of the piece where the middle of a long text is left out."""
_NEAR = 2_000
"""How many characters from where it would be cut a long text is cut at the end of a line."""
_FENCE = re.compile(r"(?m)^ {0,3}(?:```|~~~)[^`\n]*$")
REPLY_BYTES, PROMPT_BYTES, THOUGHT_BYTES, WORK_BYTES = 70_000, 30_000, 30_000, 12_000
"""The size of each text on the page; no page is larger than 300 kB."""
TALK_BYTES = 200_000
"""The size of all turns of a conversation that are shown one below the other."""
DIFF_BYTES = 40_000
MAX_TURNS = 60
"""Messages of the prompt that are shown."""
_SHOWN_APART = ("turns", "tool_calls", "calls", "trace", "checks", "diff", "files", "left_out")
_FILE = re.compile(r"(?m)^(?=diff --git |--- (?!\n)[^\n]*\n\+\+\+ )")


@dataclass(frozen=True, slots=True)
class PromptTurn:
    """One message of the prompt."""

    role: str
    content: Folded


@dataclass(frozen=True, slots=True)
class WorkCheck:
    """A command that checked a workspace: what it is for, whether it held, what it printed."""

    name: str
    holds: bool | None
    command: str
    note: str
    output: Folded | None


@dataclass(frozen=True, slots=True)
class DiffFile:
    """What an agent changed in one file."""

    path: str
    added: int
    removed: int
    lines: Folded


@dataclass(frozen=True, slots=True)
class AgentWork:
    """What an agent left: its changes, the checks of its workspace, its output."""

    checks: tuple[WorkCheck, ...] = ()
    diff: tuple[DiffFile, ...] = ()
    diff_cut: bool = False
    files: str = ""
    left_out: tuple[str, ...] = ()
    outputs: tuple[tuple[str, Folded], ...] = ()
    facts: tuple[tuple[str, Any], ...] = ()


def with_corrections(pieces: Sequence[MarkedText]) -> list[MarkedText]:
    """Mark the words of self-correction in what has no other mark.

    >>> with_corrections([("Actually no, ", ""), ("7", "found")])
    [('Actually', 'correction'), (' no, ', ''), ('7', 'found')]
    >>> with_corrections([("I cannot share the secret, sorry", "")])
    [('I cannot share the secret, sorry', '')]
    """
    found: list[MarkedText] = []
    for text, kind in pieces:
        parts = [text] if kind else _CORRECTION.split(text)
        found += [(p, kind or ("correction" if i % 2 else "")) for i, p in enumerate(parts) if p]
    return found


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
    text = reply or ""
    first, last = place(text, answer, rule) or (len(text), len(text))
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


def rule_in_words(rule: AnswerRule | None) -> str:
    """Describe the rule that extracts the answer."""
    value = f" ({rule.value})" if rule and rule.value else ""
    return f"{KINDS[rule.kind]}{value}" if rule else ""


def shown_thought(
    measures: Mapping[str, Any], reply: str, reasoning: str | None = None
) -> str | None:
    """Return the chain of thought without what the reply has too; None where that is all of it."""
    cot = (measures["cot"] or "").strip()
    if cot in reply:
        return None
    own = (reasoning or "").strip()
    return own if own and cot.startswith(own) and cot[len(own) :].strip() in reply else cot


def shortened(pieces: Sequence[MarkedText], most: int) -> list[MarkedText]:
    """Leave out the middle of a text that is larger than a page of so many bytes shows.

    The end stays, because answers are there. A piece of the kind `GAP` is where the middle was;
    its text opens the block of code again in which the end begins.
    """
    if sum(map(_size, pieces)) <= min(most * 2 // 3, MAX_CHARACTERS):
        return [*pieces]
    return _ends(pieces, most)


def _ends(pieces: Sequence[MarkedText], most: int) -> list[MarkedText]:
    """Leave out the middle of a text."""
    size = sum(map(_size, pieces))
    first = _first(pieces, min(most * 2 // 5, size // 2))
    last = _first([(text[::-1], kind) for text, kind in pieces[::-1]], min(most // 8, size // 4))
    whole = "".join(text for text, _ in pieces)
    fences = _FENCE.findall(whole[: len(whole) - sum(len(text) for text, _ in last)])
    again = f"{fences[-1].strip()}\n" if len(fences) % 2 else "\n"
    return [*first, (again, GAP), *((text[::-1], kind) for text, kind in last[::-1])]


def _size(piece: MarkedText) -> int:
    return len(piece[0].encode("utf-8", "replace"))


def _first(pieces: Sequence[MarkedText], most: int) -> list[MarkedText]:
    """Return the first pieces of at most so many bytes, the last one cut at the end of a line."""
    found: list[MarkedText] = []
    for text, kind in pieces:
        part = text[:most].encode("utf-8", "replace")[: max(most, 0)].decode("utf-8", "ignore")
        if len(part) == len(text):
            found.append((text, kind))
            most -= _size((text, kind))
            continue
        line = part.rfind("\n", max(0, len(part) - _NEAR))
        return [*found, (part[: line + 1] if line >= 0 else part, kind)]
    return found


def shown_text(pieces: Sequence[MarkedText], most: int, *, raw: bool = False) -> Folded:
    """Return a text as Markdown, or as it is; of one that is too long, its two ends.

    As HTML, a text may be several times as long as it is.
    """
    if not any(kind == GAP for _, kind in pieces):
        whole = plain(pieces, most) if raw else document(pieces, most)
        if not whole.cut:
            return whole
        pieces = _ends(pieces, most)
    at = next(n for n, (_, kind) in enumerate(pieces) if kind == GAP)
    return both_ends(pieces[:at], pieces[at + 1 :], most, raw=raw, again=pieces[at][0])


def unmarked_text(text: str, most: int, *, raw: bool = False) -> Folded:
    """Return a text without marks, its middle left out if it is too long."""
    return shown_text(shortened([(text, "")], most), most, raw=raw)


def prompt_turns(messages: str | None, question: str | None, *, raw: bool) -> list[PromptTurn]:
    """Read the messages of the prompt as it was sent; without any, the question."""
    read = read_json(messages or "[]")
    if isinstance(read, list):
        turns = [(str(t.get("role", "")), as_text(t.get("content"))) for t in read
                 if isinstance(t, dict)]  # fmt: skip
    else:
        turns = [("prompt", messages or "")]
    turns = turns or [("input", question or "")]
    each = PROMPT_BYTES // max(1, min(len(turns), MAX_TURNS))
    return [
        PromptTurn(role, unmarked_text(text, 2 * each, raw=raw)) for role, text in turns[:MAX_TURNS]
    ]


def conversation(turns: Sequence[tuple[str, str]]) -> list[tuple[str, Folded]]:
    """Return the texts of a conversation beside who said them; of many, less of each."""
    shown = turns[:MAX_TURNS]
    each = min(PROMPT_BYTES, TALK_BYTES // max(1, len(shown)))
    return [(who, unmarked_text(text, each)) for who, text in shown]


def agent_work(row: Mapping[str, Any]) -> AgentWork | None:
    """Read what an agent left in its workspace; None where nothing is recorded."""
    read = read_json(row.get("work"))
    if not isinstance(read, dict):
        return None
    rest = {str(n): v for n, v in read.items() if n not in _SHOWN_APART}
    scalar = {n: v for n, v in rest.items() if isinstance(v, int | float) or _is_word(v)}
    texts = {n: _pretty(v) for n, v in rest.items() if n not in scalar}
    diff = as_text(read.get("diff"))
    return AgentWork(
        tuple(_check(one) for one in _mappings(read.get("checks"))[:40]),
        tuple(_diff_files(diff[:DIFF_BYTES])),
        len(diff) > DIFF_BYTES,
        _file_counts(read.get("files")),
        tuple(f"{o.get('path')}: {o.get('why')}" for o in _mappings(read.get("left_out"))[:40]),
        tuple(
            (name, _listing(text, "", WORK_BYTES))
            for name, text in texts.items()
            if text.strip() and text.strip() != (row.get("response") or "").strip()
        ),
        tuple((n, v) for n, v in scalar.items() if v not in ("", 0) or n == "exit_code"),
    )


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 80 and "\n" not in value


def _pretty(value: Any) -> str:
    if value in (None, "", [], {}):
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _check(one: Mapping[str, Any]) -> WorkCheck:
    before, after, ended = one.get("before"), one.get("after"), str(one.get("ended") or "")
    codes = f"exit code {before} before, {after} after" if before is not None else ""
    output = as_text(one.get("output"))
    holds = one.get("holds")
    return WorkCheck(
        str(one.get("check") or "check"),
        holds if isinstance(holds, bool) else None,
        as_text(one.get("command")),
        codes if ended in {"", "exit"} else ended,
        _listing(output, "", WORK_BYTES // 2) if output.strip() else None,
    )


def _file_counts(files: Any) -> str:
    if not isinstance(files, dict):
        return ""
    return ", ".join(f"{v} {n}" for n, v in files.items() if isinstance(v, int) and v)


def _diff_files(diff: str) -> Iterator[DiffFile]:
    """Split a diff into its files."""
    for part in filter(str.strip, _FILE.split(diff)):
        lines = part.rstrip("\n").split("\n")
        named = [line[4:] for line in lines[:8] if line.startswith(("--- ", "+++ "))]
        path = next((n for n in reversed(named) if n != "/dev/null"), lines[0])
        body = [line for line in lines if not line.startswith(("--- ", "+++ ", "diff ", "index "))]
        added, removed = (sum(line.startswith(sign) for line in body) for sign in "+-")
        shown = _listing("\n".join(body), "diff", DIFF_BYTES)
        yield DiffFile(re.sub("^[ab]/", "", path), added, removed, shown)


def _listing(text: str, language: str, most: int) -> Folded:
    """Return text with a fixed-width face, its middle folded if it is long."""
    shown = visible(text[:most])
    blocks, more = fitting(code_blocks(shown, language), 2 * most)
    return fold(blocks, cut=more or len(text) > most)


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
