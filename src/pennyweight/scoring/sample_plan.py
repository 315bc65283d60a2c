"""A plan: how many tasks and repeats a question needs, and what they cost, as plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import polars as pl

from pennyweight.scoring.result import Result
from pennyweight.text.format import count, money

Question = Literal["difference", "no_worse", "width", "policy"]


@dataclass(frozen=True, slots=True)
class PlanRow:
    """What a question needs if each task is tried this often."""

    runs: int
    tasks: int | None
    """None if no number of tasks is enough."""
    likely: tuple[int, int] | None = None
    """Between which numbers of tasks the true need is likely to lie, by the pilot's size."""
    attempts: int | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What a plan assumes about a metric, and what of it a pilot shows."""

    metric: str
    mean: float
    sd: float
    task_share: float
    correlation: float
    assumed: tuple[str, ...] = ()
    """The names of those that no record shows."""


@dataclass(frozen=True, slots=True)
class PlannedGate:
    """A gate of a policy, the value it is planned for, and the tasks it needs for each `runs`."""

    name: str
    metric: str
    rule: str
    value: float | None = None
    expected: Literal["pass", "fail"] | None = None
    """What the assumed value decides; None if it is at the threshold itself."""
    tasks: tuple[int | None, ...] = ()
    why: str = ""
    """Why no number of tasks is given."""


@dataclass(frozen=True, slots=True)
class SamplePlan(Result):
    """How many tasks and repeats a question needs, and what they cost."""

    question: Question
    power: float
    confidence: float
    comparisons: int
    sides: int
    """How many sides are tried: two if they are compared."""
    rows: tuple[PlanRow, ...]
    about: tuple[Assumptions, ...]
    amount: float | None = None
    """The difference, width or margin; of numbers, relative to their mean."""
    relative: bool = False
    unit: str = ""
    gates: tuple[PlannedGate, ...] = ()
    policy: str = ""
    pilot_tasks: int | None = None
    pilot_attempts: int | None = None
    cost_per_attempt: float | None = None
    available: int | None = None
    """How many tasks there are."""
    limit: int | None = None
    """How many tasks would be needed with unlimited attempts at each."""

    @property
    def best(self) -> PlanRow | None:
        """The cheapest row for which there are enough tasks; None if there is none."""
        most = self.available
        fitting = [r for r in self.rows if r.tasks and (most is None or r.tasks <= most)]
        return min(fitting, key=lambda r: (r.attempts or 0, r.runs), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return what `pennyweight plan --format json` prints."""
        best = self.best
        return {
            "question": self.question,
            "metric": self.about[0].metric if len(self.about) == 1 else None,
            "amount": self.amount,
            "relative": self.relative,
            "policy": self.policy or None,
            "power": self.power,
            "confidence": self.confidence,
            "comparisons": self.comparisons,
            "sides": self.sides,
            "tasks_available": self.available,
            "cost_per_attempt": self.cost_per_attempt,
            "pilot": None
            if self.pilot_tasks is None
            else {"tasks": self.pilot_tasks, "attempts": self.pilot_attempts},
            "assumptions": [asdict(one) | {"assumed": list(one.assumed)} for one in self.about],
            "gates": [asdict(gate) | {"tasks": list(gate.tasks)} for gate in self.gates],
            "rows": [
                asdict(row) | {"likely": list(row.likely) if row.likely else None}
                for row in self.rows
            ],
            "tasks_with_unlimited_runs": self.limit,
            "best": None if best is None else best.runs,
        }

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a table."""
        rows = [
            {
                "runs": row.runs,
                "tasks": row.tasks,
                "tasks_low": row.likely[0] if row.likely else None,
                "tasks_high": row.likely[1] if row.likely else None,
                "attempts": row.attempts,
                "cost_usd": row.usd,
            }
            for row in self.rows
        ]
        whole = dict.fromkeys(("runs", "tasks", "tasks_low", "tasks_high", "attempts"), pl.Int64)
        return pl.DataFrame(rows, schema={**whole, "cost_usd": pl.Float64})

    def __repr__(self) -> str:
        lines = [f"{self.question}, {self.power:.0%} power"]
        for row in self.rows:
            cost = f", {money(row.usd)}" if row.usd is not None else ""
            mark = "  ← cheapest" if row == self.best else ""
            made = f"{count(row.tasks)} tasks × {row.runs}: {count(row.attempts)} attempts"
            lines.append(f"  {made}{cost}{mark}")
        return "\n".join(lines)
