"""Suites that nobody wrote: a file of tasks, or a single prompt, and the models to ask.

The prompt is the input. Where tasks have targets, a reply is right if it contains the target, or if
its last number is the target where all targets are numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from pennyweight.errors import UsageError
from pennyweight.schema.documents import Document, read_document
from pennyweight.sources.files import format_of
from pennyweight.suite.values import LoadedSuite
from pennyweight.text.extraction import AnswerRule
from pennyweight.text.matching import MatchRule, are_numbers

PROMPT = "<prompt>"
"""The path of a suite that is a single prompt; no file has it."""
DOCUMENTS = frozenset({".yaml", ".yml", ".json"})
"""Endings of suites, and of files of tasks if they hold a list."""
_START = '{"suite": '
RULES: dict[str, Mapping[str, Any]] = {
    "numbers": {"answer": "last_number", "match": "numeric"},
    "texts": {"answer": {"regex": "(?s).+"}, "match": "contains"},
}


def is_implied(text: str) -> bool:
    """Whether the text of a suite is one that was made here."""
    if not text.startswith(_START) or "\n" in text:
        return False
    try:
        return set(json.loads(text)) <= {"suite", "tasks", "answer", "match"}
    except ValueError:
        return False


def _is_table(path: Path) -> bool:
    return path.suffix.lower() not in DOCUMENTS and format_of(path) is not None


def open_document(path: str | Path, text: str | None, *, models: bool) -> Document:
    """Read a suite, or make one for a file of tasks or a prompt if `models` were named."""
    hint = "'pennyweight init' creates a first suite."
    if " " in str(path).strip():
        hint += " To ask a model this question, name it: -m PROVIDER/NAME."
    if text is not None:
        return read_document(path, text)
    path, text = _implied(path, models=models)
    document = read_document(path, text, missing_hint=hint)
    if text is None and models and document.root.is_list:
        document = read_document(path, _text_of_table(path, models=models))
    return document


def _implied(path: str | Path, *, models: bool) -> tuple[str | Path, str | None]:
    """Return the path and the text of a suite that a file of tasks or a prompt stands for.

    The text is None where the path is that of a suite. `models` says whether models were named.
    """
    place = Path(path)
    if _is_table(place):
        return path, _text_of_table(path, models=models) if place.is_file() else None
    is_words = isinstance(path, str) and place.suffix.lower() not in DOCUMENTS
    if not (models and is_words and str(path).strip()) or "\0" in str(path) or _exists(place):
        return path, None
    task = {"id": "prompt", "input": str(path)}
    return PROMPT, json.dumps({"suite": "prompt", "tasks": [task]}, ensure_ascii=False)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a prompt that is too long for a name
        return False


def _text_of_table(path: str | Path, *, models: bool) -> str:
    """Return the text of a suite for a file of tasks."""
    name = Path(path).name
    if not models:
        raise UsageError(
            f"{path} is a file of tasks, not a suite. Name the models to ask: "
            f"pennyweight run {path} -m PROVIDER/NAME"
        )
    return json.dumps({"suite": name.split(".")[0], "tasks": name}, ensure_ascii=False)


def with_rules(suite: LoadedSuite, given: Mapping[str, Any]) -> LoadedSuite:
    """Return an implied suite with the rules that suit its targets, unless some are given."""
    found = [task.target for task in suite.tasks if task.target is not None]
    if not found or "answer" in given or "match" in given:
        return suite
    kind = "numbers" if are_numbers(pl.Series(found)).all() else "texts"
    rules = RULES[kind]
    return replace(
        suite,
        text=json.dumps({**json.loads(suite.text), **rules}, ensure_ascii=False),
        answer=AnswerRule.parse(rules["answer"]),
        match=MatchRule.parse(rules["match"]),
    )


def rule_words(suite: LoadedSuite) -> str | None:
    """Describe how replies of an implied suite are scored; None where there is no target."""
    if not is_implied(suite.text) or all(task.target is None for task in suite.tasks):
        return None
    how = "its last number is the target" if suite.match.kind == "numeric" else "it has the target"
    return (
        f"Each input is the prompt as it is, and a reply is right if {how}. "
        "--set prompt=…, answer=… and match=… change that; 'pennyweight init' writes a suite."
    )
