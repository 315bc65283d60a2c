"""Every Eval Ever."""

from __future__ import annotations

from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek


def recognise(peek: Peek) -> bool:
    """Whether a file is an aggregate, or a file of samples."""
    return peek.has("schema_version", "evaluation_results") or peek.has(
        "evaluation_id", "sample_id", "evaluation"
    )


FORMAT = LogFormat(
    "every_eval_ever",
    "Every Eval Ever",
    recognise,
    refusal="It has one row for each metric, not one for each attempt: read the log of the "
    "tool that made it.",
)
