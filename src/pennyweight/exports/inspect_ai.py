"""Inspect AI: one `.eval` archive for each subject and tier.

What Inspect has no place for is in the metadata of samples and scores, under `pennyweight`, where
`sources/logs/inspect_samples.py` finds it again.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pennyweight.exports.export_format import ExportedRun, ExportFormat, RecordRow
from pennyweight.exports.values import (
    arguments,
    conversation,
    dumped,
    file_name,
    iso,
    mappings,
    parsed,
    side_of,
)
from pennyweight.record import BY_NAME

HEADLINE = "passed"
_OURS = "pennyweight"
_JUDGES = "judges"
_STATUSES = {"done": "success", "stopped": "cancelled", "running": "started", "failed": "error"}
_LIMITS = {"timeout": "time", "budget": "cost"}
_ROLES = {"system", "user", "assistant", "tool"}
_SUMMARIES = 1000
_CUT = 1000

_VERDICT = frozenset({
    *("impl_rate", "correct", "judge_passed", "judge_scores", "undecided"),
    *("expected", "observed", "violations"),
    *("expected_behaviors", "observed_behaviors", "violated"),
})  # fmt: skip
"""Columns that belong to the verdict: a new score of the sample does not inherit them."""
_PLACED = frozenset({
    *("run", "subject", "task_id", "attempt", "status", "error", "input", "target", "response"),
    *("reasoning", "logprobs", "passed", "prompt_tokens", "completion_tokens", "cached_tokens"),
    *("cache_write_tokens", "reasoning_tokens", "cost_usd", "judge_cost_usd", "latency_ms"),
    *("duration_seconds", "start_time", "end_time", "category", "capability", "checks", "scores"),
    *("tool", "matched_by"),
})  # fmt: skip
"""Columns that Inspect has a place for, or that are of no use in it."""
_COUNTS = ("prompt_tokens", "completion_tokens")
_FURTHER = tuple(name for name in BY_NAME if name not in _PLACED | _VERDICT)


@dataclass(slots=True)
class _Archive:
    """One log that is being written."""

    file: zipfile.ZipFile
    run: ExportedRun
    subject: str
    tier: str
    samples: int = 0
    completed: int = 0
    passes: int = 0
    decided: int = 0
    epochs: int = 1
    part: int = 0
    summaries: list[dict[str, Any]] = field(default_factory=list)

    def add(self, row: RecordRow) -> None:
        """Write one sample."""
        sample = sample_of(row)
        self.file.writestr(f"samples/{row['task_id']}_epoch_{row['attempt']}.json", dumped(sample))
        self.samples += 1
        self.completed += sample["error"] is None
        self.epochs = max(self.epochs, row["attempt"])
        if row["passed"] is not None and row["status"] != "error":
            self.decided += 1
            self.passes += row["passed"]
        self.summaries.append(_summary(sample))
        if len(self.summaries) >= _SUMMARIES:
            self.summarise()

    def summarise(self) -> None:
        """Write the summaries so far, which the viewer lists."""
        self.part += 1
        self.file.writestr(f"_journal/summaries/{self.part}.json", dumped(self.summaries))
        self.summaries = []

    def finish(self) -> None:
        """Write the header."""
        self.summarise()
        start = {"version": 2, "eval": self._spec(), "plan": {"name": "plan", "steps": []}}
        self.file.writestr("_journal/start.json", dumped(start))
        rate = self.passes / self.decided if self.decided else None
        metrics = {} if rate is None else {"pass_rate": {"name": "pass_rate", "value": rate}}
        score: dict[str, Any] = {"name": HEADLINE, "scorer": HEADLINE, "metrics": metrics}
        score["scored_samples"] = self.decided
        score["unscored_samples"] = self.samples - self.decided
        results = {"total_samples": self.samples, "completed_samples": self.completed}
        ended = {
            "status": _STATUSES.get(self.run.status, "success"),
            "results": {**results, "scores": [score] if metrics else []},
        }
        if ended["status"] == "error":
            message = "The run failed."
            ended["error"] = {"message": message, "traceback": "", "traceback_ansi": ""}
        self.file.writestr("header.json", dumped({**start, **ended}))

    def _spec(self) -> dict[str, Any]:
        return {
            "run_id": self.run.id,
            "eval_id": file_name(self.run.id, self.subject, self.tier),
            "task_id": self.run.suite,
            "created": iso(self.run.created),
            "task": self.run.suite,
            "task_args": {"tier": self.tier},
            "tags": [self.tier],
            "dataset": {"name": self.run.suite},
            "model": self.subject,
            "config": {"epochs": self.epochs},
            "packages": {_OURS: self.run.version},
            "metadata": {"tier": self.tier},
        }


def write(folder: Path, run: ExportedRun, rows: Iterator[RecordRow]) -> None:
    """Write an archive for each subject and tier, all at the same time."""
    archives: dict[tuple[str, str], _Archive] = {}
    with ExitStack() as files:
        for row in rows:
            side = side_of(row)
            if side not in archives:
                path = folder / f"{file_name(*side)}.eval"
                zipped = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
                archives[side] = _Archive(files.enter_context(zipped), run, *side)
            archives[side].add(row)
        for archive in archives.values():
            archive.finish()


def sample_of(row: RecordRow) -> dict[str, Any]:
    """Return a record as a sample."""
    further = {name: row[name] for name in _FURTHER if row.get(name) is not None}
    if not _counted(row):
        further |= {name: row.get(name) for name in _COUNTS}  # Inspect writes 0 for unknown
    further |= {"truncated": row.get("truncated"), "error_kind": row.get("error_kind")}
    decided = {name: row[name] for name in _VERDICT if row.get(name) is not None}
    decided["impl_rate"] = row.get("impl_rate")
    scores = _scores(row, decided)
    about = {name: row[name] for name in ("category", "capability") if row.get(name) is not None}
    task = parsed(row.get("extra"))
    messages = [_message(one) for one in conversation(row)]
    return {
        "id": row["task_id"],
        "epoch": row["attempt"],
        "input": row.get("input") or "",
        "target": "" if row.get("target") is None else row["target"],
        "messages": messages,
        "output": _output(row, messages),
        "scores": scores or None,
        "metadata": {
            **(task if isinstance(task, dict) else {}),
            **about,
            _OURS: further if HEADLINE in scores else {**further, **decided},
        },
        "store": {},
        "events": [],
        "model_usage": _usage(row),
        "started_at": iso(row.get("started")),
        "completed_at": iso(row.get("ended")),
        "total_time": row.get("duration_seconds"),
        "error": _error(row),
        "limit": _limit(row),
        "attachments": {},
    }


def _scores(row: RecordRow, decided: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdict, then the scores that scorers gave."""
    scores: dict[str, Any] = {}
    if row.get("passed") is not None and row["status"] != "error":
        scores[HEADLINE] = {
            "value": "C" if row["passed"] else "I",
            "answer": row.get("answer"),
            "explanation": _why(row),
            "metadata": {_OURS: decided},
        }
    given = parsed(row.get("scores"))
    for name, value in given.items() if isinstance(given, dict) else ():
        if isinstance(value, int | float | str) and name != HEADLINE:
            scores[name] = {"value": value}
    return scores


