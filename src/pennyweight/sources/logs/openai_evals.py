"""OpenAI Evals: the events of an eval, in lines of JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pennyweight.sources.json_lines import json_lines
from pennyweight.sources.log_format import PROBLEM, Log, LogFormat, Row
from pennyweight.sources.log_tally import Expectation
from pennyweight.sources.log_values import count, items, mapping, message, number, targets, verdict
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is the events of an eval."""
    return (
        peek.inside("spec", "completion_fns") is not None
        or peek.inside("spec", "eval_name") is not None
        or peek.has("run_id", "event_id", "sample_id", "type")
    )


def read(log: Log) -> Iterator[Row]:
    """Yield one record a sample, once all events are read: they come in any order."""
    for path in log.files:
        rows: dict[Any, Row] = {}
        head: Row = {"run": path.stem}
        report: Mapping[str, Any] = {}
        for line, event in json_lines(path):
            if not isinstance(event, dict):
                yield {PROBLEM: f"line {line}: not JSON."}
            elif "spec" in event:
                head = _head(mapping(event["spec"])) | {"run": event["spec"].get("run_id")}
            elif "final_report" in event:
                report = mapping(event["final_report"])
            elif event.get("sample_id") is not None:
                sample = event["sample_id"]
                row = rows.setdefault(sample, {**head, "task_id": sample, "status": "ok"})
                _add(row, event.get("type"), event.get("data"), log)
        if not report:
            log.note("the eval has no final report: it was aborted.")
        elif (accuracy := number(report.get("accuracy"))) is not None and not log.options.scorer:
            log.expect(Expectation("accuracy", accuracy, lambda tally: tally.of().mean))
        for row in rows.values():
            yield _checked(row)
    log.check_scorer()


def _head(spec: Mapping[str, Any]) -> Row:
    subjects = ", ".join(str(name) for name in items(spec.get("completion_fns")))
    return {"subject": subjects or None, "suite": spec.get("eval_name")}


def _add(row: Row, kind: Any, data: Any, log: Log) -> None:
    """Add one event to its sample. The first sampling is the subject's, others the grader's."""
    values = mapping(data)
    if kind == "sampling" and "response" not in row:
        prompt, sampled = values.get("prompt"), values.get("sampled")
        usage = mapping(values.get("usage"))
        row |= {
            "input": _asked(prompt),
            "response": sampled[0] if isinstance(sampled, list) and sampled else sampled,
            "prompt_tokens": count(usage.get("prompt_tokens")),
            "completion_tokens": count(usage.get("completion_tokens")),
        }
        if log.wants("messages") and isinstance(prompt, list):
            chat = [message(m.get("role"), m.get("content")) for m in map(mapping, prompt)]
            row["messages"] = chat
    elif kind == "match":
        expected = values.get("expected")
        row |= verdict(values.get("correct"), values.get("correct"))
        row |= {"target": targets(expected), "answer": values.get("picked")}
    elif kind == "metrics":
        log.offer(values)
        row["scores"] = {**mapping(row.get("scores")), **values}
        if log.options.scorer is not None:
            row |= verdict(values.get(log.options.scorer))
        elif "passed" not in row and "score" in values:
            row |= verdict(values["score"])
        if isinstance(choice := values.get("choice"), str):
            row["choice"] = choice
    elif kind == "error":
        row |= {"status": "error", "error": values.get("message") or str(data)}


def _checked(row: Row) -> Row:
    """Return a sample; one that was never answered is an error."""
    if "response" not in row and "passed" not in row and row["status"] == "ok":
        row |= {"status": "error", "error": "The log has no reply to this sample."}
    return row


def _asked(prompt: Any) -> str | None:
    """Return the last message of a prompt, which is the sample's own; the first may be shots."""
    if isinstance(prompt, list) and prompt:
        return str(mapping(prompt[-1]).get("content") or "") or None
    return prompt if isinstance(prompt, str) else None


FORMAT = LogFormat(
    "openai_evals",
    "OpenAI Evals",
    recognise,
    read,
    scores=True,
    lost="later samplings (the grader's, and further turns), events of other types, latency",
)
