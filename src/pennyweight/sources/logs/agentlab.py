"""AgentLab: the experiments of a study."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pennyweight.sources.json_array import loads
from pennyweight.sources.log_format import PROBLEM, Log, LogFormat, Row
from pennyweight.sources.log_values import count, mapping, number, verdict
from pennyweight.sources.peek import Peek

_NAME = re.compile(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_(?P<agent>.+)_on_(?P<task>.+)_(?P<seed>\d+)")
_LARGEST = 64 << 20


def recognise(peek: Peek) -> bool:
    """Whether a file is the summary of an experiment."""
    return peek.has("cum_reward", "n_steps")


def home(path: Path) -> Path:
    """Return the folder of the study."""
    return path.parent.parent


def read(log: Log) -> Iterator[Row]:
    """Yield one record an experiment. What it was about stands in the name of its folder."""
    for path in log.files:
        summary = loads(path.read_bytes()) if path.stat().st_size < _LARGEST else None
        if not isinstance(summary, dict):
            yield {PROBLEM: f"{path.parent.name}/{path.name}: not a JSON object."}
            continue
        named = _NAME.search(path.parent.name)
        error = summary.get("err_msg")
        row: Row = {
            "run": log.path.name,
            "subject": named["agent"] if named else None,
            "task_id": named["task"] if named else path.parent.name,
            "seed": int(named["seed"]) if named else None,
            "prompt_tokens": count(summary.get("stats.cum_input_tokens")),
            "completion_tokens": count(summary.get("stats.cum_output_tokens")),
            "cost_usd": number(summary.get("stats.cum_cost")),
            "duration_seconds": number(summary.get("stats.cum_step_elapsed")),
            "n_steps": count(mapping(summary).get("n_steps")),
        }
        if error:
            yield {**row, "status": "error", "error": error}
        else:
            cut = summary.get("truncated") is True and summary.get("terminated") is not True
            yield {**row, "status": "budget" if cut else "ok", **verdict(summary["cum_reward"])}


FORMAT = LogFormat(
    "agentlab",
    "AgentLab",
    recognise,
    read,
    home,
    counts_errors=True,
    lost="steps, screenshots, the arguments of agents (they are pickled Python)",
)
