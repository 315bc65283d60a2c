"""Ranks of compared sides, and what each task contributes to the comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from pennyweight.define import MEASURES, METRICS
from pennyweight.scoring.groups import GROUP
from pennyweight.scoring.pairs import Overlap, Pair, Units
from pennyweight.stats.ranks import (
    Floats,
    discriminations,
    frontier_shares,
    rank_ranges,
    rasch_difficulties,
)
from pennyweight.stats.resample import CLUSTER

RANKED = 3
"""The number of sides from which they are ranked."""
RASCH = 8
"""The number of sides from which difficulties are fitted."""
COST = "cost_usd_mean"


@dataclass(frozen=True, slots=True)
class SideRank:
    """The rank of a side, and the ranks that the data leave open."""

    name: str
    rank: int
    low: int
    high: int
    frontier: float | None = None
    """How often the side is on the cost frontier when tasks are resampled."""


@dataclass(frozen=True, slots=True)
class AllPairs:
    """The tests of all pairs of sides at once, from which ranks are made."""

    sides: Sequence[str]
    p: Sequence[Sequence[float]]
    """The adjusted p-value of each pair, in the order of `sides`."""
    level: float
    """The level at which a single interval must be computed to agree with these tests."""

    def __getitem__(self, pair: tuple[str, str]) -> float:
        a, b = map(self.sides.index, pair)
        return self.p[a][b]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The sides ranked by one metric, over the tasks that all of them tried."""

    metric: str
    tasks: int
    sides: tuple[SideRank, ...]
    groups: tuple[tuple[str, ...], ...]
    """Sides that cannot be told apart, best first; a side can be in several groups."""
    tests: AllPairs = field(repr=False)

    def __getitem__(self, name: str) -> SideRank:
        return next(side for side in self.sides if side.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "metric": self.metric,
            "tasks": self.tasks,
            "sides": [asdict(side) for side in self.sides],
            "groups": [list(group) for group in self.groups],
        }


@dataclass(frozen=True, slots=True)
class TaskEffect:
    """How hard a task is, and how much a comparison depends on it."""

    task: str
    values: tuple[float, ...]
    """The mean value of each side."""
    mean: float
    """The mean over the sides: for passes, the share that solved it."""
    difficulty: float | None
    """Difficulty in logits (Rasch), from 8 sides on."""
    discrimination: float | None
    """Correlation with the other tasks over the sides, from 3 sides on."""
    influence: float
    """How far the task moves the difference from the baseline of the side that it moves most."""
    side: str
    """The side that `influence` is about."""


