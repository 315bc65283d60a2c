"""What is found while a suite is examined, and the words for it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pennyweight.soundness.audit import (
    PROBES,
    Audit,
    Chance,
    Flaw,
    ProbeResult,
    State,
    TaskAudit,
    Unchecked,
)
from pennyweight.suite.values import LoadedSuite, Task

MAX_EXCERPT = 200
NO_SOLUTION = "no solution"
JUDGED = "a judge or a person decides"
NOT_ASKED = "the judges were not asked; --judges does"
NOT_RUN = "its commands were not run"
PASSES_BEFORE = "the suite allows that it passes before"
NOTHING = "nothing decides"
SILENCE = "doing nothing may be right"
REFUSABLE = "a refusal may be right"
CODE = "code of the suite decides"
QUOTED = "most inputs quote their target"
PATTERN = "no reply is known in which the pattern finds the target"
UNMARKED = "the target passes, but the solution has no answer where the suite looks for it"
SLOW = "its check is slow"


Progress = Callable[[int, int], None]
"""Receives how many workspaces were tried, and of how many."""


@dataclass(slots=True)
class Findings:
    """What is found while a suite is examined."""

    states: dict[str, dict[str, State]] = field(default_factory=lambda: defaultdict(dict))
    unchecked: dict[str, dict[str, set[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    """The tasks of which a probe says nothing, by the reason."""
    flaws: list[Flaw] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)

    def well(self, probe: str, *tasks: Task) -> None:
        """Note tasks on which a probe found nothing."""
        for task in tasks:
            self.states[task.id].setdefault(probe, "ok")

    def wrong(
        self,
        probe: str,
        tasks: Sequence[Task],
        why: str,
        reply: str | None = None,
        answer: str | None = None,
    ) -> None:
        """Note a flaw of some tasks, or of the suite."""
        shown = None if reply is None else reply[:MAX_EXCERPT]
        self.flaws.append(Flaw(probe, tuple(t.id for t in tasks), why, shown, answer))
        for task in tasks:
            self.states[task.id][probe] = "fails"

    def leave(self, probe: str, why: str, *tasks: Task) -> None:
        """Note tasks of which a probe says nothing."""
        self.unchecked[probe][why].update(task.id for task in tasks)

    def audit(self, suite: LoadedSuite, tasks: Sequence[Task], chance: Chance | None) -> Audit:
        """Return what was found."""
        order = {probe: place for place, probe in enumerate(PROBES)}
        place = {task.id: n for n, task in enumerate(tasks)}
        flaws = sorted(
            dict.fromkeys(self.flaws),  # several agents meet the same flaw
            key=lambda f: (order[f.probe], place.get(f.tasks[0], 0) if f.tasks else -1),
        )
        rows = tuple(TaskAudit(task.id, dict(self.states.get(task.id, {}))) for task in tasks)
        return Audit(
            suite=suite.name,
            path=suite.path,
            tasks=len(suite.tasks),
            audited=rows,
            probes=tuple(self._probes(rows)),
            flaws=tuple(flaws),
            chance=chance,
        )

    def _probes(self, rows: Sequence[TaskAudit]) -> Iterator[ProbeResult]:
        for probe in PROBES:
            states = [row.states[probe] for row in rows if probe in row.states]
            whole = sum(1 for flaw in self.flaws if flaw.probe == probe and not flaw.tasks)
            several = self.unchecked[probe].items()
            left = tuple(Unchecked(why, len(ids)) for why, ids in several if ids)
            checked = len(states) or self.checked[probe] or whole
            if checked or left:
                yield ProbeResult(probe, checked, states.count("fails") or whole, left)


def quoted(names: Sequence[str]) -> str:
    """Write names in quotation marks."""
    return ", ".join(repr(cut(name)) for name in names)


def cut(text: str, width: int = 60) -> str:
    """Put a text on one line and cut it."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"
