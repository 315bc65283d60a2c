"""HAL."""

from __future__ import annotations

from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is an uploaded run."""
    return peek.has("raw_eval_results", "config") or (
        peek.has("config", "results") and peek.inside("config", "benchmark_name") is not None
    )


FORMAT = LogFormat("hal", "HAL", recognise)
