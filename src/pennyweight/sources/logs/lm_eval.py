"""lm-evaluation-harness: samples, and the results they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from glob import escape
from pathlib import Path
from typing import Any

from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.sources.json_array import JsonArray, loads
from pennyweight.sources.json_lines import json_lines
from pennyweight.sources.log_format import PROBLEM, Log, LogFormat, Row
from pennyweight.sources.log_tally import Expectation, LogTally
from pennyweight.sources.log_values import items, mapping, number, text_of, verdict
from pennyweight.sources.peek import Peek
from pennyweight.text.exam import digest

_INVALID = "[invalid]"
_BYPASS = "bypass"
_OWN = frozenset(
    (
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash"),
    )
)
"""The keys of a sample that are no metric."""
_MAX_RESULTS = 256 << 20


def recognise(peek: Peek) -> bool:
    """Whether a file is a file of samples or of results."""
    if peek.has("doc_id", "resps", "filtered_resps"):
        return True
    results = peek.inside("results")
    if not isinstance(results, dict) or peek.has("config_general"):
        return False
    if peek.has("configs", "versions"):
        return True
    tasks = [task for task in results.values() if isinstance(task, dict)]
    return any("," in key and "alias" in task for task in tasks for key in task)


def home(path: Path) -> Path:
    """Return the path of the results: a log is all that was written at the same time."""
    return path.with_name(f"results_{_moment(path)}.json")


def _moment(path: Path) -> str:
    """Return the time in a name: `results_TIME.json`, `samples_TASK_TIME.jsonl`."""
    return path.name.removesuffix(path.suffix).rpartition("_")[2]


def read(log: Log) -> Iterator[Row]:
    """Yield one record a document: of one filter, by one metric."""
    summary = next((p for p in log.files if _is_results(p)), None) or home(log.files[0])
    results = _results(summary)
    samples = [path for path in log.files if path != summary]
    if not samples:  # only the results were named
        samples = sorted(summary.parent.glob(f"samples_*_{escape(_moment(summary))}.jsonl"))
    if not samples:
        raise InputError([f"{log.path}: it has no samples; run lm_eval with --log_samples."])
    subject = results.get("model_name") or samples[0].parent.name.replace("__", "/")
    some = False
    for path in samples:
        for row in _task(log, path, str(subject), results):
            some = True
            yield row
    if not some and log.options.filter is None:
        log.check_scorer()
    if not some and log.notes:
        raise UsageError(f"--filter: {' '.join(log.notes)}")


def _is_results(path: Path) -> bool:
    return isinstance(Peek.of(path).inside("results"), dict)


def _results(path: Path) -> Mapping[str, Any]:
    """Return the results that samples belong to; nothing if they are not there."""
    if not path.is_file() or path.stat().st_size > _MAX_RESULTS:
        return {}
    return mapping(loads(path.read_bytes()))


def _task(log: Log, path: Path, subject: str, results: Mapping[str, Any]) -> Iterator[Row]:
    moment = _moment(path)
    task = path.name.removeprefix("samples_").removesuffix(path.suffix).removesuffix(f"_{moment}")
    chosen: _Choice | None = None
    seen: set[Any] = set()
    others: dict[str, None] = {}
    for place, sample in _samples(path):
        if not isinstance(sample, dict) or "doc_id" not in sample:
            yield {PROBLEM: f"{path.name}, {place}: not JSON, or no sample."}
            continue
        chosen = chosen or _Choice(sample, log)
        others.setdefault(str(sample.get("filter")))
        log.offer(chosen.metrics)
        if not chosen.takes(sample) or (chosen.filter is None and sample["doc_id"] in seen):
            continue
        if chosen.filter is None:
            seen.add(sample["doc_id"])
        common = {"run": moment, "suite": task, "subject": subject}
        yield common | {"task_id": f"{task}/{sample['doc_id']}"} | _row(sample, chosen.metric, log)
    if chosen is None:
        return
    if chosen.asked and chosen.filter not in others:
        log.note(f"{task} has no filter {chosen.filter!r}, only {', '.join(others)}: left out.")
    _expect(log, task, chosen, mapping(mapping(results.get("results")).get(task)))


def _samples(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the samples: one a line, or in old logs all of them in one array."""
    if Peek.of(path).head.lstrip().startswith(b"["):
        return ((f"sample {n}", loads(text)) for n, text in enumerate(JsonArray(path), 1))
    return ((f"line {n}", value) for n, value in json_lines(path))


