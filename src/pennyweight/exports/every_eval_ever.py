"""Every Eval Ever: an aggregate and a file of samples for each subject and tier."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pennyweight.exports.export_format import ExportedRun, ExportFormat, RecordRow
from pennyweight.exports.values import arguments, conversation, dumped, file_name, mappings, side_of
from pennyweight.scoring.estimates import Estimate

SCHEMA = "0.3.0"
METRIC = "pass_rate"
_UNKNOWN = "unknown"
_METADATA = (
    *("attempt", "tier", "status", "error_kind", "category", "capability", "cost_usd"),
    *("judge_cost_usd", "impl_rate", "judge_scores", "correct", "prob_correct", "truncated"),
    *("expected_behaviors", "observed_behaviors", "violated", "undecided"),
)
"""Columns without a place of their own, as text in the metadata of a sample."""


@dataclass(slots=True)
class _Evaluation:
    """One subject in one tier that is being written."""

    run: ExportedRun
    side: tuple[str, str]
    folder: Path
    place: str
    file: IO[bytes]
    rows: int = 0
    errors: int = 0

    @property
    def model(self) -> str:
        """The id of the model: its developer and its name."""
        subject = self.side[0]
        return subject if "/" in subject.strip("/") else f"{_UNKNOWN}/{subject}"

    @property
    def identity(self) -> str:
        """The id of the evaluation, which its samples refer to."""
        return f"{self.run.suite}/{self.model}/{self.side[1]}/{self.run.id}"

    def add(self, row: RecordRow) -> None:
        """Write one sample."""
        line = dumped({
            "schema_version": SCHEMA,
            "evaluation_id": self.identity,
            "model_id": self.model,
            "evaluation_name": self.run.suite,
            "evaluation_result_id": METRIC,
            **_sample(row),
        })  # fmt: skip
        self.file.write(line + b"\n")
        self.rows += 1
        self.errors += row["status"] == "error"

    def finish(self) -> None:
        """Write the aggregate, if anything was decided."""
        with (self.folder / f"{self.place}_samples.jsonl").open("rb") as samples:
            checksum = hashlib.file_digest(samples, "sha256").hexdigest()
        rate = self.run.pass_rates().get(self.side)
        results = [] if rate is None else [self._result(rate)]
        aggregate = {
            "schema_version": SCHEMA,
            "evaluation_id": self.identity,
            "evaluation_timestamp": str(self.run.created),
            "retrieved_timestamp": str(self.run.created),
            "source_metadata": {
                "source_name": "Pennyweight",
                "source_type": "evaluation_run",
                "source_organization_name": _UNKNOWN,
                "evaluator_relationship": "other",
                "additional_details": {"run": self.run.id, "status": self.run.status},
            },
            "eval_library": {"name": "pennyweight", "version": self.run.version},
            "model_info": {
                "name": self.side[0],
                "id": self.model,
                "developer": self.model.partition("/")[0],
                "additional_details": {
                    "deployment_type": _UNKNOWN,
                    "model_availability": _UNKNOWN,
                },
            },
            "evaluation_results": results,
            "detailed_evaluation_results": {
                "format": "jsonl",
                "file_path": f"{self.place}_samples.jsonl",
                "hash_algorithm": "sha256",
                "checksum": checksum,
                "total_rows": self.rows,
            },
        }
        (self.folder / f"{self.place}.json").write_bytes(dumped(aggregate))

    def _result(self, rate: Estimate) -> dict[str, Any]:
        score: dict[str, Any] = {"score": rate.value}
        if rate.low is not None and rate.high is not None:
            interval = {"lower": rate.low, "upper": rate.high}
            interval["confidence_level"] = self.run.confidence
            counted = {"confidence_interval": interval, "num_samples": rate.records}
            score["uncertainty"] = counted
        score["details"] = {"errors_left_out": str(self.errors), "tier": self.side[1]}
        return {
            "evaluation_result_id": METRIC,
            "evaluation_name": self.run.suite,
            "source_data": {"dataset_name": self.run.suite, "source_type": "other"},
            "metric_config": {
                "metric_id": METRIC,
                "metric_name": "Pass rate",
                "metric_kind": METRIC,
                "metric_unit": "proportion",
                "lower_is_better": False,
                "score_type": "continuous",
                "min_score": 0.0,
                "max_score": 1.0,
            },
            "score_details": score,
        }


def write(folder: Path, run: ExportedRun, rows: Iterator[RecordRow]) -> None:
    """Write `data/COLLECTION/DEVELOPER/MODEL/UUID.json` and its samples for each side."""
    made: dict[tuple[str, str], _Evaluation] = {}
    with ExitStack() as files:
        for row in rows:
            side = side_of(row)
            if side not in made:
                place = _place(run, side)
                path = folder / f"{place}_samples.jsonl"
                path.parent.mkdir(parents=True, exist_ok=True)
                file = files.enter_context(path.open("wb"))
                made[side] = _Evaluation(run, side, folder, place, file)
            made[side].add(row)
    for one in made.values():
        one.finish()


def _place(run: ExportedRun, side: tuple[str, str]) -> str:
    """Return the path without its ending; the same run gets the same one again."""
    developer, _, model = side[0].strip("/").partition("/")
    if not model:
        developer, model = _UNKNOWN, developer
    mark = "\0".join((run.id, *side)).encode("utf-8", "replace")
    unique = uuid.UUID(bytes=hashlib.blake2b(mark, digest_size=16).digest(), version=4)
    return f"data/{file_name(run.suite)}/{file_name(developer)}/{file_name(model)}/{unique}"


def _sample(row: RecordRow) -> dict[str, Any]:
    told = conversation(row)
    calls = sum(len(mappings(one.get("tool_calls"))) for one in told)
    turns = sum(one.get("role") == "assistant" for one in told)
    asked, target = row.get("input") or "", row.get("target")
    reference = [] if target is None else [str(target)]
    whole = "\0".join((asked, *reference)).encode("utf-8", "replace")
    several = calls > 0 or turns > 1
    kind = "agentic" if calls else "multi_turn" if several else "single_turn"
    passed, score = row.get("passed"), row.get("impl_rate")
    if score is None:
        score = float(passed or 0)
    sample: dict[str, Any] = {
        "sample_id": row["task_id"],
        "sample_hash": hashlib.sha256(whole).hexdigest(),
        "interaction_type": kind,
        "input": {"raw": asked, "reference": reference},
        "answer_attribution": _attribution(row, len(told) - 1 if several else 0, several=several),
        "evaluation": {
            "score": score,
            "is_correct": bool(passed),
            "num_turns": turns or None,
            "tool_calls_count": calls,
        },
        "token_usage": _usage(row),
        "performance": _performance(row),
        "error": _error(row),
        "metadata": _metadata(row),
    }
    if several:
        return {**sample, "messages": [_message(n, one) for n, one in enumerate(told)]}
    output: dict[str, Any] = {"raw": [row.get("response") or ""]}
    if row.get("reasoning"):
        output["reasoning_trace"] = [row["reasoning"]]
    return {**sample, "output": output}


def _error(row: RecordRow) -> str | None:
    """Return why there is no verdict: the format has no other place for it."""
    if row["status"] == "error":
        return row.get("error") or "error"
    if row["status"] != "ok":
        return str(row["status"])
    return "no verdict" if row.get("passed") is None else None


def _attribution(row: RecordRow, turn: int, *, several: bool) -> list[dict[str, Any]]:
    if row.get("answer") is None:
        return []
    source = f"messages[{turn}].content" if several else "output.raw"
    return [{
        "turn_idx": turn,
        "source": source,
        "extracted_value": str(row["answer"]),
        "extraction_method": "custom",
        "is_terminal": True,
    }]  # fmt: skip


def _usage(row: RecordRow) -> dict[str, Any] | None:
    read, written = row.get("prompt_tokens"), row.get("completion_tokens")
    if read is None or written is None:
        return None
    return {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
        "input_tokens_cache_read": row.get("cached_tokens"),
        "input_tokens_cache_write": row.get("cache_write_tokens"),
        "reasoning_tokens": row.get("reasoning_tokens"),
    }


def _performance(row: RecordRow) -> dict[str, Any] | None:
    return None if row.get("latency_ms") is None else {"latency_ms": row["latency_ms"]}


def _metadata(row: RecordRow) -> dict[str, str]:
    named = {name: row.get(name) for name in _METADATA}
    kept = {name: value for name, value in named.items() if value is not None}
    return {n: v if isinstance(v, str) else dumped(v).decode() for n, v in kept.items()}


def _message(number: int, one: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "turn_idx": number,
        "role": str(one.get("role") or "user"),
        "content": str(one.get("content") or ""),
    }
    if calls := mappings(one.get("tool_calls")):
        made["tool_calls"] = [
            {"id": call["id"], "name": str(call.get("name") or ""), "arguments": _texts(call)}
            for call in calls
        ]
    if one.get("call_id"):
        made["tool_call_id"] = [one["call_id"]]
    return made


def _texts(call: Any) -> dict[str, str]:
    """Return the arguments of a tool call; all values must be text."""
    given = arguments(call).items()
    return {str(n): v if isinstance(v, str) else dumped(v).decode() for n, v in given}


FORMAT = ExportFormat(
    "every_eval_ever",
    "Every Eval Ever",
    write,
    lost="metrics other than the pass rate, checks, log-probabilities; attempt, tier, status, cost "
    "and judges' scores are text in `metadata`; a sample without a verdict has score 0 and `error`",
)
