"""OpenTelemetry."""

from __future__ import annotations

from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is spans or log events, one OTLP request a line, or one span a line."""
    row = next(iter(peek.rows), {})
    if isinstance(row.get("resourceSpans") or row.get("resourceLogs"), list):
        return True
    return peek.has("attributes", "context") and peek.inside("context", "trace_id") is not None


FORMAT = LogFormat("otel", "OpenTelemetry", recognise)
