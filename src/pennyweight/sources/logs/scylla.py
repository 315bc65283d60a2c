"""ProjectScylla: the runs of an experiment, in tiers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pennyweight.errors import InputError
from pennyweight.sources.json_array import loads
from pennyweight.sources.log_format import PROBLEM, Log, LogFormat, Row
from pennyweight.sources.log_values import count, items, mapping, number, verdict
from pennyweight.sources.peek import Peek

_TIER = re.compile(r"T[0-9]+")
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-(?P<test>.+)")
_LARGEST = 64 << 20


def recognise(peek: Peek) -> bool:
    """Whether a file is the result of a run, of its agent, or of one of its judges."""
    return (
        peek.has("run_number", "token_stats", "judge_score")
        or peek.has("exit_code", "token_stats", "api_calls")
        or peek.has("score", "passed", "criteria_scores", "is_valid")
    )


def home(path: Path) -> Path:
    """Return the folder of the experiment: the one that holds the folders of the tiers."""
    tiers = [one for one in path.parents if _TIER.fullmatch(one.name)]
    return tiers[-1].parent if tiers else path.parent


def read(log: Log) -> Iterator[Row]:
    """Yield one record a run: `T*/NN/run_NN/run_result.json`."""
    runs = [path for path in log.files if Peek.of(path).has("run_number", "judge_score")]
    if not runs:
        raise InputError([f"{log.path}: it has no run_result.json; name the experiment's folder."])
    for path in runs:
        result = loads(path.read_bytes()) if path.stat().st_size < _LARGEST else None
        if not isinstance(result, dict):
            yield {PROBLEM: f"{path.relative_to(log.path)}: not a JSON object."}
        else:
            yield _row(path, result, log)


def _row(path: Path, result: Mapping[str, Any], log: Log) -> Row:
    tokens = mapping(result.get("token_stats"))
    parts = [count(tokens.get(name)) for name in _INPUT]
    named = _NAME.fullmatch(log.path.name)
    folders = path.relative_to(log.path).parts if log.path.is_dir() else ()
    row: Row = {
        "run": log.path.name,
        "tier": next((name for name in folders if _TIER.fullmatch(name)), None),
        "subtest": folders[-3] if len(folders) > 3 else None,
        "task_id": named["test"] if named else log.path.name,
        "input": _text(path.parent / "task_prompt.md", log) if log.wants("input") else None,
        "response": _text(path.parent / "agent/output.txt", log) if log.wants("response") else None,
        "prompt_tokens": None if parts[0] is None else sum(one or 0 for one in parts),
        "cache_write_tokens": parts[1],
        "cached_tokens": parts[2],
        "completion_tokens": count(tokens.get("output_tokens")),
        "cost_usd": number(result.get("cost_usd")),
        "duration_seconds": number(result.get("duration_seconds")),
    }
    decided = verdict(result.get("judge_score"), result.get("judge_passed"))
    if not decided and result.get("exit_code"):
        return {**row, "status": "error", "error": f"The agent ended with {result['exit_code']}."}
    return {**row, "status": "ok", **decided, "judge_scores": _judges(path, result) or None}


_INPUT = ("input_tokens", "cache_creation_tokens", "cache_read_tokens")
"""All that went in; `tokens_input` leaves out what was written to the cache."""


def _judges(path: Path, result: Mapping[str, Any]) -> list[float]:
    """Return the scores of the valid judgments; those in the result if there are no files."""
    files = sorted((path.parent / "judge").glob("judge_*/judgment.json"))
    if files:
        found = [mapping(loads(one.read_bytes())) for one in files if one.stat().st_size < _LARGEST]
        found = [one for one in found if one.get("is_valid") is not False]
    else:
        found = [mapping(one) for one in items(result.get("judges"))]
    totals = (mapping(one.get("summary")).get("weighted_score") for one in found)
    scores = [number(one.get("score", total)) for one, total in zip(found, totals, strict=True)]
    return [score for score in scores if score is not None and 0 <= score <= 1]


def _text(path: Path, log: Log) -> str | None:
    """Read a text of a run; a link may name any file of this machine, so none leaves the log."""
    folder = log.path if log.path.is_dir() else log.path.parent
    if not path.resolve().is_relative_to(folder.resolve()):
        return None
    if not path.is_file() or path.stat().st_size > _LARGEST:
        return None
    return path.read_text("utf-8", "replace") or None


FORMAT = LogFormat(
    "scylla",
    "ProjectScylla",
    recognise,
    read,
    home,
    lost="criteria of the judges, command logs, workspaces",
)
