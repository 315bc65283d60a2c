"""How often the ranks that `compare` leaves open miss a true rank, and orders are wrong.

Equal sides share their places: the range of each must contain all of them. The hundreds of data
sets of a row are ranked as `pennyweight.compare` ranks them behind its border; the first few also
cross that border, and must give the same, but for the order of tasks in which signs are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

import numpy as np
import polars as pl
from scipy.special import expit, logit

import pennyweight
from bench.findings import Finding, share
from bench.worlds import Floats, Law, percent
from pennyweight.scoring.ranking import CommonTasks, Ranking

CONFIDENCE, STATED = 0.95, 0.05
SLOWER = 2
CHECKED = 3
"""So many data sets of each row also go through `pennyweight.compare`."""
DRAWN = 0.06
"""Adjusted p-values from other draws of the signs differ by less: four standard errors."""
SECTION = "Ranks of several sides: any range or order wrong"


class Ranked(Protocol):
    """Several sides on the same tasks."""

    sides: int
    tasks: int
    metric: str

    @property
    def level(self) -> Floats:
        """How good each side is; equal sides have the same level."""

    @property
    def tries(self) -> tuple[int, ...]:
        """How often the sides try each task, in turn."""

    def draw(self, rng: np.random.Generator) -> Floats:
        """Draw the mean value of each side on each task, tasks × sides."""


@dataclass(frozen=True)
class Attempts:
    """Sides that pass or fail, on tasks of one ease or with a beta distribution of it."""

    sides: int
    tasks: int
    tries: tuple[int, ...] = (1,)
    ease: tuple[float, ...] = (2, 1)
    step: float = 0.0
    """By how much the log-odds of passing rise from one side to the next."""
    alike: int = 1
    """So many sides share a step."""
    metric: str = "pass_rate"

    def __str__(self) -> str:
        ease = ", ".join(f"{one:g}" for one in self.ease)
        ease = f"ease beta({ease})" if len(self.ease) > 1 else f"ease {ease}"
        if not self.step:
            return f"{self.sides} equal sides, {ease}"
        steps = "in pairs, " if self.alike > 1 else ""
        return f"{self.sides} sides {steps}{self.step:g} log-odds apart, {ease}"

    @property
    def level(self) -> Floats:
        return self.step * (np.arange(self.sides) // self.alike)

    def draw(self, rng: np.random.Generator) -> Floats:
        shape, tries = (self.tasks, 1), np.resize(self.tries, self.sides)
        ease = rng.beta(*self.ease, shape) if len(self.ease) > 1 else np.full(shape, *self.ease)
        chance = expit(logit(np.clip(ease, 1e-6, 1 - 1e-6)) + self.level)
        passes: Floats = rng.binomial(tries, chance) / tries
        return passes


@dataclass(frozen=True)
class Consistency:
    """Sides that pass equally often: every second one passes the same few tasks nearly always."""

    sides: int
    tasks: int
    tries: tuple[int, ...]
    rate: float
    metric: str = "pass_rate"

    def __str__(self) -> str:
        return f"{self.sides} equal sides at {percent(self.rate)}, erratic and consistent"

    @property
    def level(self) -> Floats:
        return np.zeros(self.sides)

    def draw(self, rng: np.random.Generator) -> Floats:
        sure = rng.random((self.tasks, self.sides)) < self.rate
        consistent = np.where(sure, 0.9, 0.1 * self.rate / (1 - self.rate))
        ease = np.where(np.arange(self.sides) % 2, consistent, self.rate)
        tries = np.resize(self.tries, self.sides)
        passes: Floats = rng.binomial(tries, ease) / tries
        return passes


@dataclass(frozen=True)
class Scores:
    """Sides with the same mean score, from one or two laws in turn."""

    sides: int
    tasks: int
    laws: tuple[Law, ...]
    metric: str = "impl_rate_mean"

    def __str__(self) -> str:
        return f"{self.sides} equal sides, {' and '.join(map(str, self.laws))}"

    @property
    def level(self) -> Floats:
        return np.zeros(self.sides)

    @property
    def tries(self) -> tuple[int, ...]:
        return (1,)

    def draw(self, rng: np.random.Generator) -> Floats:
        turns = (self.laws[side % len(self.laws)] for side in range(self.sides))
        return np.column_stack([law.draw(rng, (self.tasks,)) for law in turns])


def ranked(world: Ranked, values: Floats) -> Ranking:
    """Rank the sides as `compare` does when it knows their common tasks."""
    tries = np.broadcast_to(np.resize(world.tries, world.sides).astype(np.float64), values.shape)
    names = tuple(f"T{side}" for side in range(world.sides))
    scores = isinstance(world, Scores)
    common = CommonTasks(world.metric, scores, names, {}, values, tries, None)
    found = common.ranking(CONFIDENCE, seed=0)
    assert found is not None
    return found


def at_the_border(world: Ranked, values: Floats) -> Ranking:
    """Rank the sides as a user does."""
    tries = np.resize(world.tries, world.sides)
    task, side = (places.ravel() for places in np.indices(values.shape))
    each = np.repeat(np.arange(values.size), tries[side])
    attempt = 1 + np.concatenate([np.arange(tries[one]) for one in side])
    value = values.ravel()[each]
    frame = pl.DataFrame({
        "tier": [f"T{one}" for one in side[each]],
        "task_id": [f"{one:04}" for one in task[each]],
        "attempt": attempt,
        **({"impl_rate": value} if isinstance(world, Scores)
           else {"passed": attempt <= np.rint(value * tries[side[each]])}),
    })  # fmt: skip
    found = pennyweight.compare(frame, metrics=world.metric, confidence=CONFIDENCE).ranking
    assert found is not None
    return found


@dataclass(frozen=True)
class Ranks:
    """Sides whose true order is known: ranges that miss it, and wrong orders that are shown."""

    world: Ranked

    def measure(self, seed: int, sets: int) -> list[Finding]:
        rng, world = np.random.default_rng([seed, crc32(repr(self).encode())]), self.world
        above = world.level[:, None] < world.level  # [a, b]: b is truly better
        best, worst = 1 + above.sum(axis=1), world.sides - above.sum(axis=0)
        missed, wrong = [], []
        for number in range(sets // SLOWER):
            values = world.draw(rng)
            found = ranked(world, values)
            if number < CHECKED:
                border = at_the_border(world, values)
                assert np.allclose(border.tests.means, found.tests.means), world
                assert np.allclose(border.tests.p, found.tests.p, rtol=0, atol=DRAWN), world
            low, high = (
                np.array([getattr(s, end) for s in found.sides]) for end in ("low", "high")
            )
            missed.append(bool(((low > best) | (high < worst)).any()))
            means = np.array(found.tests.means)
            shown = (np.array(found.tests.p) <= STATED) & (means[:, None] > means)
            wrong.append(bool((shown & ~above.T).any()))
        tries = " or ".join(map(str, world.tries))
        size = str(world.tasks) if tries == "1" else f"{world.tasks}×{tries}"
        what = {"a range misses the true rank": missed}
        if above.any():  # else both are the same
            what["a wrong order is shown"] = wrong
        return [
            Finding(SECTION, f"ranks, {world.metric}: {mistake}", str(world), size, *share(made),
                    STATED, 0.0, STATED, len(made))
            for mistake, made in what.items()
        ]  # fmt: skip


SKEWED, STEADY = Law("beta", 0.2, 1.8), Law("beta", 20, 180)


def rows() -> Iterator[Ranks]:
    yield Ranks(Attempts(3, 20))
    yield Ranks(Attempts(9, 50, (5,)))
    yield Ranks(Attempts(36, 300))
    yield Ranks(Attempts(9, 50, step=0.2))
    yield Ranks(Attempts(36, 300, step=0.1, alike=2))
    for sides, tasks in ((3, 20), (9, 50), (36, 300)):
        yield Ranks(Attempts(sides, tasks, (1, 5), (0.9,)))
    for sides, tasks in ((9, 20), (3, 40), (9, 40), (9, 100)):
        yield Ranks(Consistency(sides, tasks, (10,), 0.1))
    yield Ranks(Scores(9, 20, (SKEWED,)))
    for sides, tasks in ((9, 10), (3, 20), (9, 20), (36, 20), (36, 50), (9, 300)):
        yield Ranks(Scores(sides, tasks, (SKEWED, STEADY)))
