"""Inspect AI: `.eval` archives and JSON logs."""

from __future__ import annotations

from pennyweight.sources.logs.declaration import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is an archive of samples with a header or a journal, or one JSON object."""
    if peek.is_zip:
        named = {"header.json", "_journal/start.json"} & peek.members
        return bool(named) or (peek.path.suffix == ".eval" and not peek.members)
    task, model = peek.inside("eval", "task"), peek.inside("eval", "model")
    return peek.has("version", "eval") and task is not None and model is not None


FORMAT = LogFormat("inspect", "Inspect AI", recognise)
