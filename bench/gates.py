"""Simulated releases: how often gates raise a false alarm, and how often they catch a regression.

Each release tries fresh tasks, whose pass probabilities have a beta distribution. Every release is
decided by `decide`, with a policy as a user writes it.
"""

import json
import os
from bisect import bisect_left
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing import get_context

import numpy as np
import polars as pl

from bench.measure import Result
from pennyweight.gates.decision import decide, needed_metrics
from pennyweight.gates.early_stopping import EarlyStopPlan, PlannedTask
from pennyweight.gates.loader import load_policy
from pennyweight.gates.policy import Gate, Policy
from pennyweight.gates.records import GateRecords, read_records
from pennyweight.gates.sequential import sizes
from pennyweight.sources.source import FrameSource

RELEASES = 2_000
SEED = 2026
LEVEL = 0.05
ALARMS = 6.0
GOOD, BAD = 0.90, 0.80
"""Pass rates of a system that is good enough, and of one that regressed."""
SMALL, TASKS, PAIRED, MAX_TASKS = 20, 200, 300, 2_000
MARGIN, DROP = 0.02, 0.10
POWER, SURE = 90.0, 94.0
"""Percent of regressions that a fixed gate and a sequential gate must catch."""
LESS = 40.0
SPREAD = 3.0
"""Sum of the beta parameters: the smaller, the closer each task is to always or never passing."""
ZONE = Gate("", "pass_rate").zone
"""The default indifference zone of `--until-decided`."""
WIDE = 0.05
"""The margin of the sequential comparison, which is also its zone."""

CONFIDENT = {"on": "confident", "error_rate": LEVEL, "thresholds": {"pass_rate": GOOD}}
FIVE = {
    "on": "confident",
    "gates": [
        {"metric": "pass_rate", "threshold": GOOD, "category": f"c{i}"} for i in range(5)
    ],
}  # fmt: skip


def no_worse(margin: float) -> dict[str, object]:
    """Return a policy that compares with a baseline."""
    return {"error_rate": LEVEL, "gates": [{"metric": "pass_rate", "no_worse_than": margin}]}


@dataclass(frozen=True)
class World:
    """One kind of system, and the policy that decides about it."""

    given: str
    """The policy, as JSON."""
    rate: float = GOOD
    tasks: int = TASKS
    tries: int = 1
    categories: int = 1
    """Number of gates, with `tasks` tasks each. The first has `rate`, the others are good."""
    drop: float | None = None
    """How much worse it is than its baseline; None without a baseline."""
    sequential: bool = False

    def release(self, number: int) -> tuple[str, int]:
        """Decide about one release; return the verdict and the number of tasks it took."""
        policy, template, plan = prepared(self)
        rng = np.random.default_rng([SEED, *self.given.encode(), round(1e6 * self.rate),
                                     round(1e6 * (self.drop or 0)), number])  # fmt: skip
        passed, earlier = self.draw(rng)
        now = self.filled(template, passed)
        before = None if earlier is None else self.filled(template, earlier)
        if not self.sequential:
            return decide(policy, now, before).verdict, self.tasks
        found = decide(policy, now, before, plan)  # more tasks never take a decision back
        looks = list(sizes(self.tasks))
        return found.verdict, looks[bisect_left(looks, found.gates[0].tasks)]

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray | None]:
        """Draw which attempts pass now, and which passed in the baseline."""
        rates = np.repeat([self.rate] + [GOOD] * (self.categories - 1), self.tasks)
        chances = np.repeat(rng.beta(rates * SPREAD, (1 - rates) * SPREAD), self.tries)
        before = None if self.drop is None else rng.random(len(chances)) < chances
        return rng.random(len(chances)) < chances * (1 - (self.drop or 0) / GOOD), before

    def filled(self, template: GateRecords, passed: np.ndarray) -> GateRecords:
        """Fill the results into records."""
        return replace(template, frame=template.frame.with_columns(pl.Series("passed", passed)))


@lru_cache(maxsize=64)
def prepared(world: World) -> tuple[Policy, GateRecords, EarlyStopPlan]:
    """Return a world's policy, and records of its tasks."""
    policy = load_policy("policy.json", None, world.given)
    rows = [
        {"task_id": f"t{t}", "attempt": a + 1, "passed": True, "category": f"c{t // world.tasks}"}
        for t in range(world.tasks * world.categories)
        for a in range(world.tries)
    ]
    plan = EarlyStopPlan(tuple(PlannedTask(f"t{t}") for t in range(world.tasks)), world.tries)
    return (
        policy,
        read_records([FrameSource(pl.DataFrame(rows))], needed_metrics(policy), policy.options),
        plan,
    )


@dataclass(frozen=True)
class Row:
    """A gate, its false alarms and catches in percent, and the tasks it takes."""

    name: str
    alarms: float
    caught: float | None
    tasks: float
    power: float = POWER
    rival: int | None = None
    """Tasks that a test of fixed size with the same error rates takes."""

    def results(self) -> Iterator[Result]:
        """Yield the figures with their bounds."""
        yield Result(f"{self.name}: false alarms", self.alarms, ALARMS, " %")
        if self.caught is not None:
            yield Result(f"{self.name}: regressions caught", self.caught, self.power, " %", True)
        if self.rival:
            saved = 100 * (1 - self.tasks / self.rival)
            yield Result(f"{self.name}: tasks saved, of {self.rival}", saved, LESS, " %", True)


