"""promptfoo: results as JSON, YAML or JSONL."""

from __future__ import annotations

from pathlib import Path

from pennyweight.sources.logs.declaration import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is an export: one object with all results, or one result a line."""
    if peek.has("promptIdx", "testIdx", "success"):
        return True
    results = peek.inside("results")
    if isinstance(results, dict) and "version" in results:
        return "evalId" in peek.keys or not results.keys().isdisjoint({"prompts", "table", "stats"})
    return peek.text.startswith("evalId:") and "\nresults:" in peek.text


def recognise_form(peek: Peek) -> bool:
    """Whether a file is an export for people: a table, a page or XML."""
    if peek.text.startswith("<"):
        page = peek.text.lstrip().lower()
        return page.startswith("<promptfoo>") or (
            page.startswith("<!doctype") and "promptfoo" in page
        )
    return {"Status", "Score", "Grader Reason"} <= set(peek.columns)


def home(path: Path) -> Path:
    """Return the path without its ending: exports that differ only in it have the same results."""
    return path.with_suffix("")


FORMAT = LogFormat("promptfoo", "promptfoo", recognise, home=home, counts_errors=True)
FORM = LogFormat(
    "promptfoo",
    "promptfoo, in a form for people",
    recognise_form,
    home=home,
    refusal="Export the results as JSON: promptfoo export eval EVAL_ID -o results.json.",
)
