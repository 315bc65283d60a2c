"""Runs that end as soon as a policy is decided: parts of a suite, and what is known after each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError
from assay.gates.decide import decide, needed_metrics
from assay.gates.records import read_records
from assay.gates.running import Plan, Planned, shuffled
from assay.run.source import RunSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.gates.policy import Policy
    from assay.gates.records import Records
    from assay.gates.verdict import Verdict
    from assay.store.store import Run, Store
    from assay.suite.values import Suite

FIRST = 10
GROWTH = 1.15
"""Between two looks the tasks tried grow by so much: few looks, little made in vain."""


@dataclass(frozen=True, slots=True)
class Until:
    """A suite whose tasks are tried in random order until its policy is decided."""

    suite: Suite
    """With its tasks in the order in which they are tried."""
    policy: Policy
    baseline: Records | None

    @classmethod
    def of(cls, suite: Suite, policy: Policy, baseline: Records | None) -> Until:
        """Check that a verdict can be reached in parts."""
        if len(suite.subjects) * len(suite.tiers) > 1:
            raise UsageError(
                "--until-decided takes a suite with one subject and one tier: each verdict would "
                "need attempts of its own."
            )
        if all(gate.on == "value" for gate in policy.gates):
            raise UsageError(
                "No gate of the policy is 'on: confident' or compares with a baseline, so nothing "
                "can be decided early; run the suite and use 'assay gate'."
            )
        by_id = {task.id: task for task in suite.tasks}
        order = shuffled(list(by_id), suite.seed)
        return cls(replace(suite, tasks=tuple(by_id[i] for i in order)), policy, baseline)

    @property
    def plan(self) -> Plan:
        """What would be tried at the most."""
        tasks = (Planned(t.id, t.category, t.capability) for t in self.suite.tasks)
        return Plan(tuple(tasks), self.suite.runs)

    def settings(self) -> dict[str, Any]:
        """Give what is kept with the run, so that it can be decided again in the same way."""
        plan = self.plan
        tasks = [[t.id, t.category, t.capability] for t in plan.tasks]
        return {"until_decided": {"tasks": tasks, "runs": plan.runs}}

    def parts(self) -> Iterator[Suite]:
        """Give ever larger parts of the suite; the last one of each round has all tasks."""
        for number in range(1, self.suite.runs + 1):
            for size in sizes(len(self.suite.tasks)):
                yield replace(self.suite, tasks=self.suite.tasks[:size], runs=number)

    def look(self, run: Run, store: Store) -> Verdict:
        """Decide on what is there so far."""
        source = [RunSource(run, store)]
        records = read_records(source, needed_metrics(self.policy), self.policy.options)
        return decide(self.policy, records, self.baseline, self.plan)


def sizes(tasks: int) -> Iterator[int]:
    """Say after how many tasks to look.

    >>> list(sizes(20))
    [10, 12, 14, 16, 18, 20]
    """
    size = FIRST
    while size < tasks:
        yield size
        size = max(size + 2, int(size * GROWTH))
    yield tasks
