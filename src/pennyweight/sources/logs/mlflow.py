"""MLflow: the table of an evaluation's results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pennyweight.sources.log_format import PROBLEM, Log, LogFormat, Row
from pennyweight.sources.log_source import json_text
from pennyweight.sources.log_values import (
    count,
    first,
    items,
    mapping,
    message,
    number,
    text_of,
    verdict,
)
from pennyweight.sources.peek import Peek
from pennyweight.sources.table_rows import best_form, cell, one_table, table_rows

_VALUE, _TARGETS = "/value", ("expected_response", "expected_output", "ground_truth")
_TEXTS = (*(name + _VALUE for name in _TARGETS), "request", "response")
_WORDS = {"yes": True, "no": False, "pass": True, "fail": False, "true": True, "false": False}


def recognise(peek: Peek) -> bool:
    """Whether a file is a table of results."""
    return peek.has("trace_id") and any(key.endswith("/value") for key in peek.keys)


def read(log: Log) -> Iterator[Row]:
    """Yield the traces; the first yes-or-no score decides, else the first of all."""
    for path in best_form(log):
        tasks: dict[str, int] = {}
        theirs: list[tuple[bool, float | None]] = []
        scorer = log.options.scorer
        for place, found in table_rows(path):
            if not isinstance(found, dict) or not found.get("trace_id"):
                yield {PROBLEM: f"{place}: not JSON, or no trace."}
                continue
            kept = {name: found[name] for name in _TEXTS if name in found}  # text stays text
            values = {name: cell(value) for name, value in found.items()} | kept
            scores = _scores(values)
            log.offer(scores)
            scorer = scorer or _headline(scores)
            row = _row(values, scores, scorer, tasks, log)
            theirs.append((row["status"] == "error", _score(scores.get(scorer or ""))))
            yield {"run": path.stem, **row}
        _tell_errors(log, scorer, theirs)
    log.check_scorer()


def _tell_errors(log: Log, scorer: str | None, theirs: Sequence[tuple[bool, float | None]]) -> None:
    """Say what the mean is with the scores that MLflow gives traces that ended with an error."""
    every = [score for _, score in theirs if score is not None]
    broken = sum(failed and score is not None for failed, score in theirs)
    if broken:
        log.note(
            f"MLflow scores traces that ended with an error too: its mean of {scorer} is "
            f"{sum(every) / len(every):.6g} over {len(every):,} traces, {broken:,} of them errors. "
            "The scores here leave errors out."
        )


def _score(value: Any) -> float | None:
    decided = _decision(value)
    return number(value) if decided is None else float(decided)


def _scores(values: Row) -> dict[str, Any]:
    """Return the scores by name; what people expect is none."""
    trace = mapping(values.get("trace"))
    made = items(values.get("assessments")) or items(mapping(trace.get("info")).get("assessments"))
    targets = {one.get("assessment_name") for one in map(mapping, made) if "expectation" in one}
    return {
        name.removesuffix(_VALUE): value
        for name, value in values.items()
        if name.endswith(_VALUE) and name.removesuffix(_VALUE) not in {*targets, *_TARGETS}
    }


def _headline(scores: Mapping[str, Any]) -> str | None:
    decided = (name for name, value in scores.items() if _decision(value) is not None)
    return next(decided, None)


def _decision(value: Any) -> bool | None:
    return value if isinstance(value, bool) else _WORDS.get(str(value).lower())


def _row(
    values: Row, scores: Mapping[str, Any], scorer: str | None, tasks: dict[str, int], log: Log
) -> Row:
    trace = mapping(values.get("trace"))
    info = mapping(trace.get("info"))
    about = mapping(values.get("trace_metadata") or info.get("trace_metadata"))
    request = first((_nested(values.get("request")), _nested(about.get("mlflow.traceInputs"))))
    reply = first((_nested(values.get("response")), _nested(about.get("mlflow.traceOutputs"))))
    usage = mapping(_nested(about.get("mlflow.trace.tokenUsage")))
    asked = _asked(request)
    row: Row = {
        "task_id": str(tasks.setdefault(str(asked), len(tasks) + 1)),
        "trace_id": values["trace_id"],
        "subject": mapping(request).get("model"),
        "input": asked,
        "response": _said(reply),
        "target": first(values.get(name + _VALUE) or None for name in _TARGETS),
        "prompt_tokens": count(usage.get("input_tokens")),
        "completion_tokens": count(usage.get("output_tokens")),
        "latency_ms": number(values.get("execution_duration")),
        "scores": dict(scores) or None,
    }
    if log.wants("messages") and (chat := items(mapping(request).get("messages"))):
        row["messages"] = [message(m.get("role"), m.get("content")) for m in map(mapping, chat)]
    state = values.get("state") or info.get("state")
    if state == "ERROR":
        return {**row, "status": "error", "error": _reason(trace, values)}
    value = scores.get(scorer) if scorer else None
    decided = _decision(value)
    broken = [name for name in scores if values.get(f"{name}/error_message")]
    if scorer in broken:
        row["undecided"] = [scorer]
    return {**row, "status": "ok", **verdict(_score(value), decided)}


def _nested(value: Any) -> Any:
    """Return JSON that stands in a text; other text, and numbers in a text, as they are."""
    if isinstance(value, str) and value:
        found = cell(value)
        return found if isinstance(found, dict | list | str) else value
    return value or None


def _asked(request: Any) -> str | None:
    chat = items(mapping(request).get("messages"))
    if chat:
        return text_of(mapping(chat[-1]).get("content"))
    return request if request is None or isinstance(request, str) else json_text(request)


def _said(reply: Any) -> Any:
    choice = mapping(next(iter(items(mapping(reply).get("choices"))), None))
    said = text_of(mapping(choice.get("message")).get("content"))
    return reply if said is None else said


def _reason(trace: Mapping[str, Any], values: Row) -> str:
    spans = items(mapping(trace.get("data")).get("spans")) or items(values.get("spans"))
    for span in map(mapping, spans):
        for event in map(mapping, items(span.get("events"))):
            if found := mapping(event.get("attributes")).get("exception.message"):
                return str(found)
    return "The trace ended with an error."


FORMAT = LogFormat(
    "mlflow",
    "MLflow",
    recognise,
    read,
    one_table,
    scores=True,
    lost="spans below the request, rationales, tags",
)