@dataclass(frozen=True, slots=True)
class CommonTasks:
    """The mean value of each side on each task that all of them tried (tasks × sides)."""

    metric: str
    sides: tuple[str, ...]
    tasks: tuple[str, ...]
    values: Floats
    tries: Floats
    costs: Floats | None

    @classmethod
    def of(cls, units: Units, names: Sequence[str]) -> CommonTasks | None:
        """Take the first compared metric that is a rate or a score; None without common tasks."""
        metric = next((one.name for one in units.compared if one.kind != "number"), None)
        if metric is None:
            return None
        columns = [metric, *(one.name for one in units.compared if one.name == COST)]
        sums = [f"{name}/{part}" for name in columns for part in "sn"]
        table = units.table.filter(pl.col(f"{metric}/n") > 0)
        by_task = table.group_by(CLUSTER, GROUP).agg(pl.col(sums).sum())
        common = by_task.filter(pl.len().over(CLUSTER) == len(names)).sort(CLUSTER, GROUP)
        if not common.height:
            return None
        titles = units.frame.group_by(CLUSTER).agg(pl.col("task_id").first().cast(pl.String))
        tasks = common[CLUSTER].unique(maintain_order=True).to_frame()
        tasks = tasks.join(titles, on=CLUSTER, maintain_order="left")
        shape = tasks.height, len(names)
        total, count, *paid = (
            common[name].cast(pl.Float64).to_numpy().reshape(shape) for name in sums
        )
        costs = paid[0] / paid[1] if paid and (paid[1] > 0).all() else None
        return cls(metric, tuple(names), tuple(tasks["task_id"]), total / count, count, costs)

    @property
    def lower_is_better(self) -> bool:
        """Whether the metric is better when lower."""
        declared = METRICS.get(self.metric) or MEASURES.get(self.metric)
        return getattr(declared, "better", None) == "lower"

    def ranking(self, confidence: float, seed: int) -> Ranking | None:
        """Rank three or more sides; None with fewer sides or with one task."""
        if len(self.sides) < RANKED or len(self.tasks) < 2:
            return None
        values = -self.values if self.lower_is_better else self.values
        found = rank_ranges(values, confidence, seed)
        shares: Sequence[float | None] = [None] * len(self.sides)
        if self.costs is not None:
            shares = frontier_shares(values, self.costs, seed).tolist()
        ranks = zip(self.sides, found.rank, found.low, found.high, shares, strict=True)
        groups = tuple(tuple(self.sides[i] for i in group) for group in found.groups)
        return Ranking(
            self.metric,
            len(self.tasks),
            tuple(SideRank(*rank) for rank in ranks),
            groups,
            AllPairs(self.sides, found.p.round(6).tolist(), found.level),
        )

    @property
    def solved_by_all(self) -> int:
        """The number of tasks on which every side has the highest value."""
        return int((self.values.min(axis=1) >= 1).sum())

    @property
    def solved_by_none(self) -> int:
        """The number of tasks on which every side has 0."""
        return int((self.values.max(axis=1) <= 0).sum())

    def effects(self, baseline: str, most: int | None = None) -> list[TaskEffect]:
        """Return what each task contributes, or the `most` influential ones, those first.

        The influence of a task is the difference with it minus the difference without it.
        """
        sides, first = len(self.sides), self.sides.index(baseline)
        apart = np.delete(self.values - self.values[:, [first]], first, axis=1)
        moved = (apart - apart.mean(axis=0)) / max(len(self.tasks) - 1, 1)
        largest = np.abs(moved).argmax(axis=1)
        influence = np.take_along_axis(moved, largest[:, None], axis=1)[:, 0]
        others = [name for name in self.sides if name != baseline]
        hard = np.full(len(self.tasks), np.nan)
        if sides >= RASCH:
            hard = rasch_difficulties(self.values * self.tries, self.tries)
        tells = discriminations(self.values) if sides >= RANKED else hard
        chosen = sorted(range(len(self.tasks)), key=lambda i: (-abs(influence[i]), self.tasks[i]))
        return [
            TaskEffect(
                task=self.tasks[i],
                values=tuple(self.values[i].tolist()),
                mean=float(self.values[i].mean()),
                difficulty=None if np.isnan(hard[i]) else float(hard[i]),
                discrimination=None if np.isnan(tells[i]) else float(tells[i]),
                influence=float(influence[i]),
                side=others[largest[i]],
            )
            for i in chosen[:most]
        ]

    def to_dict(self, baseline: str, most: int = 10) -> dict[str, Any]:
        """Return the JSON form, with the `most` influential tasks."""
        return {
            "metric": self.metric,
            "common": len(self.tasks),
            "solved_by_all": self.solved_by_all,
            "solved_by_none": self.solved_by_none,
            "most_influential": [
                {**asdict(task), "values": dict(zip(self.sides, task.values, strict=True))}
                for task in self.effects(baseline, most)
            ],
        }


def board_pairs(
    units: Units,
    names: Sequence[str],
    which: Sequence[tuple[int, int]],
    overlaps: Mapping[tuple[int, int], Overlap],
    tests: AllPairs | None,
    confidence: float,
    seed: int,
) -> list[Pair]:
    """Compare pairs so that intervals, tests and ranks agree, as one table must show them.

    With the tests of all pairs, p and interval hold for all of them at once, whichever side the
    others are compared with. Without, they hold for the given pairs.
    """
    level = tests.level if tests else (1 - confidence) / max(len(which), 1)
    found = units.pairs(names, which, overlaps, 1 - level, seed, comparisons=1)
    if tests:
        found = [p if p.p is None else replace(p, p_adjusted=tests[p.a, p.b]) for p in found]
    return [pair.agreeing(1 - confidence) for pair in found]
