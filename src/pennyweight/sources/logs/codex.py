"""Codex."""

from __future__ import annotations

from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is a session."""
    return any(row.get("type") == "session_meta" and "payload" in row for row in peek.rows)


FORMAT = LogFormat("codex", "Codex", recognise)
