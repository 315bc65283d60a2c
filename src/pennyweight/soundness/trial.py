"""Score replies as a run of the suite would score them: answer, match, behaviours and checks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pennyweight.define import MEASURES, dtype, measure_passes, needed_measures
from pennyweight.engine.resume import settings_of
from pennyweight.record import BY_NAME
from pennyweight.schema.user_code import suite_folder
from pennyweight.stored_runs.observations import NEEDED, Observer
from pennyweight.stored_runs.source import mark_verified
from pennyweight.suite.values import LoadedSuite, Task

_OUTCOME = ("passed", "correct", "answer")
_MUCH = 10**9


@dataclass(frozen=True, slots=True)
class Trial:
    """A reply that is tried at a task, with the tools it calls."""

    task: Task
    probe: str
    reply: str
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    is_costly: bool = False
    """Whether it takes more time, money and tokens than any limit is meant to allow."""
    given: bool | None = None
    """What the commands say that verify an agent."""
    work: str | None = None
    """What an agent did, as records have it."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What a suite says of a trial."""

    trial: Trial
    passed: bool | None
    correct: bool | None
    answer: str | None
    checks: tuple[Mapping[str, Any], ...] = ()
    """The results of behaviours and checks, as records have them."""

    @property
    def counts(self) -> bool | None:
        """Whether it is scored as right, by its answer or as an attempt; None if undecided."""
        if self.correct or self.passed:
            return True
        return None if self.passed is None and self.correct is None else False

    def names(self, *roles: str, holds: bool | None) -> list[str]:
        """Return the names of the behaviours in some roles with this result."""
        return [c["name"] for c in self.checks if c["role"] in roles and c["holds"] is holds]


def tried(suite: LoadedSuite, trials: Sequence[Trial], *, runs_code: bool) -> list[TrialResult]:
    """Score trials. Checks that are code of the user run only with `runs_code`."""
    if not trials:
        return []
    frame = pl.DataFrame([_row(suite, n, one) for n, one in enumerate(trials)], schema=_SCHEMA)
    scenarios = {task.id: task.scenario for task in suite.tasks if task.scenario}
    if scenarios:
        observer = Observer(scenarios, {}, suite.answer, live=runs_code)
        with suite_folder(Path(suite.path).parent):
            frame = observer.add(frame)
    return results_of(suite, frame, dict(enumerate(trials)))


def results_of(
    suite: LoadedSuite, frame: pl.DataFrame, trials: Mapping[int, Trial]
) -> list[TrialResult]:
    """Score records of trials; `trials` has them by the number of the attempt."""
    frame = mark_verified(frame, settings_of(suite))
    options = {
        "answer_rule": suite.answer,
        "match_rule": suite.match,
        "confidence_from": suite.confidence,
    }
    measures = needed_measures(_OUTCOME)
    inputs = {name for one in measures for name in one.inputs} - set(frame.columns)
    own = {one.name for one in measures if one.name in one.inputs} - set(frame.columns)
    missing = sorted(((inputs - MEASURES.keys()) | own) & BY_NAME.keys())
    frame = frame.with_columns(pl.lit(None, dtype=dtype(name)).alias(name) for name in missing)
    for one in measure_passes(measures, options):
        frame = frame.with_columns(one)
    texts = frame["checks"] if "checks" in frame.columns else [None] * frame.height
    rows = zip(frame["attempt"], frame.select(_OUTCOME).iter_rows(named=True), texts, strict=True)
    return [
        TrialResult(trials[number], checks=tuple(json.loads(text)) if text else (), **values)
        for number, values, text in rows
    ]


_SCHEMA: dict[str, Any] = {
    name: dtype(name) if name in BY_NAME else pl.String for name in dict.fromkeys(NEEDED)
}


def _row(suite: LoadedSuite, number: int, trial: Trial) -> dict[str, Any]:
    task = trial.task
    calls = json.dumps(trial.tool_calls) if trial.tool_calls else None
    used = _MUCH if trial.is_costly else 0
    return dict.fromkeys(_SCHEMA) | {
        "run": "audit",
        "subject": suite.subjects[0].name if suite.subjects else "",
        "tier": suite.tiers[0].name,
        "task_id": task.id,
        "attempt": number,
        "status": "ok",
        "input": task.input,
        "target": task.target,
        "response": trial.reply,
        "tool_calls": calls,
        "passed": trial.given,
        "work": trial.work,
        "prompt_tokens": used,
        "completion_tokens": used,
        "latency_ms": float(used),
        "cost_usd": float(used),
    }
