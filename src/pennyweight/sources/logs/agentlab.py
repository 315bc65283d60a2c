"""AgentLab."""

from __future__ import annotations

from pathlib import Path

from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is the summary of an experiment."""
    return peek.has("cum_reward", "n_steps")


def home(path: Path) -> Path:
    """Return the folder of the study."""
    return path.parent.parent


FORMAT = LogFormat("agentlab", "AgentLab", recognise, home=home)
