"""HELM."""

from __future__ import annotations

from pathlib import Path

from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is one of the files of a run."""
    return (
        peek.has("adapter_spec", "scenario_spec")
        or peek.has("adapter_spec", "request_states")
        or peek.has("instance_id", "train_trial_index", "stats")
        or (peek.has("name", "count", "sum_squared") and peek.inside(0, "name", "name") is not None)
    )


def home(path: Path) -> Path:
    """Return the folder of the run."""
    return path.parent


FORMAT = LogFormat("helm", "HELM", recognise, home=home)
