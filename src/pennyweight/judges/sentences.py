"""Put the sentences of scenarios to the suite's judges, who say whether they are true.

The sentences of a task are the items of a small rubric of its own, worth one point each. So they
are asked as everything is that judges are asked: fenced, read strictly, within the run's budgets,
resumable. What the judges say becomes a verdict about each behaviour.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pennyweight.checks.behaviour import Behaviour
from pennyweight.checks.declaration import CheckResult, Excerpt
from pennyweight.engine.budget import Budget
from pennyweight.engine.execution import model_of
from pennyweight.engine.resume import held
from pennyweight.engine.tally import Tally
from pennyweight.engine.workforce import recorded
from pennyweight.judges.judge import Judge
from pennyweight.judges.judging import Bench, JudgingResult
from pennyweight.models.prices import Prices
from pennyweight.record import KEY, AttemptKey
from pennyweight.runs.code_checks import BATCH
from pennyweight.runs.observations import given_by, rows_of
from pennyweight.store.store import Row, Run, Store
from pennyweight.store.verdicts import BehaviourVerdict, save_verdicts, verdicts_of
from pennyweight.suite.rubric import Category, Item, Rubric
from pennyweight.suite.values import Price, Subject, Suite

ABOUT = " on behaviours"
"""What is added to a judge's name: its judgments by the suite's own rubric stay beside these."""
YES, NO = 0.75, 0.25
"""From which and up to which part of a point it is a yes, or a no."""
_SAID = {*KEY, "judge", "fingerprint", "status", "items"}
_UNCLEAR = "what is shown does not tell whether it is true"
_UNREAD = {
    "invalid": CheckResult(None, "its reply could not be read", error=True),
    "error": CheckResult(None, "it could not be asked", error=True),
}
"""Verdicts of judges that gave none, by the status of the judgment."""


def questions_of(suite: Suite) -> dict[str, tuple[Behaviour, ...]]:
    """List what judges are asked about the attempts at each task."""
    found = {
        task.id: tuple(
            {b.mark: b for _, b in task.scenario.all() if b.check.name == "judge"}.values()
        )
        for task in suite.tasks
        if task.scenario
    }
    return {task: several for task, several in found.items() if several}


def ask(
    suite: Suite,
    run: Run,
    store: Store,
    *,
    watch: Callable[[Tally, Budget, list[Row]], None],
    record: Path | None = None,
    began: float | None = None,
) -> JudgingResult | None:
    """Ask what was not asked yet; None where there is nothing to ask."""
    questions = questions_of(suite)
    if not questions or suite.judge is None:
        return None
    judging = replace(
        suite.judge,
        judges=tuple(replace(s, name=s.name + ABOUT) for s in suite.judge.judges),
        more=(),
    )
    models = {s.name: model_of(s, suite.limits.timeout) for s in judging.judges}
    budget = Budget.of(suite.limits, store.spent(run.id), began)
    with recorded(models, record) as own:
        prices = Prices.with_models(_renamed(suite.prices, suite.judge.judges), own)
        bench = _Hearing(run.id, judging, own, store, prices, budget, watch, questions=questions)
        with held(store, run.id, bench.lose):
            interrupted = asyncio.run(bench.sit(suite.limits))
            if not bench.tally.lost:
                bench.keep(run)
    return JudgingResult(bench.tally, bench.invalid, bench.unjudged, interrupted)


def _renamed(prices: Mapping[str, Price], judges: Iterable[Subject]) -> dict[str, Price]:
    """Let a judge cost what the suite says under its own name."""
    known = {s.name + ABOUT: prices[s.name] for s in judges if s.name in prices}
    return {**prices, **known}


@dataclass(slots=True)
class _Hearing(Bench):
    """A bench that asks about each task what is to be asked about it."""

    questions: Mapping[str, tuple[Behaviour, ...]] = field(default_factory=dict)
    panels: dict[str, tuple[Judge, ...]] = field(default_factory=dict)

    def panel(self, task: str) -> tuple[Judge, ...]:
        """Give a task judges with a rubric of its own."""
        several = self.questions.get(task)
        if several and task not in self.panels:
            rubric = sentences_rubric(several)
            self.panels[task] = tuple(
                Judge.of(j.subject, j.model, replace(j.desk, rubric=rubric)) for j in self.judges
            )
        return self.panels.get(task, ())

    def keep(self, run: Run) -> None:
        """Store the judges' replies as verdicts about the behaviours.

        A reply that could not be read is stored as such, unless the judge has answered before.
        """
        judgments = {
            (AttemptKey.of(one), one["judge"], one["fingerprint"]): (one["status"], one["items"])
            for one in self.store.judgments(self.run, _SAID).iter_rows(named=True)
        }
        answered = {
            (one.key, one.mark, one.who, one.said_of)
            for one in verdicts_of(self.store, self.run)
            if not one.error
        }
        given: list[BehaviourVerdict] = []
        for row, brief in zip(self._asked_about(run), self.briefs(), strict=True):
            for judge in self.panel(brief.key.task_id):
                name = judge.subject.name
                found = judgments.get((brief.key, name, judge.fingerprint(brief)))
                if found is None:
                    continue
                status, items = found[0], json.loads(found[1] or "{}")
                for behaviour in self.questions[brief.key.task_id]:
                    result = _UNREAD.get(status) or _verdict(items.get(behaviour.mark, {}))
                    one = given_by(name.removesuffix(ABOUT), row, behaviour, result)
                    known = (one.key, one.mark, one.who, one.said_of) in answered
                    if not (one.error and known):
                        given.append(one)
            if len(given) >= BATCH:
                save_verdicts(self.store, given)
                given.clear()
        save_verdicts(self.store, given)

    def _asked_about(self, run: Run) -> Iterator[dict[str, Any]]:
        return (row for row in rows_of(run, self.store) if row["task_id"] in self.questions)


def sentences_rubric(questions: tuple[Behaviour, ...]) -> Rubric:
    """Make the small rubric of a task's sentences."""
    items = tuple(Item(b.mark, b.question, 1.0, _UNCLEAR) for b in questions)
    return Rubric("behaviours", (Category("behaviours", 1.0, items),), 1.0)


def _verdict(item: Mapping[str, Any]) -> CheckResult:
    score, evidence = item.get("score"), str(item.get("evidence") or "")
    holds = None if score is None or NO < score < YES else score >= YES
    said = {True: "yes", False: "no", None: "cannot say"}[holds]
    return CheckResult(holds, said, (Excerpt("judge", evidence),) if evidence else ())
