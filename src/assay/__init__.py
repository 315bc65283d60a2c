"""Assay measures language models and agents: `assay.score("records.jsonl")`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.comparison import Comparison as Comparison
    from assay.comparison import compare as compare
    from assay.define import evaluate as evaluate
    from assay.define import measure as measure
    from assay.define import metric as metric
    from assay.models.ask import ask as ask
    from assay.per_task import PerTaskResult as PerTaskResult
    from assay.pipeline import per_task_results as per_task_results
    from assay.pipeline import score as score
    from assay.scores import MetricsSummary as MetricsSummary
    from assay.scores import Scores as Scores

_PUBLIC = {
    "Comparison": "assay.comparison",
    "MetricsSummary": "assay.scores",
    "PerTaskResult": "assay.per_task",
    "Scores": "assay.scores",
    "ask": "assay.models.ask",
    "compare": "assay.comparison",
    "evaluate": "assay.define",
    "measure": "assay.define",
    "metric": "assay.define",
    "per_task_results": "assay.pipeline",
    "score": "assay.pipeline",
}

__all__ = [
    "Comparison",
    "MetricsSummary",
    "PerTaskResult",
    "Scores",
    "ask",
    "compare",
    "evaluate",
    "measure",
    "metric",
    "per_task_results",
    "score",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import what is public when it is used: `assay --help` must not load Polars."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'assay' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
