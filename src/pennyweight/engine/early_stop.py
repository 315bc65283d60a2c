"""Runs that end as soon as a policy is decided: growing parts of a suite, with a verdict each."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pennyweight.engine.batches.pending import in_lane
from pennyweight.errors import UsageError
from pennyweight.gates.decision import decide, needed_metrics
from pennyweight.gates.early_stopping import EarlyStopPlan, PlannedTask, shuffled
from pennyweight.gates.policy import Policy
from pennyweight.gates.records import GateRecords, read_records
from pennyweight.gates.sequential import FIRST, sizes
from pennyweight.gates.verdict import Verdict
from pennyweight.store.store import RunSettings, Store, StoredRun
from pennyweight.stored_runs.plan import EarlyStop
from pennyweight.stored_runs.source import RunSource
from pennyweight.suite.values import LoadedSuite


@dataclass(frozen=True, slots=True)
class GrowingSuite:
    """A suite whose tasks are tried in random order until its policy is decided."""

    suite: LoadedSuite
    """The suite, with its tasks in the order in which they are tried."""
    policy: Policy
    baseline: GateRecords | None
    seed: int
    """The seed of the order, which differs in each run, so that no task always comes first."""
    version: str | None = None
    """The evaluated version, for progressive thresholds."""

    @classmethod
    def of(
        cls,
        suite: LoadedSuite,
        policy: Policy,
        baseline: GateRecords | None,
        *,
        seed: int | None = None,
        version: str | None = None,
    ) -> GrowingSuite:
        """Shuffle the tasks. Raise UsageError if the policy cannot be decided early."""
        if len(suite.subjects) * len(suite.tiers) > 1:
            raise UsageError("--until-decided needs a suite with one subject and one tier.")
        if all(gate.on == "value" for gate in policy.gates):
            raise UsageError(
                "No gate of the policy is 'on: confident' or compares with a baseline, so nothing "
                "can be decided early; write 'on: confident', or run the suite and use "
                "'pennyweight gate'."
            )
        if baseline is None and any(gate.paired for gate in policy.gates):
            raise UsageError("The policy compares with a baseline; --baseline names one.")
        seed = secrets.randbits(32) if seed is None else seed
        by_id = {task.id: task for task in suite.tasks}
        order = shuffled(list(by_id), seed)
        ordered = replace(suite, tasks=tuple(by_id[i] for i in order))
        return cls(ordered, policy, baseline, seed, version)

    @property
    def plan(self) -> EarlyStopPlan:
        """All attempts that may be made."""
        tasks = (PlannedTask(t.id, t.category, t.capability) for t in self.suite.tasks)
        return EarlyStopPlan(tuple(tasks), self.suite.runs)

    @property
    def required(self) -> tuple[str, ...]:
        """The tasks that must pass each time they are tried."""
        own = [t.id for t in self.suite.tasks if t.required]
        return tuple({*self.policy.required, *own} - {*self.policy.optional})

    def settings(self) -> RunSettings:
        """Return the settings that a run stores, so that it can be decided again."""
        early = EarlyStop(self.plan, self.seed, self.version).settings()
        return {**early, "tasks": len(self.suite.tasks), "runs": self.suite.runs}

    def parts(self) -> Iterator[LoadedSuite]:
        """Yield growing parts of the suite; the last one of each round has all tasks.

        Required tasks are tried first, because one failure ends the run. The statistical tests
        still follow the random order, so they are not biased by it. In batches, which take hours,
        the parts double: the tests look at each of their sizes, also at those between two parts.
        """
        first = set(self.required)
        waits = any(in_lane(subject, self.suite.limits) for subject in self.suite.subjects)
        for number in range(1, self.suite.runs + 1):
            looks = sizes(len(self.suite.tasks), first=0 if first else FIRST)
            for size in doubling(looks) if waits else looks:
                chosen = [t for i, t in enumerate(self.suite.tasks) if i < size or t.id in first]
                if chosen:
                    yield replace(self.suite, tasks=tuple(chosen), runs=number, is_part=True)

    def look(self, run: StoredRun, store: Store) -> Verdict:
        """Decide the policy by the records so far."""
        source = [RunSource(run, store)]
        records = read_records(source, needed_metrics(self.policy), self.policy.options)
        return decide(self.policy, records, self.baseline, self.plan)


def doubling(looks: Iterable[int]) -> Iterator[int]:
    """Yield those of increasing numbers that are at least twice the one before, and the last.

    >>> list(doubling([10, 12, 15, 20, 24, 30]))
    [10, 20, 30]
    """
    before = skipped = 0
    for size in looks:
        if size >= 2 * before:
            yield size
            before = skipped = size
        else:
            skipped = size
    if skipped > before:
        yield skipped
