"""SWE-bench."""

from __future__ import annotations

from pathlib import Path

from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is a report, a file of predictions, or the report of one instance."""
    if peek.has("resolved_ids", "submitted_ids") or peek.has("resolved_ids", "total_instances"):
        return True
    if peek.has("instance_id", "model_patch"):
        return True
    only = next(iter(peek.keys)) if len(peek.keys) == 1 else ""
    return peek.inside(only, "patch_successfully_applied") is not None


def home(path: Path) -> Path:
    """Return the folder of the report, in which `logs` holds those of the instances."""
    above = [one for one in path.parents if one.name == "logs"]
    return above[-1].parent if above else path.parent


FORMAT = LogFormat("swe_bench", "SWE-bench", recognise, home=home)
