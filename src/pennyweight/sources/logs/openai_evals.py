"""OpenAI Evals."""

from __future__ import annotations

from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is the events of an eval."""
    return (
        peek.inside("spec", "completion_fns") is not None
        or peek.inside("spec", "eval_name") is not None
        or peek.has("run_id", "event_id", "sample_id", "type")
    )


FORMAT = LogFormat("openai_evals", "OpenAI Evals", recognise)
