"""`--until-decided`: how often it decides, how often wrongly, and how many tasks it saves.

The whole suite is drawn and decided at once: a sequential test never takes a decision back, and
says after how many tasks it was made.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
from scipy.stats import norm

from bench.coverage import size
from bench.findings import Finding, share
from bench.limits import Prepared
from bench.worlds import Amounts, Columns, Law, World, percent
from pennyweight.gates.decision import decide
from pennyweight.gates.early_stopping import EarlyStopPlan, PlannedTask
from pennyweight.gates.policy import Gate
from pennyweight.gates.sequential import sizes

STATED, MOST, SAVED = 0.05, 0.06, 0.30
FEWER = 0.05
"""By how much less often than the plain gate an early-stopped run may decide."""
SLOWER = 4
SECTION = "Runs that stop when decided"


@dataclass(frozen=True)
class Rates:
    """Tasks that are tried once and pass at a rate."""

    rate: float
    tasks: int
    tries: int = 1

    def __str__(self) -> str:
        return f"{percent(self.rate)} pass"

    @property
    def truth(self) -> float:
        return self.rate

    def draw(self, rng: np.random.Generator, sets: int) -> Columns:
        return {"passed": rng.random((sets, self.tasks, self.tries)) < self.rate}


def decisions(
    metric: str, threshold: float, world: World, seed: int, sets: int, *, early: bool
) -> tuple[list[str], np.ndarray]:
    """Decide data sets, early or at the end; return the verdicts and the tasks that they took."""
    rng = np.random.default_rng([seed, crc32(f"{metric} {threshold} {world!r}".encode())])
    columns = world.draw(rng, sets)
    policy = {"on": "confident", "error_rate": STATED, "thresholds": {metric: threshold}}
    ready = Prepared.of(policy, columns, world)
    plan = EarlyStopPlan(tuple(PlannedTask(f"t{i}") for i in range(world.tasks)), world.tries)
    looks = list(sizes(world.tasks))
    words, tasks = [], []
    for number in range(sets):
        filled = ready.filled(columns, number)
        found = decide(ready.policy, filled, None, plan if early else None)
        words.append(found.verdict)
        took = found.gates[0].tasks if early and found.verdict != "inconclusive" else world.tasks
        tasks.append(looks[min(bisect_left(looks, took), len(looks) - 1)])
    return words, np.array(tasks)


@dataclass(frozen=True)
class Decided:
    """Small suites: an early-stopped run decides as often as the gate on the whole suite."""

    rate: float
    threshold: float
    tasks: int

    def measure(self, seed: int, sets: int) -> list[Finding]:
        world, sets = Rates(self.rate, self.tasks), sets // SLOWER
        given = ("pass_rate", self.threshold, world, seed, sets)
        plain, early = (decisions(*given, early=early)[0] for early in (False, True))
        least, _ = share([word != "inconclusive" for word in plain])
        told = (
            f"{world}, threshold {percent(self.threshold)}; the plain gate decides {percent(least)}"
        )
        rate, error = share([word != "inconclusive" for word in early])
        return [
            Finding(SECTION, "until decided, pass_rate: decided", told, size(self.tasks, 1), rate,
                    error, least, max(least - FEWER, 0.0), 1.0, sets)
        ]  # fmt: skip


@dataclass(frozen=True)
class Saving:
    """A system at the threshold and one at the far end of the zone: wrong verdicts, and tasks."""

    metric: str
    good: World
    bad: World
    deviation: float
    """The sum of the standard deviations of a task's value in both systems."""

    def measure(self, seed: int, sets: int) -> list[Finding]:
        sets //= SLOWER
        threshold, zone = self.good.truth, self.good.truth - self.bad.truth
        given = threshold, self.good, seed, sets
        fails, first = decisions(self.metric, *given, early=True)
        passes, second = decisions(self.metric, threshold, self.bad, seed, sets, early=True)
        fixed = int(np.ceil((norm.ppf(1 - STATED) * self.deviation / zone) ** 2))
        what, where = f"until decided, {self.metric}", f"{self.good} or {self.bad}"
        rows = [
            Finding(SECTION, f"{what}: wrong {word}", str(world), size(world.tasks, 1),
                    *share([found == word for found in words]), STATED, 0.0, MOST, sets)
            for word, words, world in (("fail", fails, self.good), ("pass", passes, self.bad))
        ]  # fmt: skip
        saved = 1 - np.concatenate([first, second]) / fixed
        error = float(saved.std() / np.sqrt(len(saved)))
        rows.append(
            Finding(SECTION, f"{what}: tasks saved of {fixed}", where, size(self.good.tasks, 1),
                    float(saved.mean()), error, SAVED, SAVED, 1.0, 2 * sets)
        )  # fmt: skip
        return rows


ZONE = Gate("", "pass_rate").zone


def scores(mean: float, strength: float, tasks: int) -> Amounts:
    law = Law("beta", round(mean * strength, 4), round((1 - mean) * strength, 4))
    return Amounts("impl_rate", law, tasks)


def rows() -> Iterator[Decided | Saving]:
    yield Decided(0.96, 0.8, 50)
    yield Decided(0.55, 0.8, 50)
    yield Decided(0.9, 0.8, 100)
    good = Rates(0.9, 1_000)
    bad = replace(good, rate=0.9 - ZONE)
    spread = sum(float(np.sqrt(w.rate * (1 - w.rate))) for w in (good, bad))
    yield Saving("pass_rate", good, bad, spread)
    for strength, tasks in ((1.5, 1_000), (5.0, 500), (15.0, 200)):
        both = [scores(mean, strength, tasks) for mean in (0.8, 0.8 - ZONE)]
        spread = sum(float(np.sqrt(w.truth * (1 - w.truth) / (strength + 1))) for w in both)
        yield Saving("impl_rate_mean", *both, spread)
