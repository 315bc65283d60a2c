"""The formats that runs can be exported in."""

from __future__ import annotations

from importlib import import_module

from pennyweight.errors import UsageError, unknown
from pennyweight.exports.export_format import ExportFormat

FORMATS = {
    "inspect": "inspect_ai",
    "every_eval_ever": "every_eval_ever",
    "openai-evals": "openai_evals",
    "atif": "atif",
    "otel": "otel",
}
"""The name of each format, and the module that declares it."""


def format_named(name: str) -> ExportFormat:
    """Return a format by its name."""
    if name not in FORMATS:
        hint = f"There are {', '.join(FORMATS)}."
        raise UsageError(f"--as: {unknown('Format', name, FORMATS, hint)}")
    found: ExportFormat = import_module(f"pennyweight.exports.{FORMATS[name]}").FORMAT
    return found