def _why(row: RecordRow) -> str | None:
    """Return what the checks found, one line each."""
    words = {True: "holds", False: "does not hold", None: "undecided"}
    lines = []
    for one in mappings(row.get("checks")):
        why = f": {one['why']}" if one.get("why") else ""
        lines.append(f"{one.get('name')} {words.get(one.get('holds'), 'undecided')}{why}")
    return "\n".join(lines) or None


def _output(row: RecordRow, messages: list[dict[str, Any]]) -> dict[str, Any]:
    latency = row.get("latency_ms")
    output: dict[str, Any] = {"model": row.get("model") or row["subject"], "choices": []}
    output["time"] = None if latency is None else latency / 1000
    if row.get("response") is None:
        return output
    said: dict[str, Any] = {"role": "assistant", "content": row["response"]}
    if row.get("reasoning"):
        thought = {"type": "reasoning", "reasoning": row["reasoning"]}
        said["content"] = [thought, {"type": "text", "text": row["response"]}]
    if messages[-1].get("tool_calls"):
        said["tool_calls"] = messages[-1]["tool_calls"]
    choice = {"message": said, "stop_reason": _stop(row)}
    pairs = parsed(row.get("logprobs"))
    if isinstance(pairs, list):
        tokens = [{"token": token, "logprob": value} for token, value in pairs]
        choice["logprobs"] = {"content": tokens}
    return {**output, "choices": [choice], "completion": row["response"]}


