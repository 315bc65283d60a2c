"""Counts of the records of a log, to compare with the summary that the tool wrote itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Side = tuple[Any, Any, Any]
"""The suite, the subject and the tier."""


@dataclass(slots=True)
class Counts:
    """The counts of some records."""

    records: int = 0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    tasks: dict[Any, tuple[float, int]] = field(default_factory=dict)
    """The sum of the scores of each task, and how many there are."""

    @property
    def scored(self) -> int:
        """How many records have a score."""
        return sum(count for _, count in self.tasks.values())

    @property
    def mean(self) -> float | None:
        """The mean score of all records that have one."""
        return sum(total for total, _ in self.tasks.values()) / self.scored if self.tasks else None

    @property
    def mean_of_tasks(self) -> float | None:
        """The mean over tasks of each task's mean score."""
        means = [total / count for total, count in self.tasks.values()]
        return sum(means) / len(means) if means else None

    @property
    def mean_with_errors(self) -> float | None:
        """The mean score if every error counts as 0."""
        whole = self.scored + self.errors
        return sum(total for total, _ in self.tasks.values()) / whole if whole else None


class LogTally:
    """Counts by suite, subject and tier."""

    def __init__(self) -> None:
        self.sides: dict[Side, Counts] = {}

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Count rows."""
        for row in rows:
            side = (row.get("suite"), row.get("subject"), row.get("tier"))
            counts = self.sides.get(side) or self.sides.setdefault(side, Counts())
            counts.records += 1
            if row.get("status") == "error":
                counts.errors += 1
                continue
            passed, score = row.get("passed"), row.get("impl_rate")
            counts.passed += passed is True
            counts.failed += passed is False
            if score is None and passed is not None:
                score = float(passed)
            if score is not None:
                task = row.get("task_id")
                total, count = counts.tasks.get(task, (0.0, 0))
                counts.tasks[task] = total + score, count + 1

    def of(self, suite: Any = None, subject: Any = None, tier: Any = None) -> Counts:
        """Return the counts of some sides; without arguments, of all."""
        whole = Counts()
        for side, counts in self.sides.items():
            asked = zip((suite, subject, tier), side, strict=True)
            if any(want is not None and want != has for want, has in asked):
                continue
            for name in ("records", "passed", "failed", "errors"):
                setattr(whole, name, getattr(whole, name) + getattr(counts, name))
            for task, (total, count) in counts.tasks.items():
                before = whole.tasks.get((side, task), (0.0, 0))
                whole.tasks[side, task] = before[0] + total, before[1] + count
        return whole


@dataclass(frozen=True, slots=True)
class Expectation:
    """A number that the tool reports, and how the records give the same one."""

    name: str
    """What it is, such as `accuracy of match`."""
    value: float
    ours: Callable[[LogTally], float | None] = field(compare=False)

    def difference(self, tally: LogTally) -> tuple[float, float | None] | None:
        """Return both numbers if they differ."""
        ours = self.ours(tally)
        if ours is not None and math.isclose(ours, self.value, rel_tol=1e-6, abs_tol=1e-9):
            return None
        return self.value, ours
