"""Questions that a run leaves to a person, and the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pennyweight.checks.behaviour import Behaviour
from pennyweight.checks.declaration import CheckResult
from pennyweight.record import AttemptKey
from pennyweight.store.store import Store, StoredRun
from pennyweight.store.verdicts import save_verdicts
from pennyweight.stored_runs.observations import Observer, behaviour_verdict, response_hash, rows_of
from pennyweight.stored_runs.transcript import calls_of, turns_of


@dataclass(frozen=True, slots=True)
class ReviewQuestion:
    """A behaviour of one attempt that a person is asked about."""

    run: StoredRun
    reviewer: str
    record: Mapping[str, Any]
    role: str
    """`expected`, `must_not` or `checks`."""
    behaviour: Behaviour

    @property
    def transcript(self) -> list[tuple[str, str]]:
        """The prompt, the response and the tool calls, or every turn of a conversation."""
        if turns := turns_of(self.record):
            return [(role.capitalize(), text) for role, text in turns]
        parts = [("Prompt", self.record.get("input") or "")]
        parts.append(("Response", self.record.get("response") or ""))
        calls = calls_of(self.record.get("tool_calls"))
        return [*parts, ("Tools", "\n".join(calls))] if calls else parts

    def answer(self, store: Store, *, holds: bool, note: str = "") -> None:
        """Store the verdict of the reviewer."""
        result = CheckResult(holds, note)
        verdict = behaviour_verdict(self.reviewer, self.record, self.behaviour, result)
        save_verdicts(store, [verdict])


def review_questions(
    run: StoredRun,
    store: Store,
    reviewer: str,
    *,
    again: bool = False,
    tasks: frozenset[str] = frozenset(),
) -> Iterator[ReviewQuestion]:
    """Yield the questions that this reviewer has not answered yet; with `again`, all of them.

    `tasks` restricts them to the records of some tasks.
    """
    observer = Observer.of(run, store)
    if observer is None:
        return
    for row in rows_of(run, store, tasks):
        about = response_hash(row), reviewer
        verdicts = observer.verdicts.get(AttemptKey.of(row), ())
        answered = {one.mark for one in verdicts if (one.said_of, one.who) == about}
        scenario = observer.scenarios.get(row["task_id"])
        for role, behaviour in scenario.leaves() if scenario else ():
            asked = not behaviour.problem and behaviour.check.by == "person"
            if asked and (again or behaviour.mark not in answered):
                yield ReviewQuestion(run, reviewer, row, role, behaviour)
