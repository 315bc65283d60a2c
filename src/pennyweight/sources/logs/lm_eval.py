"""lm-evaluation-harness: samples, and the results they belong to."""

from __future__ import annotations

from pathlib import Path

from pennyweight.sources.logs.declaration import LogFormat
from pennyweight.sources.peek import Peek


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
    return path.with_name(f"results_{moment(path)}.json")


def moment(path: Path) -> str:
    """Return the time in a name: `results_TIME.json`, `samples_TASK_TIME.jsonl`."""
    return path.name.removesuffix(path.suffix).rpartition("_")[2]


FORMAT = LogFormat("lm_eval", "lm-evaluation-harness", recognise, home=home)
