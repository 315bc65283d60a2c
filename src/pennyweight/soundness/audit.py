"""What an audit of a suite found, as frozen values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import polars as pl

from pennyweight.scoring.result import Result

State = Literal["ok", "fails"]

PROBES: dict[str, str] = {
    "gold": "The target passes, or the solution.",
    "empty": "An empty reply fails.",
    "echo": "The prompt itself, as the reply, fails.",
    "refusal": "A refusal fails.",
    "other": "The answer of another task fails, and another choice.",
    "choices": "All choices at once fail.",
    "scenario": "What is expected can be observed, and something can fail.",
    "leak": "The task does not show its target.",
    "duplicate": "No other task is the same.",
    "prompt": "The prompt asks for what the suite reads.",
    "shuffled": "With shuffled targets, replies pass only by chance.",
    "verify": "verify fails in the untouched workspace.",
    "stable": "Three runs of verify agree.",
    "judge": "A reply that orders full marks from the judge fails.",
}
"""What each probe makes sure of."""
OF_SUITE = frozenset({"prompt", "shuffled"})
"""The probes of a whole suite."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something that makes an exam unsound."""

    probe: str
    tasks: tuple[str, ...]
    """The tasks that it is about; none if it is about the suite."""
    why: str
    reply: str | None = None
    """The reply that was tried."""
    answer: str | None = None
    """The answer that was found in it."""


@dataclass(frozen=True, slots=True)
class Unchecked:
    """Tasks of which a probe says nothing, and why."""

    why: str
    tasks: int


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """One probe over all tasks."""

    name: str
    checked: int
    """How many tasks it was tried on."""
    failed: int
    unchecked: tuple[Unchecked, ...] = ()

    @property
    def asks(self) -> str:
        """What the probe makes sure of."""
        return PROBES[self.name]


@dataclass(frozen=True, slots=True)
class TaskAudit:
    """The state of each probe that was tried on a task."""

    task: str
    states: Mapping[str, State]

    @property
    def is_sound(self) -> bool:
        """Whether nothing failed."""
        return "fails" not in self.states.values()


@dataclass(frozen=True, slots=True)
class Chance:
    """How often a right reply passes if the targets are shuffled, over all orders of them."""

    rate: float
    chance: float
    """The share of pairs of tasks that have the same target."""
    tasks: int
    targets: int
    """How many different targets were paired."""
    of_targets: int
    """How many different targets there are."""


@dataclass(frozen=True, slots=True)
class AuditCost:
    """What asking the judges took."""

    calls: int
    usd: float | None


@dataclass(frozen=True, slots=True)
class Audit(Result):
    """What an audit of a suite found."""

    suite: str
    path: str
    tasks: int
    """How many tasks the suite has."""
    audited: tuple[TaskAudit, ...]
    probes: tuple[ProbeResult, ...]
    flaws: tuple[Flaw, ...]
    chance: Chance | None = None
    judging: AuditCost | None = None

    @property
    def is_sound(self) -> bool:
        """Whether no flaw was found; what was not checked may still have some."""
        return not self.flaws

    @property
    def exit_code(self) -> int:
        """What `pennyweight audit` exits with."""
        return 0 if self.is_sound else 1

    def of_task(self, task: str) -> tuple[Flaw, ...]:
        """Return the flaws of one task."""
        return tuple(flaw for flaw in self.flaws if task in flaw.tasks)

    def to_dict(self) -> dict[str, Any]:
        """Return what `pennyweight audit --format json` prints."""
        return {
            "suite": self.suite,
            "path": self.path,
            "sound": self.is_sound,
            "tasks": self.tasks,
            "audited": len(self.audited),
            "flaws": [asdict(flaw) | {"tasks": list(flaw.tasks)} for flaw in self.flaws],
            "probes": [
                {
                    "name": probe.name,
                    "asks": probe.asks,
                    "checked": probe.checked,
                    "failed": probe.failed,
                    "unchecked": [asdict(one) for one in probe.unchecked],
                }
                for probe in self.probes
            ],
            "chance": asdict(self.chance) if self.chance else None,
            "judging": asdict(self.judging) if self.judging else None,
            "results": [{"task": one.task, **one.states} for one in self.audited],
        }

    def to_polars(self) -> pl.DataFrame:
        """Return a row for each task and probe that was tried on it, with what was found."""
        schema = dict.fromkeys(("task", "probe", "state", "why", "reply", "answer"), pl.String)
        return pl.DataFrame(list(self._rows()), schema=schema, orient="row")

    def _rows(self) -> Iterator[tuple[str | None, ...]]:
        found = {(task, flaw.probe): flaw for flaw in self.flaws for task in flaw.tasks}
        for one in self.audited:
            for probe, state in one.states.items():
                flaw = found.get((one.task, probe))
                more = (flaw.why, flaw.reply, flaw.answer) if flaw else (None, None, None)
                yield (one.task, probe, state, *more)
        for flaw in self.flaws:
            if not flaw.tasks:
                yield (None, flaw.probe, "fails", flaw.why, flaw.reply, flaw.answer)

    def __repr__(self) -> str:
        verdict = "sound" if self.is_sound else f"unsound, flaws: {len(self.flaws)}"
        lines = [f"{self.suite}: {verdict}"]
        return "\n".join([*lines, *(f"  {flaw.why}" for flaw in self.flaws)])


def columns_of(audit: Audit) -> Sequence[str]:
    """Return the probes of tasks that were tried on one or more of them, in their order."""
    tried = {probe.name for probe in audit.probes if probe.checked}
    return [name for name in PROBES if name in tried and name not in OF_SUITE]
