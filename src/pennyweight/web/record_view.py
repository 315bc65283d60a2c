"""One record as a page shows it: steps, corrections, where the answer was found, differences."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from pennyweight.catalogue import MEASURES
from pennyweight.define import add_measures, dtype, measure_passes
from pennyweight.measures.reasoning import CORRECTION, STEP
from pennyweight.record import BY_NAME
from pennyweight.runs.source import RunSource
from pennyweight.store.store import RECORD_COLUMNS
from pennyweight.text.answer_place import place
from pennyweight.text.extraction import KINDS, AnswerRule
from pennyweight.web.observed import judged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pennyweight.runs.observations import Observer
    from pennyweight.store.store import Run, Store

_STEP = re.compile(STEP)
_CORRECTION = re.compile(f"({CORRECTION.replace('(?i-u:', '(?:')})", re.IGNORECASE)
SHOWN = 60_000
"""Characters of a text that a page shows; the whole is one click away."""
LONG, HEAD, TAIL = 6_000, 2_000, 1_000
"""Characters from which a text is folded, and of its beginning and its end that are shown."""
TIMES = ("at", "started", "timestamp", "time")
"""Names under which logs keep when a tool was called."""
RESULTS = ("result", "output", "response")
"""Names under which logs keep what a tool gave."""
Piece = tuple[str, bool]


def measures(
    run: Run, store: Store, row: Mapping[str, Any], observer: Observer | None = None
) -> dict[str, Any]:
    """Compute every measure of one record, by the rules of its run."""
    schema = {n: dtype(n) if n in BY_NAME else None for n in RECORD_COLUMNS}
    series = [pl.Series(n, [row[n]], dtype=kind, strict=False) for n, kind in schema.items()]
    frame = judged(pl.DataFrame(series), run, store)
    frame = observer.add(frame) if observer else frame
    missing = [pl.lit(None, dtype=dtype(n)).alias(n) for n in BY_NAME if n not in frame.columns]
    passes = measure_passes(MEASURES.values(), RunSource(run, store).options())
    found = add_measures(frame.with_columns(missing).lazy(), passes).collect()
    return {n: found[n][0] for n in [*MEASURES, "answer", "cot"]}


def steps(thought: str | None) -> list[dict[str, Any]]:
    r"""Cut a chain of thought into lines; steps are numbered, words of correction marked.

    >>> [(s["step"], s["pieces"]) for s in steps("1. add\nActually no")]
    [(True, [('1. add', False)]), (False, [('Actually', True), (' no', False)])]
    """
    lines = re.split(r"\r\n|\r|\n", (thought or "")[:SHOWN])
    return [{"step": bool(_STEP.match(n)), "pieces": marked(n)} for n in lines if n.strip()]


def marked(text: str) -> list[Piece]:
    """Tell the words of self-correction from the rest."""
    parts = _CORRECTION.split(text)
    return [(part, index % 2 == 1) for index, part in enumerate(parts) if part]


def found_in(
    reply: str | None,
    answer: str | None,
    rule: AnswerRule | None = None,
    evidence: Sequence[tuple[int, int]] = (),
) -> list[tuple[str, str]]:
    """Mark where the rule found the answer in a reply, and what checks rest on.

    >>> found_in("7, or 8. So 7.", "7", None, [(3, 7)])
    [('7, ', ''), ('or 8', 'evidence'), ('. So ', ''), ('7', 'found'), ('.', '')]
    """
    text = (reply or "")[:SHOWN]
    at = place(reply or "", answer, rule)
    first, last = at or (len(text), len(text))
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


def fold(pieces: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Cut a long text into its beginning, its end, and what lies between, which is folded.

    >>> fold([("a" * 9_000, ""), ("7", "found")])["hidden"]
    6001
    """
    total = sum(len(text) for text, _ in pieces)
    if total <= LONG:
        return {"head": pieces, "middle": [], "tail": [], "hidden": 0}
    edges = (0, HEAD, total - TAIL, total)
    parts: list[list[tuple[str, Any]]] = [[], [], []]
    at = 0
    for text, kind in pieces:
        for index, (low, high) in enumerate(pairwise(edges)):
            cut = text[max(0, low - at) : max(0, high - at)]
            if cut:
                parts[index].append((cut, kind))
        at += len(text)
    return {**dict(zip(("head", "middle", "tail"), parts, strict=True)),
            "hidden": total - HEAD - TAIL}  # fmt: skip


