"""MLflow."""

from __future__ import annotations

from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is a table of results."""
    return peek.has("trace_id") and any(key.endswith("/value") for key in peek.keys)


FORMAT = LogFormat("mlflow", "MLflow", recognise)
