"""Ranks of compared sides, and what each task contributes to the comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pennyweight.define import MEASURES, METRICS
from pennyweight.errors import UsageError
from pennyweight.scoring.groups import GROUP
from pennyweight.scoring.margins import adjusted
from pennyweight.scoring.pairs import Compared, Pair, PairwiseTest, Units
from pennyweight.scoring.sides import Overlap
from pennyweight.stats.ranks import (
    Floats,
    discriminations,
    frontier_shares,
    open_ranks,
    rank_ranges,
    rasch_difficulties,
)
from pennyweight.stats.resample import CLUSTER

if TYPE_CHECKING:
    from pennyweight.scoring.large.units import LargeUnits

RANKED = 3
"""The number of sides from which they are ranked."""
RASCH = 8
"""The number of sides from which difficulties are fitted."""
COST = "cost_usd_mean"
NAMED = 1_000_000
"""The most common tasks whose names are kept."""
TOLD = 10
"""How many of the most influential tasks are told."""


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
    tasks: int
    """How many tasks all sides tried, which they are on."""
    means: Sequence[float]
    """The mean of each side on these tasks."""

    def __getitem__(self, pair: tuple[str, str]) -> float:
        a, b = map(self.sides.index, pair)
        return self.p[a][b]

    def gap(self, a: str, b: str) -> float:
        """Return by how much the mean of `b` is above that of `a`."""
        return self.means[self.sides.index(b)] - self.means[self.sides.index(a)]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The sides ranked by one metric, over the tasks that all of them tried."""

    metric: str
    tasks: int
    sides: tuple[SideRank, ...]
    groups: tuple[tuple[str, ...], ...]
    """Sides between which no difference is shown, best first; a side can be in several groups."""
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
    """The mean value of each side on each task that all of them tried (tasks × sides).

    As in pairs, tries of other configurations than those of all sides do not count.
    """

    metric: str
    scores: bool
    """Whether values are scores, and not shares of passes."""
    sides: tuple[str, ...]
    names: Mapping[int, str]
    """The name of each task, by its place; beyond NAMED tasks, only the TOLD most influential."""
    values: Floats
    tries: Floats | None
    """Known from RANKED sides on."""
    costs: Floats | None
    """Known from RANKED sides on."""

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def of(
        cls, units: Units | LargeUnits, names: Sequence[str], baseline: str
    ) -> CommonTasks | None:
        """Take the first rate or score that all sides have on common tasks; None without any."""
        asked = (one for one in units.compared if one.kind != "number")
        return next(
            (found for one in asked if (found := cls._in(units, one, names, baseline))), None
        )

    @classmethod
    def _in(
        cls, units: Units | LargeUnits, first: Compared, names: Sequence[str], baseline: str
    ) -> CommonTasks | None:
        metric = first.name
        paid = [one.name for one in units.compared if one.name == COST and len(names) >= RANKED]
        shared = units.shared()
        found = [
            _common(table, [metric, *paid], len(names), shared)
            for table in units.tables(metric, *paid)
        ]
        clusters = pl.concat([one for one, *_ in found])
        if not len(clusters):
            return None
        values, costs = (np.concatenate([one[part] for one in found]) for part in (1, 3))
        tries = _joined([one[2] for one in found])
        del found
        common = cls(
            metric, first.kind == "score", tuple(names), {}, values,
            tries if len(tries) else None,
            costs if len(costs) and np.isfinite(costs).all() else None,
        )  # fmt: skip
        most = len(common) if len(common) <= NAMED else TOLD
        sizes = np.abs(common.influences(baseline)[0])
        return replace(common, names=_largest(sizes, clusters, units.named_tasks(), most))

    @property
    def lower_is_better(self) -> bool:
        """Whether the metric is better when lower."""
        declared = METRICS.get(self.metric) or MEASURES.get(self.metric)
        return getattr(declared, "better", None) == "lower"

    def ranking(self, confidence: float, seed: int) -> Ranking | None:
        """Rank three or more sides; None with fewer sides or with one task."""
        if len(self.sides) < RANKED or len(self) < 2:
            return None
        values = -self.values if self.lower_is_better else self.values
        found = rank_ranges(values, confidence, seed, None if self.scores else self.tries)
        shares: Sequence[float | None] = [None] * len(self.sides)
        if self.costs is not None:
            shares = frontier_shares(values, self.costs, seed).tolist()
        ranks = zip(self.sides, found.rank, found.low, found.high, shares, strict=True)
        groups = tuple(tuple(self.sides[i] for i in group) for group in found.groups)
        return Ranking(
            self.metric,
            len(self),
            tuple(SideRank(*rank) for rank in ranks),
            groups,
            AllPairs(
                *(self.sides, found.p.round(6).tolist(), found.level, len(self)),
                self.values.mean(axis=0).tolist(),
            ),
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
        sides, most = len(self.sides), len(self) if most is None else min(most, len(self))
        if most > len(self.names):
            raise UsageError(
                f"The sides have {len(self):,} tasks in common; at most {NAMED:,} can be listed. "
                f"--format json without --tasks has the {TOLD} most influential."
            )
        influence, largest = self.influences(baseline)
        others = [name for name in self.sides if name != baseline]
        hard = np.full(len(self), np.nan)
        if self.tries is not None and sides >= RASCH:
            hard = rasch_difficulties(self.values * self.tries, self.tries)
        tells = discriminations(self.values) if sides >= RANKED else hard
        chosen = sorted(self.names, key=lambda i: (-abs(influence[i]), self.names[i]))
        return [
            TaskEffect(
                task=self.names[i],
                values=tuple(self.values[i].tolist()),
                mean=float(self.values[i].mean()),
                difficulty=None if np.isnan(hard[i]) else float(hard[i]),
                discrimination=None if np.isnan(tells[i]) else float(tells[i]),
                influence=float(influence[i]),
                side=others[largest[i]],
            )
            for i in chosen[:most]
        ]

    def influences(self, baseline: str) -> tuple[Floats, NDArray[np.intp]]:
        """Return how far each task moves a difference from the baseline, and of which side."""
        first = self.sides.index(baseline)
        apart = np.delete(self.values - self.values[:, [first]], first, axis=1)
        moved = (apart - apart.mean(axis=0)) / max(len(self) - 1, 1)
        largest = np.abs(moved).argmax(axis=1)
        return np.take_along_axis(moved, largest[:, None], axis=1)[:, 0], largest

    def to_dict(self, baseline: str, most: int = TOLD) -> dict[str, Any]:
        """Return the JSON form, with the `most` influential tasks."""
        return {
            "metric": self.metric,
            "common": len(self),
            "solved_by_all": self.solved_by_all,
            "solved_by_none": self.solved_by_none,
            "most_influential": [
                {**asdict(task), "values": dict(zip(self.sides, task.values, strict=True))}
                for task in self.effects(baseline, most)
            ],
        }


def board_pairs(
    units: Units | LargeUnits,
    names: Sequence[str],
    which: Sequence[tuple[int, int]],
    overlaps: Mapping[tuple[int, int], Overlap],
    tests: AllPairs | None,
    confidence: float,
    seed: int,
    *,
    planned: bool = True,
) -> list[Pair]:
    """Compare pairs so that intervals, tests and ranks agree, as one table must show them.

    With the tests of all pairs, p and interval hold for all of them at once, whichever side the
    others are compared with. Without, they hold for the given pairs. A pair that shares tries which
    other sides do not have must also be shown, in the same direction, on all of its own.
    """
    level = tests.level if tests else (1 - confidence) / max(len(which), 1)
    asked = PairwiseTest(1 - level, seed, comparisons=1, planned=planned)
    found = units.pairs(names, which, overlaps, asked)
    tested = sum(pair.p is not None for pair in found)
    if not tests and 0 < tested < len(which):  # sides without a value take no part
        asked = replace(asked, confidence=1 - (1 - confidence) / tested)
        found = units.pairs(names, which, overlaps, asked)
    if tests:
        found = [_together(pair, tests, confidence) for pair in found]
    found = [replace(pair, level=1 - confidence) for pair in found]
    return [replace(pair.agreeing(1 - confidence), primary=True) for pair in found]


def primary_and_others(
    units: Units | LargeUnits,
    names: Sequence[str],
    which: Sequence[tuple[int, int]],
    overlaps: Mapping[tuple[int, int], Overlap],
    first: str,
    tests: AllPairs | None,
    asked: PairwiseTest,
) -> list[Pair]:
    """Compare pairs in the primary metric, as a leaderboard does, and by themselves in others."""
    primary = replace(units, compared=[one for one in units.compared if one.name == first])
    others = replace(units, compared=[one for one in units.compared if one.name != first])
    how = asked.confidence, asked.seed
    found = board_pairs(primary, names, which, overlaps, tests, *how)
    if asked.margin is not None:
        known = primary.pairs(names, which, overlaps, replace(asked, planned=False))
        found = [replace(p, held=one.held) for p, one in zip(found, known, strict=True)]
    found += others.pairs(names, which, overlaps, asked)
    order = {(names[a], names[b]): place for place, (a, b) in enumerate(which)}
    metrics = [one.name for one in units.compared]
    found.sort(key=lambda pair: (order[pair.a, pair.b], metrics.index(pair.metric)))
    margins = zip(found, adjusted([pair.held for pair in found]), strict=True)
    return [replace(pair, held=held) for pair, held in margins]


def board_ranking(
    ranking: Ranking,
    units: Units | LargeUnits,
    pairs: Sequence[Pair],
    confidence: float,
    seed: int,
) -> Ranking:
    """Leave open the ranks of sides whose difference is not shown on all tasks that they share.

    `pairs` are those of `board_pairs`; the others that decide about ranks are compared here.
    """
    tests, alpha = ranking.tests, 1 - confidence
    names, rank = tests.sides, np.array([-side.rank for side in ranking.sides], dtype=np.float64)
    better = (np.array(tests.p) <= alpha) & (rank[:, None] > rank)
    known = {frozenset((pair.a, pair.b)) for pair in pairs}
    which = [(a, b) for a, b in np.argwhere(better).tolist() if {names[a], names[b]} not in known]
    overlaps = {pair: units.overlap(names, *pair) for pair in which}
    others = board_pairs(units, names, which, overlaps, tests, confidence, seed, planned=False)
    return _opened(ranking, rank, better, [p for p in (*pairs, *others) if not p.shown(alpha)])


def _opened(
    ranking: Ranking, rank: Floats, better: NDArray[np.bool_], pairs: Sequence[Pair]
) -> Ranking:
    """Leave open which side of each of these pairs is better."""
    names = ranking.tests.sides
    for pair in pairs:
        if pair.metric == ranking.metric:
            a, b = names.index(pair.a), names.index(pair.b)
            better[a, b] = better[b, a] = False
    low, high, groups = open_ranks(rank, better)
    sides = zip(ranking.sides, low, high, strict=True)
    return replace(
        ranking,
        sides=tuple(replace(side, low=first, high=last) for side, first, last in sides),
        groups=tuple(tuple(names[i] for i in group) for group in groups),
    )


def _together(pair: Pair, tests: AllPairs, confidence: float) -> Pair:
    """Give a pair the p-value that holds for all pairs at once."""
    if pair.p is None:
        return pair

    def together(p: float) -> float:
        return min(1.0, p * (1 - confidence) / tests.level)

    p, tested = tests[pair.a, pair.b], tests.gap(pair.a, pair.b)
    own = (pair.mean_b or 0.0) - (pair.mean_a or 0.0)
    if pair.tasks != tests.tasks or not math.isclose(own, tested, rel_tol=1e-9, abs_tol=1e-12):
        p = max(p, together(pair.p) if own * tested > 0 else 1.0)
    missing = pair.missing
    missing = missing and replace(missing, p_adjusted=max(p, together(missing.p)))
    return replace(pair, p_adjusted=p, missing=missing)


def _largest(
    sizes: Floats, clusters: pl.Series, named: Iterable[pl.DataFrame], most: int
) -> dict[int, str]:
    """Return the places and names of the tasks of the largest sizes; of equals, the first names."""
    least = np.partition(sizes, -most)[-most]
    table = pl.DataFrame({CLUSTER: clusters, "size": sizes}).with_row_index("i")
    table = table.filter(pl.col("size") >= least)
    best = pl.DataFrame(schema={"i": pl.UInt32, "size": pl.Float64, "task_id": pl.String})
    for rows in named:
        names = rows.unique(CLUSTER, keep="first", maintain_order=True)
        found = table.join(names, on=CLUSTER, maintain_order="left").select(best.columns)
        best = pl.concat([best, found]).unique("i", keep="first", maintain_order=True)
        best = best.sort("size", "task_id", descending=[True, False]).head(most)
    return dict(best.select("i", "task_id").iter_rows())


def _common(
    table: pl.DataFrame, names: Sequence[str], sides: int, shared: Sequence[str]
) -> tuple[pl.Series, Floats, Floats, Floats]:
    """Return the tasks that all sides have a value of the first name of, and the sides' means.

    Also the tries, if there are RANKED sides, and the means of the second name, if there is one.
    """
    sums, unit = [f"{name}/{part}" for name in names for part in "sn"], [CLUSTER, *shared]
    counted = table.filter(pl.col(f"{names[0]}/n") > 0)
    tried = counted.group_by(GROUP, *unit, maintain_order=True).agg(pl.col(sums).sum())
    means = [(pl.col(f"{name}/s") / pl.col(f"{name}/n")).mean().alias(name) for name in names]
    both = tried.filter(pl.len().over(unit) == sides).group_by(CLUSTER, GROUP)
    common = both.agg(*means, pl.col(f"{names[0]}/n").sum()).sort(CLUSTER, GROUP)

    def wide(column: str) -> Floats:
        array: Floats = common[column].to_numpy()
        return array.reshape(-1, sides)

    found, none = [wide(name) for name in names], np.empty((0, sides))
    tries = _joined([wide(f"{names[0]}/n")]) if sides >= RANKED else none
    clusters = common[CLUSTER].unique(maintain_order=True)
    return clusters, found[0], tries, found[1] if len(found) > 1 else none


def _joined(parts: Sequence[Floats]) -> Floats:
    """Join the tries of slices; a number that is the same everywhere is held once."""
    some = [part for part in parts if part.size]
    if len({float(end) for part in some for end in (part.min(), part.max())}) == 1:
        shape = sum(map(len, some)), some[0].shape[1]
        return np.broadcast_to(some[0][:1, :1].copy(), shape)
    return np.concatenate(parts)