def rule_of(settings: Mapping[str, Any]) -> AnswerRule | None:
    """Give the rule by which a run's answers are found."""
    rule = settings.get("answer") or {}
    return AnswerRule.of(settings) if rule.get("kind") in KINDS else None


def rule_in_words(rule: AnswerRule | None) -> str:
    """Say how the answer was looked for."""
    value = f" ({rule.value})" if rule and rule.value else ""
    return f"{KINDS[rule.kind]}{value}" if rule else ""


def thought(measured: Mapping[str, Any], reply: str) -> str | None:
    """Give the chain of thought, unless it says no more than the reply just above it."""
    cot: str | None = measured["cot"]
    repeats = (cot or "").strip() == reply.strip()
    told = measured.get("step_count") or measured.get("self_correcting")
    return None if repeats and not told else cot


def turns(messages: str | None) -> list[dict[str, str]]:
    """Read the prompt as it was sent."""
    try:
        found = json.loads(messages or "[]")
    except ValueError:
        return [{"role": "prompt", "content": messages or ""}]
    if not isinstance(found, list):
        return [{"role": "prompt", "content": str(found)}]
    return [
        {"role": str(t.get("role", "")), "content": _flat(t.get("content"))}
        for t in found
        if isinstance(t, dict)
    ]


def _flat(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def calls(row: Mapping[str, Any]) -> list[dict[str, str]]:
    """Read the tools that were called, in their order, with what they gave where that is known."""
    found: list[dict[str, str]] = []
    told = _results(row.get("messages"))
    for text in (row.get("tool_calls"), row.get("work")):
        try:
            read = json.loads(text or "null")
        except ValueError:
            continue
        if isinstance(read, dict):
            read = read.get("tool_calls") or read.get("calls") or read.get("trace") or []
        for one in read if isinstance(read, list) else ():
            if isinstance(one, dict):
                name = str(one.get("name") or one.get("tool") or one.get("kind") or "call")
                given = one.get("arguments", one.get("input"))
                result = next((one[n] for n in RESULTS if one.get(n) is not None), None)
                result = told.get(str(one.get("id"))) if result is None else result
                texts = {"arguments": given, "result": result, "time": _time(one)}
                found.append({"name": name} | {n: _flat(v) if v else "" for n, v in texts.items()})
    return found


def _time(call: Mapping[str, Any]) -> str:
    """Write when a tool was called, and how long it took, as far as a log tells."""
    at = next((str(call[n]) for n in TIMES if isinstance(call.get(n), str | int | float)), "")
    took = next((call[n] for n in ("latency_ms", "duration_ms") if call.get(n) is not None), None)
    return ", ".join(filter(None, (at, f"{took:,.0f} ms" if isinstance(took, int | float) else "")))


def _results(messages: str | None) -> dict[str, Any]:
    """Read what tools gave, as the conversation has it, by the ids of their calls."""
    try:
        read = json.loads(messages or "[]")
    except ValueError:
        return {}
    found = [m for m in read if isinstance(m, dict)] if isinstance(read, list) else []
    return {str(m["tool_call_id"]): m.get("content") for m in found if m.get("tool_call_id")}


def work(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Read what an agent left behind, as labelled texts."""
    try:
        read = json.loads(row.get("work") or "null")
    except ValueError:
        return []
    if not isinstance(read, dict):
        return []
    return [
        (str(name), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in read.items()
        if value not in (None, "", [], {})
    ]


def markdown(text: str) -> str:
    """Render Markdown as HTML; raw HTML, links and pictures stay text."""
    from markdown_it import MarkdownIt  # noqa: PLC0415

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.disable(["link", "image", "autolink", "html_inline", "html_block", "reference"])
    return str(reader.render(text[:SHOWN]))
