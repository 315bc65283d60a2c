"""Observe the behaviours in the records of a run: pure, so that it can be done again for ever.

What a record cannot say by itself (code of the suite's writer, a judge, a person) is looked up
among the verdicts that were given about it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from pennyweight.checks.attempt import COLUMNS, AttemptView
from pennyweight.checks.behaviour import Behaviour
from pennyweight.checks.declaration import CheckResult, Excerpt
from pennyweight.checks.scenario import Observation, Scenario, observe
from pennyweight.models.keys import redact_environment
from pennyweight.record import KEY, AttemptKey
from pennyweight.store.verdicts import BehaviourVerdict, save_scenarios, scenarios_of, verdicts_of
from pennyweight.text.extraction import AnswerRule

if TYPE_CHECKING:
    from pennyweight.store.store import Run, Store
    from pennyweight.suite.values import Suite

CODE = "code"
"""Who speaks for the code of a suite's writer."""
NEEDED = (*KEY, *COLUMNS)
"""The columns of a record without which nothing can be observed in it."""

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
"""The columns that are filled."""


@dataclass(frozen=True, slots=True)
class Observer:
    """Looks at the records of a run with the scenarios of its suite."""

    scenarios: Mapping[str, Scenario]
    given: Mapping[AttemptKey, list[BehaviourVerdict]] = field(default_factory=dict)
    rule: AnswerRule = field(default_factory=AnswerRule)
    live: bool = False
    """Whether the code of the suite's writer is run here and now: only for a suite at hand."""

    @classmethod
    def of(cls, run: Run, store: Store, other: Suite | None = None) -> Observer | None:
        """Make the observer of a run, by its own scenarios or those of another suite.

        A store may be shared: what it holds is looked at, but no code in it is run.
        """
        if other is None:
            texts = scenarios_of(store, run.id)
            scenarios = {task: Scenario.of(text) for task, text in texts.items()}
        else:
            scenarios = {task.id: task.scenario for task in other.tasks if task.scenario}
        if not scenarios:
            return None
        given: dict[AttemptKey, list[BehaviourVerdict]] = {}
        for one in verdicts_of(store, run.id):
            given.setdefault(one.key, []).append(one)
        rule = other.answer if other else AnswerRule.of(run.settings)
        return cls(scenarios, given, rule, live=other is not None)

    def add(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Fill in what was observed in each record."""
        found = [self._row(row) for row in frame.iter_rows(named=True)]
        columns = [
            pl.Series(name, [row.get(name) for row in found], dtype=dtype)
            for name, dtype in FILLED.items()
        ]
        return frame.with_columns(columns)

    def _row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        kept = {"passed": row.get("passed"), "pass_score": row.get("pass_score")}
        scenario = self.scenarios.get(row["task_id"])
        if scenario is None:
            return kept
        own = {
            "pass_score": scenario.pass_score,
            "weight": scenario.weight,
            "required": scenario.required,
        }
        seen = self.look(row)
        if seen is None:
            return {**kept, **own}
        behaves = scenario.behaves
        return {
            **own,
            "expected_behaviors": [b.name for b in scenario.expected] if behaves else None,
            "observed_behaviors": seen.observed if behaves and not seen.undecided else None,
            "violated": seen.violated if behaves else None,
            "undecided": seen.undecided,
            "passed": seen.passed(kept["passed"], answered=row.get("target") is not None),
            "checks": json.dumps(seen.plain(), ensure_ascii=False),
        }

    def look(self, row: Mapping[str, Any]) -> Observation | None:
        """Look at one record; None where there is nothing to look at."""
        scenario = self.scenarios.get(row["task_id"])
        if scenario is None or row.get("status") == "error" or row.get("response") is None:
            return None
        seen = AttemptView(row, self.rule)
        return observe(scenario, seen, self._verdicts(scenario, row, seen))

    def _verdicts(
        self, scenario: Scenario, row: Mapping[str, Any], seen: AttemptView
    ) -> dict[str, CheckResult]:
        """Take what was said about this very response."""
        about = said_of(row)
        key = AttemptKey.of(row)
        own: dict[str, list[BehaviourVerdict]] = {}
        for one in self.given.get(key, ()):
            if one.said_of == about:
                own.setdefault(one.mark, []).append(one)
        found = {mark: _agreed(several) for mark, several in own.items()}
        if self.live:
            code = [b for _, b in scenario.all() if not b.problem and b.check.by == "code"]
            found |= {one.mark: one.run(seen) for one in code}
        return found


def rows_of(run: Run, store: Store) -> Iterator[dict[str, Any]]:
    """Give the records of a run in which something can be observed."""
    for frame in store.records(run.id, {*NEEDED}):
        for row in frame.iter_rows(named=True):
            if row["status"] != "error" and row["response"] is not None:
                yield row


def given_by(
    who: str, row: Mapping[str, Any], behaviour: Behaviour, said: CheckResult
) -> BehaviourVerdict:
    """Make the entry of a verdict about one behaviour of a record; no key of ours gets into it."""
    told = json.dumps([one.plain() for one in said.evidence]) if said.evidence else None
    return BehaviourVerdict(
        key=AttemptKey.of(row),
        mark=behaviour.mark,
        who=who,
        said_of=said_of(row),
        holds=said.holds,
        why=redact_environment(said.why).replace("\0", "\ufffd").encode(errors="replace").decode(),
        at=time.time(),
        error=said.error,
        evidence=redact_environment(told) if told else None,
    )


def said_of(row: Mapping[str, Any]) -> str:
    """Hash what a verdict is about, so that it does not outlive the response."""
    text = "\0".join(str(row.get(name)) for name in ("response", "tool_calls"))
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _agreed(given: list[BehaviourVerdict]) -> CheckResult:
    """Make one verdict of what several said: the one that most of them gave."""
    votes = Counter(one.holds for one in given if one.holds is not None).most_common()
    why = "; ".join(map(_told, given))
    if not votes:
        return CheckResult(None, why, error=any(one.error for one in given))
    if len(votes) > 1 and votes[0][1] == votes[1][1]:
        return CheckResult(None, f"They disagree: {why}")
    evidence = [Excerpt(**e) for one in given for e in json.loads(one.evidence or "[]")]
    return CheckResult(votes[0][0], why, tuple(evidence))


_WORDS = {True: "yes", False: "no", None: "cannot say"}


def _told(one: BehaviourVerdict) -> str:
    """Write who said what, with the reason if there is one.

    Code and judges say it in their reason already.
    """
    if one.who == CODE or one.error:
        return f"{one.who}: {one.why}" if one.why else one.who
    word = _WORDS[one.holds]
    return f"{one.who}: {word}" + (f" ({one.why})" if one.why and one.why != word else "")


def keep(suite: Suite, run: Run, store: Store) -> None:
    """Keep with a run what its attempts are checked for."""
    made = {task.id: task.scenario for task in suite.tasks if task.scenario}
    if made or scenarios_of(store, run.id):
        texts = {task: json.dumps(one.plain()) for task, one in made.items()}
        save_scenarios(store, run.id, texts)
