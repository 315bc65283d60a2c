"""`pennyweight compare` on simulated systems: false differences, coverage of intervals, power.

Systems have tasks of different difficulty and several attempts per task. Some are identical, others
differ task by task and are equally good overall. All draws are seeded. `python -m bench compare`
takes several minutes; the tests run a smaller version.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit, logit

from bench.measure import Result
from pennyweight.stats.paired import Difference, Kind, Paired, Tries, compare, holm
from pennyweight.stats.power import Design

Floats = NDArray[np.float64]
How = Literal["alike", "unlike", "fixed", "mixed"]
NAMES: dict[How, str] = {
    "alike": "",
    "unlike": ", different on each task",
    "fixed": ", deterministic",
    "mixed": ", the second deterministic",
}
"""How two systems behave on the same task; all can be equally good overall."""

PAIRS = 5_000
POWERS = 2_000
AMONG = (1, 7)
"""Numbers of comparisons among which the stated power is checked."""


@dataclass(frozen=True)
class Passes:
    """Two systems that pass or fail; the ease of a task has a beta distribution."""

    tasks: int
    tries: tuple[int, int]
    ease: tuple[float, float] = (1, 1)
    how: How = "alike"

    def __str__(self) -> str:
        ease = f"{self.ease[0]:g}:{self.ease[1]:g}"
        return f"{self.tasks} tasks of ease {ease}, {_times(self.tries)}{NAMES[self.how]}"

    def draw(self, rng: np.random.Generator, difference: float) -> tuple[Paired, float]:
        """Draw results; return them with the true mean difference."""
        shift = self.shift(difference)
        ease = rng.beta(*self.ease, (2, self.tasks))
        ease[1] = ease[0] if self.how == "alike" else ease[1]
        sides = expit(logit(np.clip(ease, 1e-6, 1 - 1e-6)) + np.array(shift)[:, None])
        for side in {"fixed": (0, 1), "mixed": (1,)}.get(self.how, ()):
            sides[side] = rng.random(self.tasks) < sides[side]
        first, second = (np.full(self.tasks, float(n)) for n in self.tries)
        a, b = (rng.binomial(n, p) / n for n, p in zip(self.tries, sides, strict=True))
        return Paired(a, b, first, second, "rate"), difference

    def shift(self, difference: float) -> tuple[float, float]:
        """Return the shifts of both systems' log-odds that give this mean difference."""
        return _shift(self.ease, difference) if difference else (0.0, 0.0)

    @property
    def different(self) -> float:
        """A difference that both pass rates have room for."""
        return 0.2 if self.possible(0.2) else 0.05

    def possible(self, difference: float) -> bool:
        """Whether both systems' pass rates stay inside 0 and 1, with room to spare."""
        middle = self.ease[0] / sum(self.ease)
        return difference / 2 < 0.95 * min(middle, 1 - middle)


@lru_cache
def _where(ease: tuple[float, float]) -> Floats:
    """Return the log-odds of many tasks of this ease."""
    share = (np.arange(2000) + 0.5) / 2000
    odds: Floats = logit(np.clip(betaincinv(*ease, share), 1e-6, 1 - 1e-6))
    return odds


@lru_cache
def _shift(ease: tuple[float, float], difference: float) -> tuple[float, float]:
    where = _where(ease)
    middle = float(expit(where).mean())
    ends = [_solve(where, middle + side * difference / 2) for side in (-1, 1)]
    return ends[0], ends[1]


def _solve(where: Floats, wanted: float) -> float:
    low, high = -20.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(where + middle).mean() < wanted else (low, middle)
    return middle


@dataclass(frozen=True)
class Costs:
    """Two systems whose costs are log-normal; the second costs a factor more on average."""

    tasks: int
    tries: tuple[int, int]
    spread: float = 0.5
    how: How = "alike"
    different: float = 1.0

    def __str__(self) -> str:
        costs = f"log-normal costs ({self.spread:g})"
        return f"{self.tasks} tasks, {costs}, {_times(self.tries)}{NAMES[self.how]}"

    def draw(self, rng: np.random.Generator, difference: float) -> tuple[Paired, float]:
        """Draw costs for each task."""
        whole = float(np.exp(self.spread**2 / 2))
        base = rng.lognormal(0, self.spread, (2, self.tasks, 1))
        base[1] = base[0] if self.how == "alike" else base[1]
        noise = [rng.lognormal(0, self.spread, (self.tasks, n)) for n in self.tries]
        for side in {"fixed": (0, 1), "mixed": (1,)}.get(self.how, ()):
            noise[side][:] = whole
        if self.how == "mixed":
            base[1] = whole
        a, b = (
            own * by * factor
            for own, by, factor in zip(noise, base, (1, 1 + difference), strict=True)
        )
        return paired(a, b, "number"), difference * whole**2


