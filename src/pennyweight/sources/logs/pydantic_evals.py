"""Pydantic Evals."""

from __future__ import annotations

from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is a report."""
    case = peek.inside("cases", 0)
    whole = peek.has("cases", "failures", "analyses")
    return whole or (isinstance(case, dict) and {"inputs", "assertions", "scores"} <= case.keys())


FORMAT = LogFormat("pydantic_evals", "Pydantic Evals", recognise)