class _Choice:
    """The filter and the metric that decide: those asked for, else the first."""

    def __init__(self, sample: Mapping[str, Any], log: Log) -> None:
        listed = items(sample.get("metrics")) or [k for k in sample if k not in _OWN]
        metrics = [str(one) for one in listed]
        scorer, filter_ = log.options.scorer, log.options.filter
        if scorer is not None and "," in scorer and filter_ is None:
            scorer, _, filter_ = scorer.partition(",")
        if scorer is not None and scorer not in metrics and filter_ is None:
            scorer, filter_ = None, scorer  # the name of a filter
        if scorer is not None and scorer not in metrics:
            hint = f"The log has {', '.join(metrics)}."
            raise UsageError(f"--scorer: {unknown('Score', scorer, metrics, hint)}")
        self.metrics = metrics
        self.asked = filter_ is not None
        self.filter = filter_ if self.asked else sample.get("filter")
        self.metric = scorer or next(iter(metrics), None)

    def takes(self, sample: Mapping[str, Any]) -> bool:
        return self.filter is None or sample.get("filter") == self.filter


def _row(sample: Mapping[str, Any], metric: str | None, log: Log) -> Row:
    asked, continuations = _arguments(sample.get("arguments"))
    filtered, replies = items(sample.get("filtered_resps")), items(sample.get("resps"))
    value = None if metric in {None, _BYPASS} else sample.get(metric)
    row: Row = {"input": _text(asked), "target": sample.get("target"), "status": "ok"}
    row |= _exam(sample, log)
    if log.wants("messages") and (messages := _messages(asked)):
        row["messages"] = messages
    first = filtered[0] if filtered else None
    if isinstance(first, list) and len(filtered) > 1 and len(first) == 2:
        best = _best(filtered)
        row["answer"] = None if best is None else str(best)
        row["response"] = None if best is None else continuations.get(best)
    elif isinstance(value, list):
        row |= {"target": None, "logprob": number(first)}
    elif isinstance(first, list) and len(first) == 2 and number(first[0]) is not None:
        row |= {"response": continuations.get(0), "logprob": number(first[0])}
    else:
        several = items(replies[0]) if replies else []
        row["response"] = several[0] if several and isinstance(several[0], str) else None
        answer = first[0] if isinstance(first, list) and first else first
        row["answer"] = None if answer == _INVALID else answer
        if len(several) > 1 and log.wants("responses"):
            row["responses"] = several
    if not isinstance(value, list):
        row |= verdict(value)
    for key in items(sample.get("metrics")):
        if log.wants(key):
            row[key] = sample.get(key)
    if log.wants("scores"):
        row["scores"] = {k: v for k, v in sample.items() if k not in _OWN} or None
    return row


def _exam(sample: Mapping[str, Any], log: Log) -> Row:
    """Return the digest of the document and its target, whatever the prompt made of them."""
    if not log.wants("task_digest"):
        return {}
    case = sample.get("doc_hash") or sample.get("doc")
    return {"task_digest": digest({"case": case, "target": sample.get("target")})}


def _arguments(value: Any) -> tuple[Any, dict[int, Any]]:
    """Return what was asked, and the continuation of each request."""
    if isinstance(value, dict):
        several = [mapping(value.get(f"gen_args_{n}")) for n in range(len(value))]
        asked = several[0].get("arg_0") if several else None
        return asked, {n: one.get("arg_1") for n, one in enumerate(several)}
    lists = [items(one) for one in items(value)]
    asked = lists[0][0] if lists and lists[0] else None
    return asked, {n: one[1] for n, one in enumerate(lists) if len(one) > 1}


def _messages(asked: Any) -> list[Any] | None:
    """Return the messages of a chat, which stand as a JSON text in a list of one."""
    if isinstance(asked, list) and len(asked) == 1 and isinstance(asked[0], str):
        read = loads(asked[0].encode("utf-8", "replace"))
        return read if isinstance(read, list) else None
    return None


def _text(asked: Any) -> str | None:
    messages = _messages(asked)
    if messages is None:
        return text_of(asked)
    said = [text_of(m.get("content")) for m in map(mapping, messages) if m.get("role") == "user"]
    return said[-1] if said else None


def _best(filtered: list[Any]) -> int | None:
    """Return the choice with the highest log-likelihood, the first of equal ones."""
    likely = [number(items(one)[0]) if items(one) else None for one in filtered]
    known = [(value, -index) for index, value in enumerate(likely) if value is not None]
    return -max(known)[1] if known else None


def _expect(log: Log, task: str, chosen: _Choice, reported: Mapping[str, Any]) -> None:
    key = f"{chosen.metric},{chosen.filter or 'none'}"
    value = number(reported.get(key))
    if value is None or not 0 <= value <= 1:
        return

    def ours(tally: LogTally) -> float | None:
        return tally.of(suite=task).mean

    log.expect(Expectation(f"{key} of {task}", value, ours))


FORMAT = LogFormat(
    "lm_eval",
    "lm-evaluation-harness",
    recognise,
    read,
    home,
    scores=True,
    filters=True,
    lost="tokens, cost, latency and errors, which the log does not have; groups of tasks",
)