@dataclass(frozen=True)
class Scores:
    """Two systems with scores near 1; the second's are lower on average."""

    tasks: int
    tries: tuple[int, int]
    mean: float = 0.9
    how: How = "alike"
    different: float = 0.1

    def __str__(self) -> str:
        scores = f"scores near {self.mean:g}"
        return f"{self.tasks} tasks, {scores}, {_times(self.tries)}{NAMES[self.how]}"

    def draw(self, rng: np.random.Generator, difference: float) -> tuple[Paired, float]:
        """Draw scores for each task."""
        sides = []
        for side, n, mean in zip(
            (0, 1), self.tries, (self.mean, self.mean - difference), strict=True
        ):
            drawn = rng.beta(3 * mean, 3 * (1 - mean), (self.tasks, n))
            if self.how == "fixed" or (self.how == "mixed" and side):
                drawn[:] = drawn[:, :1]
            elif self.how == "unlike":
                own = np.clip(rng.beta(3 * mean, 3 * (1 - mean), (self.tasks, 1)), 0.01, 0.99)
                drawn = rng.beta(3 * own, 3 * (1 - own), (self.tasks, n))
            sides.append(drawn)
        return paired(sides[0], sides[1], "score"), -difference


def paired(a: Floats, b: Floats, kind: Kind) -> Paired:
    """Pair attempts by task, one row each; keep single attempts if their numbers differ."""
    first, second = (np.full(len(side), side.shape[1]) for side in (a, b))
    each = Tries(np.hstack([a, b]).ravel(), first, second, np.arange(len(a)))
    kept = each if a.shape != b.shape else None
    return Paired(a.mean(axis=1), b.mean(axis=1), first * 1.0, second * 1.0, kind, kept)


def _times(tries: tuple[int, int]) -> str:
    return "tried once" if tries == (1, 1) else f"tried {tries[0]} and {tries[1]} times"


System = Passes | Costs | Scores
SYSTEMS: tuple[System, ...] = (
    Passes(10, (1, 1)),
    Passes(20, (1, 1), (8, 2)),
    Passes(50, (1, 1), (0.5, 0.5)),
    Passes(10, (3, 3)),
    Passes(10, (10, 10), (8, 2)),
    Passes(20, (5, 5), (0.5, 0.5)),
    Passes(20, (3, 3), (8, 1)),
    Passes(20, (1, 5), (30, 1)),
    Passes(50, (1, 5), (30, 1)),
    Passes(50, (10, 2), (8, 1)),
    Passes(50, (3, 3), (0.5, 5)),
    Passes(200, (3, 3)),
    Passes(10, (2, 2), how="fixed"),
    Passes(20, (2, 2), (8, 2), how="fixed"),
    Passes(50, (3, 1), how="fixed"),
    Passes(10, (3, 3), how="unlike"),
    Passes(20, (5, 5), (8, 2), how="unlike"),
    Passes(20, (1, 5), (8, 2), how="unlike"),
    Passes(50, (10, 10), (0.5, 0.5), how="unlike"),
    Passes(10, (10, 10), (70, 30), how="mixed"),
    Passes(20, (3, 3), (70, 30), how="mixed"),
    Passes(50, (10, 2), (70, 30), how="mixed"),
    Costs(10, (3, 3)),
    Costs(20, (1, 1)),
    Costs(50, (3, 3)),
    Costs(20, (1, 10)),
    Costs(20, (1, 10), 1.0),
    Costs(20, (10, 2)),
    Costs(10, (2, 2), how="fixed"),
    Costs(20, (3, 3), how="unlike"),
    Costs(20, (1, 5), how="unlike"),
    Costs(20, (3, 3), how="mixed"),
    Costs(50, (1, 5), how="mixed"),
    Scores(10, (3, 3)),
    Scores(10, (1, 5)),
    Scores(20, (1, 5)),
    Scores(20, (5, 1)),
    Scores(10, (2, 2), how="fixed"),
    Scores(20, (3, 3), how="unlike"),
    Scores(20, (1, 5), how="unlike"),
    Scores(20, (5, 5), how="mixed"),
    Scores(20, (5, 5), 0.7, how="mixed"),
)
POWERED = (
    Passes(20, (1, 1)),
    Passes(50, (1, 1), (8, 2)),
    Passes(100, (1, 1)),
    Passes(10, (10, 10)),
    Passes(20, (3, 3), (3, 6)),
    Passes(50, (3, 3), (8, 2)),
    Passes(100, (10, 10)),
    Passes(10, (3, 3)),
    Passes(12, (3, 3), (3, 6)),
    Passes(20, (2, 2), how="fixed"),
    Passes(20, (5, 5), (8, 2), how="unlike"),
    Passes(50, (1, 5)),
)


