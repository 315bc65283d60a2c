"""Gates on systems that are exactly at the limit: both a pass and a fail are then wrong.

Each data set is decided by `decide`, as `pennyweight gate` does, with a policy as a user writes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
import polars as pl

from bench.coverage import records, size
from bench.findings import Finding, share
from bench.worlds import Amounts, Columns, Law, Passes, Repeats, World, drawn_laws, percent
from pennyweight.gates.decision import decide, needed_metrics
from pennyweight.gates.loader import load_policy
from pennyweight.gates.policy import Policy
from pennyweight.gates.records import GateRecords, read_records
from pennyweight.sources.source import FrameSource

STATED, MOST = 0.05, 0.06
SECTION = "Gates at their limit"
SLOWER = 2
"""A gate takes longer to decide than an interval to compute, so it gets fewer data sets."""


@dataclass(frozen=True)
class Prepared:
    """A policy, and records of a world whose values are filled in."""

    policy: Policy
    template: GateRecords

    @classmethod
    def of(cls, policy: dict[str, object], columns: Columns, world: World) -> Prepared:
        read = load_policy("policy.json", None, json.dumps(policy))
        first = {name: values[:1] for name, values in columns.items()}
        frame = records(first, world.tasks, world.tries)
        source = FrameSource(frame.drop("data_set"))
        return cls(read, read_records([source], needed_metrics(read), read.options))

    def filled(self, columns: Columns, number: int) -> GateRecords:
        """Fill in one data set."""
        new = [pl.Series(name, values[number].ravel()) for name, values in columns.items()]
        return replace(self.template, frame=self.template.frame.with_columns(new))


@dataclass(frozen=True)
class AtLimit:
    """A gate on a threshold that the true value meets exactly."""

    metric: str
    world: World
    section: str = SECTION

    def measure(self, seed: int, sets: int) -> list[Finding]:
        rng, world = np.random.default_rng([seed, crc32(repr(self).encode())]), self.world
        sets //= SLOWER
        columns = world.draw(rng, sets)
        options = world.options if isinstance(world, Repeats) else {}
        gate = {"metric": self.metric, "threshold": world.truth, **options}
        policy = {"on": "confident", "error_rate": STATED, "gates": [gate]}
        ready = Prepared.of(policy, columns, world)
        words = [decide(ready.policy, ready.filled(columns, n)).verdict for n in range(sets)]
        return wrong(self.section, f"gate, {self.metric}", world, words)


@dataclass(frozen=True)
class AtMargin:
    """A cost that exceeds its baseline by exactly what is allowed."""

    before: Law
    now: Law
    tasks: int
    margin: float = 0.2
    tries: int = 1
    section: str = SECTION

    def __str__(self) -> str:
        return f"{self.before}, now {self.now}, dearer by the margin of {percent(self.margin)}"

    def measure(self, seed: int, sets: int) -> list[Finding]:
        rng = np.random.default_rng([seed, crc32(repr(self).encode())])
        sets //= SLOWER
        old, new = (Amounts("cost_usd", law, self.tasks) for law in (self.before, self.now))
        before, now = old.draw(rng, sets), new.draw(rng, sets)
        before = {"cost_usd": before["cost_usd"] / old.truth}
        now = {"cost_usd": now["cost_usd"] / new.truth * (1 + self.margin)}
        gate = {"metric": "cost_usd_mean", "no_worse_than": f"{self.margin:.0%}"}
        ready = Prepared.of({"error_rate": STATED, "gates": [gate]}, now, new)
        words = [
            decide(ready.policy, ready.filled(now, n), ready.filled(before, n)).verdict
            for n in range(sets)
        ]
        return wrong(self.section, "gate, cost_usd_mean no worse than a baseline", self, words)


def wrong(section: str, what: str, world: World | AtMargin, words: list[str]) -> list[Finding]:
    """Return how often a gate passed, and how often it failed; neither is right at the limit."""
    return [
        Finding(section, f"{what}: wrong {word}", str(world), size(world.tasks, world.tries),
                *share([found == word for found in words]), STATED, 0.0, MOST, len(words))
        for word in ("pass", "fail")
    ]  # fmt: skip


def rows() -> Iterator[AtLimit | AtMargin]:
    for tasks in (20, 50, 200):
        yield AtLimit("cost_usd_mean", Amounts("cost_usd", Law("lognormal", 1.0), tasks))
        yield AtLimit("latency_mean_ms", Amounts("latency_ms", Law("lognormal", 0.7), tasks))
        yield AtLimit("cost_of_pass", Passes(Law("lognormal", 1.0), 0.9, tasks))
    for tasks in (20, 50):
        yield AtMargin(Law("steady"), Law("lognormal", 1.0), tasks)
        yield AtMargin(Law("lognormal", 1.0), Law("steady"), tasks)
    for ease in ((3, 1.5), (8, 0.5)):
        yield AtLimit("pass_at_k", Repeats("pass_at_k", ease, 3, 20, 5))
    for tasks in (2, 5):
        yield AtLimit("cost_usd_mean", Amounts("cost_usd", Law("two", 10, 0.1), tasks))


def drawn(seed: int) -> Iterator[AtLimit]:
    """Systems that only the seed knows."""
    rng = np.random.default_rng([seed, 3])
    for law in drawn_laws(rng):
        world = Amounts("cost_usd", law, int(rng.integers(20, 201)))
        yield AtLimit("cost_usd_mean", world, section="Worlds drawn from the seed")
