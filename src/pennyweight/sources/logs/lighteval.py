"""lighteval: tables of details, and the results they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.sources.json_array import loads
from pennyweight.sources.log_format import PROBLEM, Log, LogFormat, Row
from pennyweight.sources.log_tally import Expectation, LogTally
from pennyweight.sources.log_values import first, items, mapping, message, number, targets, verdict
from pennyweight.sources.peek import Peek
from pennyweight.sources.table_rows import table_rows

_LARGEST = 256 << 20


def recognise(peek: Peek) -> bool:
    """Whether a file is a table of details, or a file of results."""
    columns = set(peek.columns)
    return (
        columns.issuperset({"doc", "metric", "model_response"})
        or columns.issuperset({"example", "predictions", "gold"})
        or (peek.has("config_general") and "lighteval_sha" in peek.inside("config_general"))
    )


def home(path: Path) -> Path:
    """Return the folder that holds `details` and `results`."""
    above = [one for one in path.parents if one.name in {"details", "results"}]
    return above[0].parent if above else path.parent


def read(log: Log) -> Iterator[Row]:
    """Yield one record a document. Of the results only scores and the model's name are taken."""
    details = [path for path in log.files if Peek.of(path).columns]
    if not details:
        damaged = sorted(one.name for one in log.path.rglob("details_*.parquet"))
        why = "it has no details; run lighteval with --save-details."
        if damaged:
            why = f"{damaged[0]} is cut off or damaged: it is no Parquet table of details."
        raise InputError([f"{log.path}: {why}"])
    results = {_moment(path): _results(path) for path in log.files if path not in details}
    names: dict[str, None] = {}
    for path in details:
        summary = results.get(_moment(path), {})
        subject = summary.get("model") or _model(path)
        for place, row in table_rows(path):
            if not isinstance(row, dict) or not (mapping(row.get("doc")) or row.get("example")):
                yield {PROBLEM: f"{path.name}, {place}: no document."}
                continue
            metrics = mapping(row.get("metric") or row.get("metrics"))
            names |= dict.fromkeys(metrics)
            head = {"run": _moment(path), "subject": subject}
            yield {**head, **_row(row, metrics, path, log)}
        if log.options.scorer is None:
            _expect(summary, next(iter(names), None), log)
    if log.options.scorer is not None and log.options.scorer not in names:
        hint = f"The log has {', '.join(names)}."
        raise UsageError(f"--scorer: {unknown('Metric', log.options.scorer, names, hint)}")


def _moment(path: Path) -> str:
    """Return the time in a name: `details_TASK_TIME.parquet`, `results_TIME.json`."""
    return path.stem.rpartition("_")[2]


def _model(path: Path) -> str | None:
    """Return the model in a path: `details/ORG/MODEL/TIME/….parquet`."""
    parts = path.parts
    if "details" not in parts:
        return None
    inside = parts[len(parts) - parts[::-1].index("details") : -2]
    return "/".join(inside) or None


def _results(path: Path) -> Row:
    """Return the model's name and the scores: the rest of the file may hold a key."""
    whole = mapping(loads(path.read_bytes())) if path.stat().st_size < _LARGEST else {}
    config = mapping(whole.get("config_general"))
    model = mapping(config.get("model_config")).get("model_name") or config.get("model_name")
    return {"model": model, "results": mapping(whole.get("results"))}


def _row(row: Row, metrics: Mapping[str, Any], path: Path, log: Log) -> Row:
    doc, reply = mapping(row.get("doc")), mapping(row.get("model_response"))
    if not doc:  # as older versions wrote it
        doc = {"query": row.get("example"), "choices": items(row.get("gold")), "gold_index": 0}
        reply = {"text": items(row.get("predictions"))}
    task = doc.get("task_name") or path.stem.removeprefix("details_").rpartition("_")[0]
    texts, after = items(reply.get("text")), items(reply.get("text_post_processed"))
    scorer = log.options.scorer or next(iter(metrics), "")
    made: Row = {
        "suite": task,
        "task_id": f"{task}/{doc['id']}" if doc.get("id") is not None else None,
        "status": "ok",
        "input": doc.get("query"),
        "target": _target(doc),
        "response": first(texts),
        "answer": first(after),
        "reasoning": first(items(reply.get("reasonings"))),
        "scores": dict(metrics) or None,
        **verdict(metrics.get(scorer)),
    }
    if log.wants("messages"):
        chat = [mapping(one) for one in items(reply.get("input"))]
        made["messages"] = [message(m.get("role"), m.get("content")) for m in chat if m] or None
    for name, value in mapping(doc.get("specific")).items():
        if log.wants(f"specific.{name}"):
            made[f"specific.{name}"] = value
    if made["task_id"] is None:
        made["task_id"] = str(doc.get("query"))
    return made


def _target(doc: Mapping[str, Any]) -> Any:
    choices, gold = items(doc.get("choices")), doc.get("gold_index")
    places = gold if isinstance(gold, list) else [gold]
    inside = [one for one in places if isinstance(one, int) and 0 <= one < len(choices)]
    return targets([choices[one] for one in inside])


def _expect(summary: Mapping[str, Any], metric: str | None, log: Log) -> None:
    for task, values in mapping(summary.get("results")).items():
        value = number(mapping(values).get(metric)) if metric else None
        if task != "all" and value is not None:
            log.expect(Expectation(f"{metric} of {task}", value, partial(_mean, task)))


def _mean(task: str, tally: LogTally) -> float | None:
    return tally.of(suite=task).mean


FORMAT = LogFormat(
    "lighteval",
    "lighteval",
    recognise,
    read,
    home,
    scores=True,
    lost="log-probabilities, token ids, further samples of a document, the configuration",
)
