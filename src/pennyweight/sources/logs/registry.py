"""All log formats: those of this package, and those of packages that declare an entry point."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from pennyweight.define import points
from pennyweight.errors import UsageError
from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.peek import Peek

MODULES = (
    *("inspect_ai", "lm_eval", "promptfoo", "otel", "harbor", "scylla", "helm", "lighteval"),
    *("deepeval", "openai_evals", "pydantic_evals", "swe_bench", "tau_bench", "mlflow", "ragas"),
    *("hal", "agentlab", "codex", "claude_code", "every_eval_ever"),
)
"""The modules with formats. The first format that recognises a file reads it."""
ENTRY_POINTS = "pennyweight.logs"


@cache
def formats() -> tuple[LogFormat, ...]:
    """Return all formats; those of other packages first, so that they can replace ours."""
    return (*_installed(), *_own())


def format_of(peek: Peek) -> LogFormat | None:
    """Return the format of a file; None if it is no log of a known tool."""
    if not peek.head:
        return None
    return next((one for one in formats() if one.recognise(peek)), None)


def _own() -> list[LogFormat]:
    modules = (import_module(f"pennyweight.sources.logs.{name}") for name in MODULES)
    return [v for m in modules for v in vars(m).values() if isinstance(v, LogFormat)]


def _installed() -> list[LogFormat]:
    found = []
    for point in points(ENTRY_POINTS):
        try:
            value = point.load()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise UsageError(
                f"The log format {point.name!r} cannot be loaded ({reason})."
            ) from error
        if not isinstance(value, LogFormat):
            raise UsageError(f"The log format {point.name!r} ({point.value}) is not a LogFormat.")
        found.append(value)
    return found
