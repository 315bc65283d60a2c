"""How often `compare` tells equal sides apart, and finds a difference of the size it states.

The thousands of comparisons of a row take the path that `pennyweight.compare` takes behind its
border; the first few also cross that border, and must give the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Protocol
from zlib import crc32

import numpy as np
import polars as pl

import pennyweight
from bench.compare import paired
from bench.coverage import size
from bench.findings import Finding, share
from bench.worlds import Floats, Law, drawn_laws, percent
from pennyweight.stats.paired import Kind, Paired, compare
from pennyweight.stats.power import Design

STATED, MOST = 0.05, 0.06
POWER, WITHIN = 0.80, 0.05
CHECKED = 3
"""So many data sets of each row also go through `pennyweight.compare`."""
KINDS: dict[str, Kind] = {"cost_usd_mean": "number", "pass_rate": "rate", "impl_rate_mean": "score"}
COLUMNS = {"cost_usd_mean": "cost_usd", "pass_rate": "passed", "impl_rate_mean": "impl_rate"}


class Sides(Protocol):
    """Two sides on the same tasks."""

    tasks: int
    tries: int
    metric: str

    def draw(self, rng: np.random.Generator, difference: float) -> tuple[Floats, Floats]:
        """Draw the values of both sides, tasks × attempts; the second is higher on average."""


@dataclass(frozen=True)
class Costs:
    """Costs with the same mean on both sides, from two laws."""

    first: Law
    second: Law
    tasks: int
    tries: int = 1
    task_sd: float = 0.0
    metric: str = "cost_usd_mean"

    def __str__(self) -> str:
        vary = f", tasks σ {self.task_sd:g}" if self.task_sd else ""
        if self.first == self.second:
            return f"equal costs, both {self.first}{vary}"
        return f"equal mean costs, {self.first} against {self.second}{vary}"

    def draw(self, rng: np.random.Generator, difference: float) -> tuple[Floats, Floats]:
        task = rng.lognormal(-(self.task_sd**2) / 2, self.task_sd, (self.tasks, 1))
        a, b = (
            task * law.draw(rng, (self.tasks, self.tries)) / law.mean
            for law in (self.first, self.second)
        )
        return a, b * (1 + difference)


@dataclass(frozen=True)
class FewDiffer:
    """Sides that do the same on most tasks; on a few, the second costs a random multiple."""

    share: float
    sigma: float
    tasks: int
    tries: int = 1
    metric: str = "cost_usd_mean"

    def __str__(self) -> str:
        return f"the same cost except on {percent(self.share)} of the tasks"

    def draw(self, rng: np.random.Generator, difference: float) -> tuple[Floats, Floats]:
        shape = (self.tasks, self.tries)
        a = rng.lognormal(0, 0.5, shape)
        factor = rng.lognormal(-(self.sigma**2) / 2, self.sigma, shape)
        b = a * np.where(rng.random((self.tasks, 1)) < self.share, factor, 1.0)
        return a, b * (1 + difference)


@dataclass(frozen=True)
class Passes:
    """Tasks of different ease; the second side passes more often, or only turns failures round."""

    ease: tuple[float, float]
    tasks: int
    tries: int = 1
    one_sided: bool = False
    metric: str = "pass_rate"

    def __str__(self) -> str:
        ease = f"ease beta({self.ease[0]:g}, {self.ease[1]:g})"
        return f"{ease}, one side only gains" if self.one_sided else f"equal sides, {ease}"

    def draw(self, rng: np.random.Generator, difference: float) -> tuple[Floats, Floats]:
        shape = (self.tasks, self.tries)
        ease = rng.beta(*self.ease, (self.tasks, 1))
        a = (rng.random(shape) < ease).astype(np.float64)
        if not self.one_sided:
            return a, (rng.random(shape) < ease).astype(np.float64)
        failed = 1 - self.ease[0] / sum(self.ease)
        gained = rng.random((self.tasks, 1)) < min(difference / failed, 1.0)
        return a, np.where(gained, 1.0, a)


def at_the_border(world: Sides, a: Floats, b: Floats) -> pennyweight.Comparison:
    """Compare two sides as a user does."""
    column, shape = COLUMNS[world.metric], (2, *a.shape)
    values = np.stack([a, b])
    frame = pl.DataFrame({
        "tier": np.repeat(["T0", "T1"], a.size),
        "task_id": np.broadcast_to(np.arange(a.shape[0])[:, None], shape).ravel().astype(str),
        "attempt": np.broadcast_to(np.arange(1, a.shape[1] + 1), shape).ravel(),
        column: values.ravel() > 0 if column == "passed" else values.ravel(),
    })  # fmt: skip
    return pennyweight.compare(frame, metrics=world.metric)


def pair(world: Sides, a: Floats, b: Floats) -> Paired:
    return paired(a, b, KINDS[world.metric])


@dataclass(frozen=True)
class FalseAlarms:
    """Equal sides that are told apart."""

    world: Sides
    section: str = "Comparisons: equal sides told apart"

    def measure(self, seed: int, sets: int) -> list[Finding]:
        rng, world = np.random.default_rng([seed, crc32(repr(self).encode())]), self.world
        told = []
        for number in range(sets):
            a, b = world.draw(rng, 0.0)
            p = compare(pair(world, a, b), 0.95, 0).p
            if number < CHECKED:
                (border,) = at_the_border(world, a, b).pairs
                assert border.p is not None
                assert math.isclose(border.p, p, rel_tol=0.1, abs_tol=0.01), (border.p, p, world)
            told.append(p <= STATED)
        return [
            Finding(self.section, f"compare, {world.metric}", str(world),
                    size(world.tasks, world.tries), *share(told), STATED, 0.0, MOST, sets)
        ]  # fmt: skip


@dataclass(frozen=True)
class Detects:
    """A difference that earlier results stated as detectable, and how often it is then found."""

    world: Sides
    before: float = 0.0
    """The difference in the earlier results."""
    section: str = "Comparisons: differences found, of the size stated as detectable"

    def measure(self, seed: int, sets: int) -> list[Finding]:
        rng, world = np.random.default_rng([seed, crc32(repr(self).encode())]), self.world
        found, drawn = [], str(world)
        if self.before:
            drawn += f", {100 * self.before:g} points ahead before"
        for number in range(sets):
            a, b = world.draw(rng, self.before)
            stated = Design.of(pair(world, a, b)).detectable(world.tasks, STATED)
            if number < CHECKED:
                (border,) = at_the_border(world, a, b).pairs
                assert (border.detectable is None) == (stated is None)
                assert stated is None or math.isclose(border.detectable or 0, stated, rel_tol=1e-6)
            if stated is None:
                continue
            a, b = world.draw(rng, stated)
            found.append(compare(pair(world, a, b), 0.95, 0).p <= STATED)
        return [
            Finding(self.section, f"compare, {world.metric}", drawn,
                    size(world.tasks, world.tries), *share(found), POWER, POWER - WITHIN,
                    POWER + WITHIN, len(found))
        ]  # fmt: skip


STEADY, LONG = Law("steady"), Law("lognormal", 1.0)


def rows() -> Iterator[FalseAlarms | Detects]:
    for tasks in (10, 20, 50):
        yield FalseAlarms(Costs(STEADY, LONG, tasks))
    for tasks in (12, 20):
        yield FalseAlarms(FewDiffer(0.5, 1.0, tasks))
    for tasks in (20, 50):
        yield FalseAlarms(Costs(LONG, LONG, tasks))
        yield FalseAlarms(Costs(Law("lognormal", 0.7), Law("lognormal", 0.7), tasks, 3, 0.6))
        yield FalseAlarms(Passes((8, 2), tasks))
        yield FalseAlarms(Passes((8, 2), tasks, 5))
    for tasks, sigma in product((20, 50, 100), (0.5, 1.0)):
        law = Law("lognormal", sigma)
        yield Detects(Costs(law, law, tasks))
    for tasks in (50, 100):
        yield Detects(Passes((6, 4), tasks, one_sided=True), 0.1)
        yield Detects(Passes((6, 4), tasks, one_sided=True), 0.0)


def drawn(seed: int) -> Iterator[FalseAlarms]:
    """Sides that only the seed knows."""
    rng = np.random.default_rng([seed, 2])
    laws = [*drawn_laws(rng), *drawn_laws(rng)]
    for _ in range(4):
        first, second = (laws[j] for j in rng.choice(len(laws), 2, replace=False))
        world = Costs(first, second, int(rng.integers(10, 101)), int(rng.integers(1, 4)),
                      round(rng.uniform(0, 0.8), 2))  # fmt: skip
        yield FalseAlarms(world, section="Worlds drawn from the seed")
