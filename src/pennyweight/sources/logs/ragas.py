"""Ragas: a table of results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pennyweight.errors import UsageError, unknown
from pennyweight.sources.log_format import PROBLEM, Log, LogFormat, Row
from pennyweight.sources.log_values import number, text_of, verdict
from pennyweight.sources.peek import Peek
from pennyweight.sources.table_rows import best_form, cell, table_rows

_SAMPLE = frozenset(
    (
        *("user_input", "response", "reference", "retrieved_contexts", "reference_contexts"),
        *("reference_tool_calls", "reference_topics", "rubrics", "multi_responses"),
        *("persona_name", "query_style", "query_length", "synthesizer_name"),
    )
)
"""The columns of a sample; all other columns of numbers are metrics."""


def recognise(peek: Peek) -> bool:
    """Whether a file is a table of results, or a data set."""
    return peek.has("user_input") and not peek.keys.isdisjoint(
        {"reference", "retrieved_contexts", "reference_contexts"}
    )


def read(log: Log) -> Iterator[Row]:
    """Yield the samples; the first metric decides, unless another is chosen."""
    for path in best_form(log, [path for path in log.files if _metrics(path)]):
        if not _metrics(path):
            log.note("a data set without results; responses are compared with references.")
        names: dict[str, None] = {}
        tasks: dict[str, int] = {}
        for place, values in table_rows(path):
            if not isinstance(values, dict) or "user_input" not in values:
                yield {PROBLEM: f"{place}: not JSON, or no sample."}
                continue
            scores = _scores(values)
            names |= dict.fromkeys(scores)
            yield {"run": path.stem, **_row(values, scores, tasks, log)}
        if log.options.scorer is not None and log.options.scorer not in names:
            hint = f"The table has {', '.join(names)}."
            raise UsageError(f"--scorer: {unknown('Metric', log.options.scorer, names, hint)}")


def home(path: Path) -> Path:
    """Return the path up to the first dot: a table, its data set and other forms of both."""
    return path.with_name(path.name.partition(".")[0])


def _metrics(path: Path) -> set[str]:
    return {str(key) for key in Peek.of(path).keys} - _SAMPLE


def _scores(values: Row) -> dict[str, float | None]:
    return {
        name: number(value)
        for name, value in values.items()
        if name not in _SAMPLE and (value in {None, ""} or number(value) is not None)
        if isinstance(value, int | float | str | None)
    }


def _row(values: Row, scores: dict[str, float | None], tasks: dict[str, int], log: Log) -> Row:
    asked = cell(values["user_input"])
    if isinstance(asked, list):  # a conversation
        asked = "\n".join(text_of(turn.get("content")) or "" for turn in map(dict, asked))
    task = str(tasks.setdefault(str(asked), len(tasks) + 1))
    scorer = log.options.scorer or next(iter(scores), None)
    score = scores.get(scorer) if scorer else None
    row: Row = {
        "task_id": task,
        "status": "ok",
        "input": asked,
        "answer": values.get("response") or None,
        "response": values.get("response") or None,
        "target": values.get("reference") or None,
        "context": _joined(cell(values.get("retrieved_contexts"))),
        "scores": scores or None,
        **verdict(score),
    }
    if scorer and score is None:
        row["undecided"] = [scorer]
    return row


def _joined(context: Any) -> str | None:
    return "\n\n".join(map(str, context)) if isinstance(context, list) else context


FORMAT = LogFormat(
    "ragas",
    "Ragas",
    recognise,
    read,
    home,
    scores=True,
    lost="the metrics' own prompts and traces, rubrics",
)
