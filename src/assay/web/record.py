"""One record as a page shows it: steps, corrections, where the answer was found, differences."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, Any

import polars as pl

from assay.catalogue import MEASURES
from assay.define import add_measures, dtype, measure_passes
from assay.measures.reasoning import CORRECTION, STEP
from assay.record import BY_NAME
from assay.run.source import RunSource
from assay.store.store import RECORD_COLUMNS
from assay.text.extract import KINDS
from assay.web.checking import judged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.run.observe import Observer
    from assay.store.store import Run, Store

_STEP = re.compile(STEP)
_CORRECTION = re.compile(f"({CORRECTION.replace('(?i-u:', '(?:')})", re.IGNORECASE)
SHOWN = 60_000
"""Characters of a text that a page shows; the whole is one click away."""
DIFFERING = 4_000
"""Words up to which two texts are compared."""
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
    reply: str | None, answer: str | None, evidence: Sequence[tuple[int, int]] = ()
) -> list[tuple[str, str]]:
    """Mark where the answer stands in a reply (the last place), and what checks rest on.

    >>> found_in("7, or 8. So 7.", "7", [(3, 7)])
    [('7, ', ''), ('or 8', 'evidence'), ('. So ', ''), ('7', 'found'), ('.', '')]
    """
    text = (reply or "")[:SHOWN]
    at = text.rfind(answer) if answer else -1
    marks = [(at, at + len(answer), "found")] if answer and at >= 0 else []
    marks += [(start, end, "evidence") for start, end in evidence if end - start < len(text)]
    pieces, done = [], 0
    for start, end, kind in sorted(marks):
        if done <= start < end <= len(text):
            pieces += [(text[done:start], ""), (text[start:end], kind)]
            done = end
    return [piece for piece in (*pieces, (text[done:], "")) if piece[0]]


def rule_in_words(settings: Mapping[str, Any]) -> str:
    """Say how the answer was looked for."""
    rule = settings.get("answer") or {}
    words = KINDS.get(rule.get("kind", ""), "")
    value = f" ({rule['value']})" if rule.get("value") else ""
    return f"{words}{value}"


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
    """Read the tools that were called, in their order."""
    found: list[dict[str, str]] = []
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
                given = one.get("arguments", one.get("input", one.get("result")))
                found.append({"name": name, "arguments": _flat(given) if given else ""})
    return found


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


def difference(first: str | None, second: str | None) -> tuple[list[Piece], list[Piece]]:
    """Mark the words of two texts that are not in both.

    >>> difference("it is 7", "it is 8")
    ([('it is ', False), ('7', True)], [('it is ', False), ('8', True)])
    """
    texts = (first or "")[:SHOWN], (second or "")[:SHOWN]
    words = [re.findall(r"\s+|\w+|[^\w\s]", text) for text in texts]
    if max(map(len, words)) > DIFFERING:
        return [(texts[0], False)], [(texts[1], False)]
    matcher = difflib.SequenceMatcher(None, words[0], words[1], autojunk=False)
    sides: tuple[list[Piece], list[Piece]] = ([], [])
    for kind, a, b, c, d in matcher.get_opcodes():
        for side, part in zip(sides, (words[0][a:b], words[1][c:d]), strict=True):
            if part:
                side.append(("".join(part), kind != "equal"))
    return sides


def markdown(text: str) -> str:
    """Render Markdown as HTML; raw HTML, links and pictures stay text."""
    from markdown_it import MarkdownIt  # noqa: PLC0415

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.disable(["link", "image", "autolink", "html_inline", "html_block", "reference"])
    return str(reader.render(text[:SHOWN]))
