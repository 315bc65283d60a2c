"""Pennyweight measures language models and agents: `pennyweight.score("records.jsonl")`."""

from __future__ import annotations

TYPE_CHECKING = False  # typing takes longer to load than Python to start; Ctrl-C must work then
if TYPE_CHECKING:
    from typing import Any

    from pennyweight.api.assertions import assert_that as assert_that
    from pennyweight.api.audit import audit as audit
    from pennyweight.api.compare import compare as compare
    from pennyweight.api.export import export as export
    from pennyweight.api.gate import gate as gate
    from pennyweight.api.judge import judge as judge
    from pennyweight.api.judge import judge_async as judge_async
    from pennyweight.api.lanes.collect import collect as collect
    from pennyweight.api.lanes.collect import collect_async as collect_async
    from pennyweight.api.log_import import import_logs as import_logs
    from pennyweight.api.models import ask as ask
    from pennyweight.api.plan import plan as plan
    from pennyweight.api.report import report as report
    from pennyweight.api.review import agreement as agreement
    from pennyweight.api.run import Until as Until
    from pennyweight.api.run import resume as resume
    from pennyweight.api.run import resume_async as resume_async
    from pennyweight.api.run import run as run
    from pennyweight.api.run import run_async as run_async
    from pennyweight.api.runs import Run as Run
    from pennyweight.api.runs import load as load
    from pennyweight.api.runs import runs as runs
    from pennyweight.api.score import per_task_results as per_task_results
    from pennyweight.api.score import score as score
    from pennyweight.api.watching import Watcher as Watcher
    from pennyweight.checks.declaration import CheckResult as CheckResult
    from pennyweight.checks.declaration import check as check
    from pennyweight.define import evaluate as evaluate
    from pennyweight.define import measure as measure
    from pennyweight.define import metric as metric
    from pennyweight.models.model import Reply as Reply
    from pennyweight.models.model import Request as Request
    from pennyweight.scorers.declaration import scorer as scorer
    from pennyweight.scoring.comparison import Comparison as Comparison
    from pennyweight.scoring.per_task import PerTaskResult as PerTaskResult
    from pennyweight.scoring.sample_plan import SamplePlan as SamplePlan
    from pennyweight.scoring.scores import MetricsSummary as MetricsSummary
    from pennyweight.scoring.scores import Scores as Scores
    from pennyweight.scoring.scores import Statistics as Statistics
    from pennyweight.soundness.audit import Audit as Audit
    from pennyweight.suite.definition import Suite as Suite

_PUBLIC = {
    "Audit": "pennyweight.soundness.audit",
    "CheckResult": "pennyweight.checks.declaration",
    "Comparison": "pennyweight.scoring.comparison",
    "MetricsSummary": "pennyweight.scoring.scores",
    "PerTaskResult": "pennyweight.scoring.per_task",
    "Reply": "pennyweight.models.model",
    "Request": "pennyweight.models.model",
    "Run": "pennyweight.api.runs",
    "SamplePlan": "pennyweight.scoring.sample_plan",
    "Scores": "pennyweight.scoring.scores",
    "Statistics": "pennyweight.scoring.scores",
    "Suite": "pennyweight.suite.definition",
    "Until": "pennyweight.api.run",
    "Watcher": "pennyweight.api.watching",
    "agreement": "pennyweight.api.review",
    "ask": "pennyweight.api.models",
    "assert_that": "pennyweight.api.assertions",
    "audit": "pennyweight.api.audit",
    "check": "pennyweight.checks.declaration",
    "collect": "pennyweight.api.lanes.collect",
    "collect_async": "pennyweight.api.lanes.collect",
    "compare": "pennyweight.api.compare",
    "evaluate": "pennyweight.define",
    "export": "pennyweight.api.export",
    "gate": "pennyweight.api.gate",
    "import_logs": "pennyweight.api.log_import",
    "judge": "pennyweight.api.judge",
    "judge_async": "pennyweight.api.judge",
    "load": "pennyweight.api.runs",
    "measure": "pennyweight.define",
    "metric": "pennyweight.define",
    "per_task_results": "pennyweight.api.score",
    "plan": "pennyweight.api.plan",
    "report": "pennyweight.api.report",
    "resume": "pennyweight.api.run",
    "resume_async": "pennyweight.api.run",
    "run": "pennyweight.api.run",
    "run_async": "pennyweight.api.run",
    "runs": "pennyweight.api.runs",
    "score": "pennyweight.api.score",
    "scorer": "pennyweight.scorers.declaration",
}

__all__ = list(_PUBLIC)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import what is public when it is used: `pennyweight --help` must not load Polars."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'pennyweight' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
