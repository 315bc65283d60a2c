"""Observe the behaviours in the records of a run. Nothing is called, so it can be repeated freely.

Behaviours that code of the suite's author, a judge or a person decides are looked up among the
stored verdicts.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from pennyweight.checks.attempt import COLUMNS, AttemptView
from pennyweight.checks.behaviour import Behaviour
from pennyweight.checks.declaration import CheckResult, Excerpt
from pennyweight.checks.scenario import Observation, Scenario, observe
from pennyweight.models.keys import redact_environment
from pennyweight.record import KEY, AttemptKey
from pennyweight.store.cells import damaged, json_cell
from pennyweight.store.store import Store, StoredRun
from pennyweight.store.verdicts import BehaviourVerdict, save_scenarios, scenarios_of, verdicts_of
from pennyweight.suite.values import LoadedSuite
from pennyweight.text.extraction import AnswerRule

CODE = "code"
"""The author of verdicts by code of the suite."""
NEEDED = (*KEY, *COLUMNS)
"""The columns of a record that observing needs."""

_STRINGS = pl.List(pl.String)
FILLED: dict[str, Any] = {
    "expected_behaviors": _STRINGS,
    "observed_behaviors": _STRINGS,
    "violated": _STRINGS,
    "undecided": _STRINGS,
    "passed": pl.Boolean,
    "pass_score": pl.Float64,
    "weight": pl.Float64,
    "required": pl.Boolean,
    "checks": pl.String,
}
"""The columns that observing fills in."""


@dataclass(frozen=True, slots=True)
class Observer:
    """Observes the behaviours of scenarios in the records of a run."""

    scenarios: Mapping[str, Scenario]
    verdicts: Mapping[AttemptKey, list[BehaviourVerdict]] = field(default_factory=dict)
    rule: AnswerRule = field(default_factory=AnswerRule)
    live: bool = False
    """Whether checks that are code are run now; only with a suite file that the user named."""

    @classmethod
    def of(cls, run: StoredRun, store: Store, other: LoadedSuite | None = None) -> Observer | None:
        """Return the observer of a run, for its own scenarios or those of another suite.

        None if there are no scenarios. Code from the store, which can be shared, is never run.
        """
        if other is None:
            texts = scenarios_of(store, run.id)
            scenarios = {task: Scenario.of(text) for task, text in texts.items()}
        else:
            scenarios = {task.id: task.scenario for task in other.tasks if task.scenario}
        if not scenarios:
            return None
        verdicts: dict[AttemptKey, list[BehaviourVerdict]] = {}
        for verdict in verdicts_of(store, run.id):
            verdicts.setdefault(verdict.key, []).append(verdict)
        rule = other.answer if other else AnswerRule.of(run.settings)
        return cls(scenarios, verdicts, rule, live=other is not None)

    def add(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Fill in the observations of each record."""
        rows = [self._row(row) for row in frame.iter_rows(named=True)]
        return frame.with_columns(
            pl.Series(name, [row.get(name) for row in rows], dtype=dtype)
            for name, dtype in FILLED.items()
        )

    def _row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        passed = row.get("passed")
        scenario = self.scenarios.get(row["task_id"])
        if scenario is None:
            return {"passed": passed, "pass_score": row.get("pass_score")}
        values = {
            "passed": passed,
            "pass_score": scenario.pass_score,
            "weight": scenario.weight,
            "required": scenario.required,
        }
        seen = self.look(row)
        if seen is None:
            return values
        behaves = scenario.behaves
        return {
            **values,
            "expected_behaviors": [b.name for b in scenario.expected] if behaves else None,
            "observed_behaviors": seen.observed if behaves and not seen.undecided else None,
            "violated": seen.violated if behaves else None,
            "undecided": seen.undecided,
            "passed": seen.passed(passed, answered=row.get("target") is not None),
            "checks": json.dumps(seen.plain(), ensure_ascii=False),
        }

    def look(self, row: Mapping[str, Any]) -> Observation | None:
        """Observe one record; None if it has no scenario or no response."""
        scenario = self.scenarios.get(row["task_id"])
        if scenario is None or row.get("status") == "error" or row.get("response") is None:
            return None
        view = AttemptView(row, self.rule)
        about = response_hash(row)
        by_mark: dict[str, list[BehaviourVerdict]] = {}
        for verdict in self.verdicts.get(AttemptKey.of(row), ()):
            if verdict.said_of == about:
                by_mark.setdefault(verdict.mark, []).append(verdict)
        results = {mark: _agreed(several) for mark, several in by_mark.items()}
        if self.live:
            code = [b for _, b in scenario.leaves() if not b.problem and b.check.by == "code"]
            results |= {behaviour.mark: behaviour.run(view) for behaviour in code}
        return observe(scenario, view, results)


def rows_of(
    run: StoredRun, store: Store, tasks: frozenset[str] = frozenset()
) -> Iterator[dict[str, Any]]:
    """Yield the records of a run that have a response; those of some tasks if any are named."""
    for frame in store.records(run.id, {*NEEDED}, tasks):
        for row in frame.iter_rows(named=True):
            if row["status"] != "error" and row["response"] is not None:
                yield row


def behaviour_verdict(
    who: str, row: Mapping[str, Any], behaviour: Behaviour, result: CheckResult
) -> BehaviourVerdict:
    """Return the verdict to store about one behaviour of a record, without any API key."""
    evidence = json.dumps([e.plain() for e in result.evidence]) if result.evidence else None
    why = redact_environment(result.why).replace("\0", "\ufffd")
    return BehaviourVerdict(
        key=AttemptKey.of(row),
        mark=behaviour.mark,
        who=who,
        said_of=response_hash(row),
        holds=result.holds,
        why=why.encode(errors="replace").decode(),
        at=time.time(),
        error=result.error,
        evidence=redact_environment(evidence) if evidence else None,
    )


def response_hash(row: Mapping[str, Any]) -> str:
    """Return the hash of a response: a verdict is valid only as long as it stays the same."""
    text = "\0".join(str(row.get(name)) for name in ("response", "tool_calls"))
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _agreed(verdicts: list[BehaviourVerdict]) -> CheckResult:
    """Return the verdict of the majority."""
    votes = Counter(one.holds for one in verdicts if one.holds is not None).most_common()
    why = "; ".join(map(_reason, verdicts))
    if not votes:
        return CheckResult(None, why, error=any(one.error for one in verdicts))
    if len(votes) > 1 and votes[0][1] == votes[1][1]:
        return CheckResult(None, f"They disagree: {why}")
    cited = [json_cell(one.evidence or "[]", [dict], "evidence of a verdict") for one in verdicts]
    try:
        evidence = tuple(Excerpt(**excerpt) for excerpts in cited for excerpt in excerpts)
    except TypeError as error:
        raise damaged(f"evidence of a verdict: {error}") from error
    return CheckResult(votes[0][0], why, evidence)


def _reason(verdict: BehaviourVerdict) -> str:
    """Return who decided what, with the reason if it says more."""
    why = verdict.why
    if verdict.who == CODE or verdict.error:
        return f"{verdict.who}: {why}" if why else verdict.who
    word = {True: "yes", False: "no", None: "cannot say"}[verdict.holds]
    return f"{verdict.who}: {word}" + (f" ({why})" if why and why != word else "")


def save_suite_scenarios(suite: LoadedSuite, run: StoredRun, store: Store) -> None:
    """Store the scenarios of a suite with its run, in place of those stored before."""
    texts = {t.id: json.dumps(t.scenario.plain()) for t in suite.tasks if t.scenario}
    if texts or scenarios_of(store, run.id):
        save_scenarios(store, run.id, texts)
