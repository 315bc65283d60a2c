"""The plan of a run that stops early: its tasks, and the random order in which they are tried."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pennyweight.errors import UsageError
from pennyweight.gates.policy import Gate
from pennyweight.gates.records import GateRecords


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """One task of a run."""

    id: str
    category: str | None = None
    capability: str | None = None


@dataclass(frozen=True, slots=True)
class EarlyStopPlan:
    """The tasks of a run in the order in which it tries them, and the attempts at each."""

    tasks: tuple[PlannedTask, ...]
    runs: int

    def chosen(self, gate: Gate) -> list[str]:
        """Return the ids of the tasks that a gate uses."""
        return [task.id for task in self._having(gate.select)]

    def remaining(self, gate: Gate, records: GateRecords) -> int:
        """Count the attempts that have no record yet."""
        return max(0, len(self.chosen(gate)) * self.runs - records.frame.height)

    def where(self, wanted: Mapping[str, str]) -> EarlyStopPlan:
        """Keep the tasks with these values; refuse columns that a plan does not have."""
        columns = [(c, v) for c, v in wanted.items() if c not in CONSTANT]
        for column, _ in columns:
            if column not in KNOWN:
                raise UsageError(
                    f"The run stopped early, and its plan does not have the column {column!r}; "
                    f"use --where with {', '.join(KNOWN)}."
                )
        return replace(self, tasks=tuple(self._having(columns)))

    def _having(self, select: Iterable[tuple[str, str]]) -> list[PlannedTask]:
        wanted = [(KNOWN[c], v.strip().lower()) for c, v in select]
        return [
            task
            for task in self.tasks
            if all((getattr(task, c) or "").strip().lower() == v for c, v in wanted)
        ]


CONSTANT = ("run", "subject", "tier")
"""Columns that have one value in a run with --until-decided."""
KNOWN = {"category": "category", "capability": "capability", "task_id": "id"}


def shuffled(ids: Sequence[str], seed: int) -> list[str]:
    """Return tasks in a random order that depends only on the seed."""

    def rank(task: str) -> bytes:
        return hashlib.blake2b(f"{seed}\0{task}".encode(errors="surrogatepass")).digest()

    return sorted(ids, key=rank)
