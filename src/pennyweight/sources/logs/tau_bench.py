"""τ-bench and τ²-bench."""

from __future__ import annotations

from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is a list of results of τ-bench."""
    return peek.has("task_id", "reward", "info", "traj")


def recognise_second(peek: Peek) -> bool:
    """Whether a file is a file of results, or of simulations, of τ²-bench."""
    return (peek.inside("info", "agent_info") is not None and peek.has("tasks")) or (
        peek.has("simulations", "tasks")
    )


FORMAT = LogFormat("tau_bench", "τ-bench", recognise)
SECOND = LogFormat("tau2_bench", "τ²-bench", recognise_second)
