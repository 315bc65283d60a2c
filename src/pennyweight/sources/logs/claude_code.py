"""Claude Code."""

from __future__ import annotations

from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is a session."""
    return any({"sessionId", "uuid", "message"} <= row.keys() for row in peek.rows)


FORMAT = LogFormat("claude_code", "Claude Code", recognise)
