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
from assay.record import COLUMNS
from assay.run.source import RunSource
from assay.store.store import RECORD_COLUMNS
from assay.text.extract import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.store.store import Run, Store

_STEP = re.compile(STEP)
_CORRECTION = re.compile(f"({CORRECTION.replace('(?i-u:', '(?:')})", re.IGNORECASE)
SHOWN = 60_000
"""Characters of a text that a page shows; the whole is one click away."""
DIFFERING = 4_000
"""Words up to which two texts are compared."""
PARTS = ("text", "mark")
Piece = tuple[str, bool]


def measures(run: Run, store: Store, row: Mapping[str, Any]) -> dict[str, Any]:
    """Compute every measure of one record, by the rules of its run."""
    known = [c.name for c in COLUMNS]
    values = {n: row[n] for n in RECORD_COLUMNS if n in known}
    columns = {n: pl.Series(n, [values.get(n)], dtype=dtype(n), strict=False) for n in known}
    options = RunSource(run, store).options()
    frame = pl.LazyFrame(list(columns.values()))
    found = add_measures(frame, measure_passes(MEASURES.values(), options)).collect()
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


def found_in(reply: str | None, answer: str | None) -> list[Piece]:
    """Mark where the answer stands in the reply: the last place, as it is looked for.

    >>> found_in("7, or 8. So 7.", "7")
    [('7, or 8. So ', False), ('7', True), ('.', False)]
    """
    text = (reply or "")[:SHOWN]
    at = text.rfind(answer) if answer else -1
    if at < 0 or answer is None:
        return [(text, False)] if text else []
    pieces = [(text[:at], False), (answer, True), (text[at + len(answer) :], False)]
    return [piece for piece in pieces if piece[0]]


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


def judged(row: Mapping[str, Any]) -> dict[str, Any]:
    """Read a judgment with its items."""
    try:
        items = json.loads(row.get("items") or "[]")
    except ValueError:
        items = []
    listed = items if isinstance(items, list) else []
    return {**row, "items": [i for i in listed if isinstance(i, dict)]}


def checks(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Read what was checked, with the evidence."""
    try:
        found = json.loads(row.get("checks") or "[]")
    except ValueError:
        return []
    return [c for c in found if isinstance(c, dict)] if isinstance(found, list) else []


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