def run() -> list[Result]:
    os.environ["POLARS_MAX_THREADS"] = "1"  # frames are small, and there are several processes
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        gates = [*confident(pool), *against_a_baseline(pool), *sequential(pool)]
    print(f"{RELEASES:,} releases; stated error rate {LEVEL:.0%}\n")
    print(f"{'gate':<62}{'false alarms':>14}{'caught':>9}{'tasks':>8}")
    for row in [*points(), *gates]:
        caught = "—" if row.caught is None else f"{row.caught:.1f} %"
        print(f"{row.name:<62}{row.alarms:>12.1f} %{caught:>9}{row.tasks:>8.0f}")
    return [result for row in gates for result in row.results()]


def simulate(pool: ProcessPoolExecutor, world: World) -> tuple[float, float]:
    """Simulate all releases; return the percentage that failed and the mean number of tasks."""
    found = list(pool.map(world.release, range(RELEASES), chunksize=100))
    failed = 100 * float(np.mean([word == "fail" for word, _ in found]))
    return failed, float(np.mean([tasks for _, tasks in found]))


def points() -> list[Row]:
    """Gates on a point estimate: all tests pass; not below the threshold or the last release."""
    rng = np.random.default_rng(SEED)

    def rates(rate: float, tasks: int) -> np.ndarray:
        chances = rng.beta(rate * SPREAD, (1 - rate) * SPREAD, (RELEASES, tasks))
        means: np.ndarray = (rng.random(chances.shape) < chances).mean(axis=1)
        return means

    last, same, worse = (rates(r, TASKS) for r in (GOOD, GOOD, BAD))
    must = rates(0.95, SMALL) < 1, rates(0.85, SMALL) < 1
    kinds = {
        "point: all of 20 tests must pass, system right in 95 %": (*must, SMALL),
        "point: below the threshold": (same < GOOD, worse < GOOD, TASKS),
        "point: below the last release": (same < last, worse < last, TASKS),
    }
    return [Row(n, _percent(a), _percent(c), tasks) for n, (a, c, tasks) in kinds.items()]


def _percent(found: np.ndarray) -> float:
    return 100 * float(np.mean(found))


def confident(pool: ProcessPoolExecutor) -> Iterator[Row]:
    """Gates on the interval of a rate; one alone, and five that share their error rate."""
    one = World(json.dumps(CONFIDENT))
    kinds = {
        "confident": one,
        "confident, half as many tasks, three attempts each": replace(
            one, tasks=TASKS // 2, tries=3
        ),
        "confident, a tenth as many tasks, ten attempts each": replace(one, tasks=20, tries=10),
        "confident, five gates at once": World(json.dumps(FIVE), categories=5),
    }
    for name, world in kinds.items():
        alarms, tasks = simulate(pool, world)
        few = world.tasks < TASKS // 2  # nothing is promised for 20 tasks
        caught = None if few else simulate(pool, replace(world, rate=BAD))[0]
        yield Row(name, alarms, caught, tasks)


def against_a_baseline(pool: ProcessPoolExecutor) -> Iterator[Row]:
    """Gates on the paired difference from a baseline."""
    world = World(json.dumps(no_worse(MARGIN)), tasks=PAIRED, drop=0.0)
    same, edge, worse = (simulate(pool, replace(world, drop=d))[0] for d in (0.0, MARGIN, DROP))
    yield Row(f"no worse than {MARGIN:.0%}", same, worse, PAIRED)
    yield Row(f"no worse than {MARGIN:.0%}, worse by exactly that", edge, None, PAIRED)


def sequential(pool: ProcessPoolExecutor) -> Iterator[Row]:
    """Sequential gates, next to a test of fixed size with the same error rates."""
    world = World(json.dumps(CONFIDENT), tasks=MAX_TASKS, sequential=True)
    both = [simulate(pool, replace(world, rate=rate)) for rate in (GOOD, GOOD - ZONE)]
    name = f"until decided, indifference zone {GOOD - ZONE:.0%} to {GOOD:.0%}"
    yield _row(name, both, fixed_size())
    world = replace(world, given=json.dumps(no_worse(WIDE)), drop=0.0)
    both = [simulate(pool, replace(world, drop=drop)) for drop in (0.0, WIDE)]
    name = f"until decided, no worse than {WIDE:.0%}, zone −{100 * WIDE:.0f} to 0 points"
    yield _row(name, both, paired_size(world))


def _row(name: str, both: list[tuple[float, float]], fixed: int) -> Row:
    (same, first), (worse, second) = both
    return Row(name, same, worse, (first + second) / 2, SURE, fixed)


def fixed_size() -> int:
    """Return the smallest number of tasks with which a fixed test has both error rates."""
    from scipy.stats import binom  # noqa: PLC0415

    for tasks in range(10, 10_000):
        least = binom.ppf(LEVEL, tasks, GOOD)
        if binom.sf(least - 1, tasks, GOOD - ZONE) <= LEVEL:
            return tasks
    raise AssertionError


def paired_size(world: World) -> int:
    """Return how many pairs a fixed test takes, given the variance of the differences."""
    from scipy.stats import norm  # noqa: PLC0415

    rng, variance = np.random.default_rng(SEED), []
    for drop in (0.0, WIDE):
        now, before = replace(world, drop=drop, tasks=1_000_000).draw(rng)
        variance.append(np.var(now.astype(float) - before))
    spread = norm.ppf(1 - LEVEL) * sum(np.sqrt(variance))
    return int(np.ceil((spread / WIDE) ** 2))


if __name__ == "__main__":
    for result in run():
        print(result)
