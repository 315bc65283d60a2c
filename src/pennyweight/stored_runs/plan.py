"""The plan of a run that stops early: which tasks it would have tried, in which order.

`pennyweight run --until-decided` stores it in the run's settings, so that every later decision on
the same run is tested in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pennyweight.gates.early_stopping import EarlyStopPlan, PlannedTask

if TYPE_CHECKING:
    from pennyweight.store.store import RunSettings, StoredRun


@dataclass(frozen=True, slots=True)
class EarlyStop:
    """What a run stores about its early stopping."""

    plan: EarlyStopPlan
    seed: int
    """Determines the random order of the tasks."""
    version: str | None = None
    """The evaluated version, for thresholds that depend on it."""

    @classmethod
    def of(cls, run: StoredRun) -> EarlyStop | None:
        """Read it back from a run's settings; None for a run that does not stop early."""
        stored = run.settings.get("until_decided")
        if not stored:
            return None
        plan = EarlyStopPlan(tuple(PlannedTask(*task) for task in stored["tasks"]), stored["runs"])
        return cls(plan, stored.get("seed", 0), stored.get("version"))

    def settings(self) -> RunSettings:
        """Return the entry for the run's settings."""
        plan = self.plan
        tasks = [[t.id, t.category, t.capability] for t in plan.tasks]
        stored = {"tasks": tasks, "runs": plan.runs, "seed": self.seed, "version": self.version}
        return {"until_decided": stored}


def early_stop_plan(run: StoredRun, where: Mapping[str, str] | None = None) -> EarlyStopPlan | None:
    """Return the plan of an early-stopped run, restricted to what `where` selects.

    None for a run that was to be made in full. A policy must be decided with this plan, or the
    error rates of the sequential tests do not hold.
    """
    early = EarlyStop.of(run)
    return early.plan.where(where or {}) if early else None