def _stop(row: RecordRow) -> str:
    if row.get("truncated"):
        return "max_tokens"
    return "content_filter" if row.get("refused") else "stop"


def _usage(row: RecordRow) -> dict[str, Any]:
    """Return tokens and cost. Inspect counts the cache apart from `input_tokens`."""
    read, written = row.get("prompt_tokens"), row.get("completion_tokens")
    cached, stored = row.get("cached_tokens"), row.get("cache_write_tokens")
    own: dict[str, Any] = {}
    if read is not None and written is not None and _counted(row):
        own |= {
            "input_tokens": read - (cached or 0) - (stored or 0),
            "output_tokens": written,
            "total_tokens": read + written,
        }
    kept = {
        "input_tokens_cache_read": cached,
        "input_tokens_cache_write": stored,
        "reasoning_tokens": row.get("reasoning_tokens"),
        "total_cost": row.get("cost_usd"),
    }
    own |= {name: value for name, value in kept.items() if value is not None}
    usage = {row["subject"]: own} if own else {}
    if row.get("judge_cost_usd") is not None:
        usage[_JUDGES] = {"total_cost": row["judge_cost_usd"]}
    return usage


def _counted(row: RecordRow) -> bool:
    """Whether both counts are known, without which Inspect's total means nothing."""
    return all(row.get(name) is not None for name in _COUNTS) and sum(row[n] for n in _COUNTS) > 0


def _error(row: RecordRow) -> dict[str, str] | None:
    if row["status"] != "error":
        return None
    return {"message": row.get("error") or "error", "traceback": "", "traceback_ansi": ""}


def _limit(row: RecordRow) -> dict[str, Any] | None:
    kind = _LIMITS.get(row["status"])
    reached = row.get("duration_seconds") if kind == "time" else row.get("cost_usd")
    return {"type": kind, "limit": reached or 0.0} if kind else None


def _message(one: Mapping[str, Any]) -> dict[str, Any]:
    role = one.get("role") if one.get("role") in _ROLES else "user"
    made: dict[str, Any] = {"role": role, "content": str(one.get("content") or "")}
    if role == "tool":
        made |= {"function": one.get("name"), "tool_call_id": one.get("call_id")}
    if role == "assistant" and (calls := mappings(one.get("tool_calls"))):
        made["tool_calls"] = [
            {
                "id": call["id"],
                "function": str(call.get("name") or ""),
                "arguments": arguments(call),
                "type": "function",
            }
            for call in calls
        ]
    return made


def _summary(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the list of samples shows, with long texts cut."""
    scores = (sample["scores"] or {}).items()
    names = ("id", "epoch", "model_usage", "started_at", "completed_at", "total_time")
    return {
        **{name: sample[name] for name in names},
        "input": sample["input"][:_CUT],
        "target": str(sample["target"])[:_CUT],
        "scores": {name: {"value": one["value"]} for name, one in scores} or None,
        "error": sample["error"]["message"][:_CUT] if sample["error"] else None,
        "limit": sample["limit"]["type"] if sample["limit"] else None,
        "completed": True,
        "message_count": len(sample["messages"]),
    }


FORMAT = ExportFormat(
    "inspect",
    "Inspect AI",
    write,
    lost="judges' single judgments, the files of agents, retries and waiting times, seeds",
)