def outcomes(system: System, difference: float, pairs: int) -> Iterator[tuple[Difference, float]]:
    """Compare simulated pairs of systems."""
    rng = np.random.default_rng([system.tasks, *system.tries, pairs])
    for index in range(pairs):
        drawn, truth = system.draw(rng, difference)
        yield compare(drawn, 0.95, index * 7 // pairs), truth


def simulated(system: System, difference: float, pairs: int) -> tuple[float, float]:
    """Return the share of pairs told apart, and of intervals that contain the truth."""
    told, held = [], []
    for found, truth in outcomes(system, difference, pairs):
        assert found.low is not None
        assert found.high is not None
        told.append(found.p <= 0.05)
        held.append(found.low - 1e-9 <= truth <= found.high + 1e-9)
    return float(np.mean(told)), float(np.mean(held))


@lru_cache(maxsize=10_000)
def _stated(design: Design, tasks: int, level: float) -> float | None:
    return design.detectable(tasks, level)


def power(system: Passes, pairs: int, comparisons: int = 1) -> float:
    """Return how often a difference is found that earlier results stated as detectable.

    Found means significant after Holm's correction, among other comparisons without a difference.
    """
    rng = np.random.default_rng([7, system.tasks, *system.tries])
    seen = []
    for seed in range(pairs):
        before, _ = system.draw(rng, 0.0)
        stated = _stated(Design.of(before), system.tasks, 0.05 / comparisons)
        if stated is None or not system.possible(stated):
            continue
        after, _ = system.draw(rng, stated)
        p = compare(after, 0.95, seed * 7 // pairs, comparisons).p
        seen.append(holm([p, *rng.random(comparisons - 1)])[0] <= 0.05)
    return float(np.mean(seen))


def _identical(system: System) -> tuple[float, float]:
    return simulated(system, 0.0, PAIRS)


def _different(system: System) -> tuple[float, float]:
    return simulated(system, system.different, PAIRS)


def _power(system: Passes, comparisons: int) -> float:
    return power(system, POWERS, comparisons)


def run() -> list[Result]:
    with ProcessPoolExecutor() as pool:
        same, apart = pool.map(_identical, SYSTEMS), pool.map(_different, SYSTEMS)
        each = list(product(POWERED, AMONG))
        powers = list(pool.map(_power, *zip(*each, strict=True)))
    wrong, covered = [], []
    print("equal systems: told apart, covered; different systems: covered")
    for system, (told, held), (_, also) in zip(SYSTEMS, same, apart, strict=True):
        print(f"{told:>7.1%} {held:>7.1%} {also:>7.1%}  {system}")
        wrong.append(told)
        covered += [held, also]
    print("differences found after Holm's correction, where 80 % is stated")
    for (system, among), seen in zip(each, powers, strict=True):
        print(f"{seen:>7.1%}  {system}, among {among}")
    return [
        Result("compare, highest rate of equal systems told apart", max(wrong) * 100, 6, " %"),
        Result("compare, lowest coverage of a 95 % interval", min(covered) * 100, 93, " %", True),
        Result("compare, lowest power where 80 % is stated", min(powers) * 100, 75, " %", True),
        Result("compare, highest power where 80 % is stated", max(powers) * 100, 85, " %"),
    ]
