"""Ragas."""

from __future__ import annotations

from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is a table of results, or a data set."""
    return peek.has("user_input") and not peek.keys.isdisjoint(
        {"reference", "retrieved_contexts", "reference_contexts"}
    )


FORMAT = LogFormat("ragas", "Ragas", recognise)
