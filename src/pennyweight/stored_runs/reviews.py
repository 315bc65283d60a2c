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
    asked = _asked(observer)
    if observer is None or not asked:
        return
    for row in rows_of(run, store, tasks):
        about = response_hash(row), reviewer
        verdicts = observer.verdicts.get(AttemptKey.of(row), ())
        answered = {one.mark for one in verdicts if (one.said_of, one.who) == about}
        for role, behaviour in asked.get(row["task_id"], ()):
            if again or behaviour.mark not in answered:
                yield ReviewQuestion(run, reviewer, row, role, behaviour)


def open_questions(run: StoredRun, store: Store) -> int:
    """Count the questions that nobody has answered; records are read only if there are any."""
    observer, found = Observer.of(run, store), 0
    asked = _asked(observer)
    if observer is None or not asked:
        return 0
    for row in rows_of(run, store):
        verdicts, about = observer.verdicts.get(AttemptKey.of(row), ()), response_hash(row)
        answered = {one.mark for one in verdicts if one.said_of == about}
        marks = [behaviour.mark for _, behaviour in asked.get(row["task_id"], ())]
        found += sum(mark not in answered for mark in marks)
    return found


def _asked(observer: Observer | None) -> dict[str, list[tuple[str, Behaviour]]]:
    """Return what people are asked about the replies to each task."""
    found = {
        task: [
            (role, leaf)
            for role, leaf in scenario.leaves()
            if not leaf.problem and leaf.check.by == "person"
        ]
        for task, scenario in (observer.scenarios.items() if observer else ())
    }
    return {task: leaves for task, leaves in found.items() if leaves}
