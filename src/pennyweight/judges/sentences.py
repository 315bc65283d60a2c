"""Ask the suite's judges whether the sentences of scenarios are true.

The sentences of a task form a small rubric with one point each. So they are asked like any other
rubric: fenced, read strictly, within the limits of the run, resumable. The scores become verdicts
about the behaviours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pennyweight.checks.behaviour import Behaviour
from pennyweight.checks.declaration import CheckResult, Excerpt
from pennyweight.engine.budget import Budget
from pennyweight.engine.execution import model_of
from pennyweight.engine.resume import held
from pennyweight.engine.workforce import recorded
from pennyweight.judges.judge import Judge
from pennyweight.judges.judging import JudgingJob, JudgingResult, JudgingSession
from pennyweight.models.prices import Prices
from pennyweight.record import KEY, AttemptKey
from pennyweight.store.cells import json_cell
from pennyweight.store.verdicts import BehaviourVerdict, save_verdicts, verdicts_of
from pennyweight.stored_runs.code_checks import BATCH
from pennyweight.stored_runs.observations import behaviour_verdict, rows_of
from pennyweight.suite.rubric import Category, Item, Rubric
from pennyweight.suite.values import Judging, LoadedSuite

ABOUT = " on behaviours"
"""Added to the name of a judge, to keep these judgments apart from those by the suite's rubric."""
YES, NO = 0.75, 0.25
"""The lowest score that means yes, and the highest that means no."""
_READ = {*KEY, "judge", "fingerprint", "status", "items"}
_UNCLEAR = "what is shown does not tell whether it is true"
_UNREAD = {
    "invalid": CheckResult(None, "its reply could not be read", error=True),
    "error": CheckResult(None, "it could not be asked", error=True),
}
"""The verdict for a judgment that is not valid, by its status."""


def questions_of(suite: LoadedSuite) -> dict[str, tuple[Behaviour, ...]]:
    """Return the behaviours of each task that judges are asked about."""
    questions = {
        task.id: tuple(
            {b.mark: b for _, b in task.scenario.leaves() if b.check.name == "judge"}.values()
        )
        for task in suite.tasks
        if task.scenario
    }
    return {task: several for task, several in questions.items() if several}


def ask(
    job: JudgingJob, judging: Judging, questions: Mapping[str, tuple[Behaviour, ...]]
) -> JudgingResult:
    """Ask the questions about each task that have no answer yet."""
    judges = tuple(replace(s, name=s.name + ABOUT) for s in judging.judges)
    known = {s.name + ABOUT: job.prices[s.name] for s in judging.judges if s.name in job.prices}
    judging = replace(judging, judges=judges, more=())
    models = {s.name: model_of(s, job.limits.timeout) for s in judges}
    budget = Budget.of(job.limits, job.store, job.run.id, job.began)
    with recorded(models, job.record) as own:
        prices = Prices.with_models({**job.prices, **known}, own)
        session = _SentenceSession(job, judging, own, prices, budget, questions=questions)
        with held(job.store, job.run.id, session.lose):
            interrupted = session.run()
            if not session.tally.lost:
                session.save()
                if session.tally.waits and not interrupted:
                    job.store.set_run(job.run.id, status="waiting")
    return session.result(interrupted=interrupted)


@dataclass(slots=True)
class _SentenceSession(JudgingSession):
    """Asks about each task its questions: the sentences of its scenario."""

    questions: Mapping[str, tuple[Behaviour, ...]] = field(default_factory=dict)
    panels: dict[str, tuple[Judge, ...]] = field(default_factory=dict)

    def panel(self, task: str) -> tuple[Judge, ...]:
        """Return the judges of a task, whose rubric consists of its questions."""
        several = self.questions.get(task)
        if several and task not in self.panels:
            rubric = sentences_rubric(several)
            context = replace(self.judges[0].context, rubric=rubric, higher_is_better=False)
            self.panels[task] = tuple(Judge.of(j.subject, j.model, context) for j in self.judges)
        return self.panels.get(task, ())

    def save(self) -> None:
        """Store the judges' replies as verdicts about the behaviours.

        A reply that could not be read is stored as such, unless the judge has answered before.
        """
        run, store = self.job.run, self.job.store
        judgments = {
            (AttemptKey.of(row), row["judge"], row["fingerprint"]): (row["status"], row["items"])
            for row in store.judgments(run.id, _READ).iter_rows(named=True)
        }
        answered = {_about(verdict) for verdict in verdicts_of(store, run.id) if not verdict.error}
        verdicts: list[BehaviourVerdict] = []
        rows = (row for row in rows_of(run, store) if row["task_id"] in self.questions)
        for row, attempt in zip(rows, self.attempts(), strict=True):
            for judge in self.panel(attempt.key.task_id):
                name = judge.subject.name
                judgment = judgments.get((attempt.key, name, judge.fingerprint(attempt)))
                if judgment is None:
                    continue
                status, text = judgment
                items = json_cell(text or "{}", _is_items, "items of a judgment")
                for behaviour in self.questions[attempt.key.task_id]:
                    result = _UNREAD.get(status) or _verdict(items.get(behaviour.mark, {}))
                    verdict = behaviour_verdict(name.removesuffix(ABOUT), row, behaviour, result)
                    if not (verdict.error and _about(verdict) in answered):
                        verdicts.append(verdict)
            if len(verdicts) >= BATCH:
                save_verdicts(store, verdicts)
                verdicts.clear()
        save_verdicts(store, verdicts)


def _is_items(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(item, dict) and isinstance(item.get("score"), int | float | None)
        for item in value.values()
    )


def _about(verdict: BehaviourVerdict) -> tuple[AttemptKey, str, str, str]:
    """Return what a verdict is about, and whose it is."""
    return verdict.key, verdict.mark, verdict.who, verdict.said_of


def sentences_rubric(questions: tuple[Behaviour, ...]) -> Rubric:
    """Return the rubric that consists of a task's sentences."""
    items = tuple(Item(b.mark, b.question, 1.0, _UNCLEAR) for b in questions)
    return Rubric("behaviours", (Category("behaviours", 1.0, items),), 1.0)


def _verdict(item: Mapping[str, Any]) -> CheckResult:
    score, evidence = item.get("score"), str(item.get("evidence") or "")
    holds = None if score is None or NO < score < YES else score >= YES
    answer = {True: "yes", False: "no", None: "cannot say"}[holds]
    return CheckResult(holds, answer, (Excerpt("judge", evidence),) if evidence else ())
