"""Ranks of several sides on the same tasks, and how hard each task is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pennyweight.stats.quantiles import special

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

DRAWS = 2000
BLOCKS = 1000
"""Beyond this many tasks, the means of blocks of tasks take their place."""
LEAST = 1e-9
"""The lowest level of an interval: with few tasks nothing can be shown at any level."""
_CHUNK = 100


@dataclass(frozen=True, slots=True)
class RankRanges:
    """The rank of each side, from 1 for the best, and the ranks that the data leave open."""

    rank: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    """Sides that cannot be told apart, best first; a side can be in several groups."""
    p: Floats
    """The p-value of each pair, adjusted for all pairs (sides × sides)."""
    level: float
    """The level at which a single interval must be computed to agree with these tests."""


def rank_ranges(values: Floats, confidence: float, seed: int) -> RankRanges:
    """Rank sides by the means of their columns (tasks × sides); higher is better.

    A side's best possible rank is one more than the number of sides shown to be better, its worst
    is one less for each side shown to be worse. All pairs are tested at once, so with the stated
    confidence every range contains the true rank.

    >>> found = rank_ranges(np.array([[1.0, 0, 0], [1, 0, 1]] * 20), 0.95, seed=0)
    >>> found.rank, found.low, found.high, found.groups
    ((1, 3, 2), (1, 3, 2), (1, 3, 2), ((0,), (2,), (1,)))
    """
    means, sides = values.mean(axis=0), values.shape[1]
    blocks = in_blocks(values, seed)
    better, p, limit = all_pairs(blocks, confidence, seed)
    order = sorted(range(sides), key=lambda side: -means[side])
    return RankRanges(
        rank=tuple(1 + int((means > mean).sum()) for mean in means),
        low=tuple(1 + int(n) for n in better.sum(axis=0)),
        high=tuple(sides - int(n) for n in better.sum(axis=1)),
        groups=tuple(_groups(order, better)),
        p=p,
        level=min(1 - confidence, max(LEAST, 2 * float(special.stdtr(len(blocks) - 1, -limit)))),
    )


def in_blocks(values: Floats, seed: int) -> Floats:
    """Return the means of random blocks of tasks of equal size, if there are very many tasks."""
    size = len(values) // BLOCKS
    if size < 2:
        return values
    order = np.random.default_rng(seed).permutation(len(values))[: size * BLOCKS]
    blocks: Floats = values[order].reshape(BLOCKS, size, -1).mean(axis=1)
    return blocks


def shown_better(values: Floats, confidence: float, seed: int) -> Flags:
    """Return which sides are shown to be better than which, for all pairs at once."""
    return all_pairs(values, confidence, seed)[0]


def all_pairs(values: Floats, confidence: float, seed: int) -> tuple[Flags, Floats, float]:
    """Test all pairs at once (max-T); return who is better, p and the critical |t|.

    Under the null hypothesis a task is as likely to favour one side as the other. The differences
    of whole tasks change sign at random, and the largest |t| of all pairs gives the critical value.
    """
    tasks, sides = values.shape
    a, b = np.triu_indices(sides, 1)
    squares = np.empty(len(a))
    for start in range(0, len(a), _CHUNK):
        part = slice(start, start + _CHUNK)
        squares[part] = np.square(values[:, a[part]] - values[:, b[part]]).mean(axis=0)
    means = values.mean(axis=0)
    observed = _studentised(means[a] - means[b], squares, tasks)
    rng = np.random.default_rng(seed)
    largest = np.empty(DRAWS)
    for start in range(0, DRAWS, _CHUNK):
        signs = rng.choice((-1.0, 1.0), (_CHUNK, tasks))
        drawn = signs @ values / tasks
        found = np.abs(_studentised(drawn[:, a] - drawn[:, b], squares, tasks))
        largest[start : start + _CHUNK] = found.max(axis=1)
    largest.sort()
    place = int(np.ceil(confidence * (DRAWS + 1))) - 1
    limit = largest[place] if place < DRAWS else np.inf  # the draws show nothing at such a level
    better = np.zeros((sides, sides), dtype=np.bool_)
    better[a, b], better[b, a] = observed > limit, observed < -limit
    p = np.ones((sides, sides))
    above = DRAWS - np.searchsorted(largest, np.abs(observed))
    p[a, b] = p[b, a] = (1 + above) / (DRAWS + 1)
    return better, p, float(limit)


def _studentised(difference: Floats, squares: Floats, tasks: int) -> Floats:
    """Return t of mean differences; 0 if there is no difference, ∞ if all tasks show the same."""
    variance = np.maximum(squares - np.square(difference), 0) / max(tasks - 1, 1)
    variance = np.where(variance < 1e-12 * squares, 0, variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        t: Floats = np.where(difference == 0, 0.0, difference / np.sqrt(variance))
    return t


def _groups(order: list[int], better: Flags) -> list[tuple[int, ...]]:
    """Return the longest runs of neighbours in which no side is shown to be better."""
    runs: list[tuple[int, ...]] = []
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and not better[order[start:end], order[end]].any():
            end += 1
        run = tuple(order[start:end])
        if not runs or run[-1] != runs[-1][-1]:
            runs.append(run)
    return runs


def frontier_shares(quality: Floats, costs: Floats, seed: int) -> Floats:
    """Return how often each side is on the cost frontier when tasks are resampled.

    A side is on the frontier if no other side is as good for less, or better for as much.
    """
    quality, costs = in_blocks(quality, seed), in_blocks(costs, seed)
    tasks, sides = quality.shape
    rng = np.random.default_rng(seed)
    counts = np.zeros(sides)
    for _ in range(DRAWS // 2):
        weights = np.bincount(rng.integers(0, tasks, tasks), minlength=tasks)
        good, paid = weights @ quality, weights @ costs
        as_good = (good[:, None] >= good) & (paid[:, None] <= paid)
        strictly = (good[:, None] > good) | (paid[:, None] < paid)
        counts += ~(as_good & strictly).any(axis=0)
    shares: Floats = counts / (DRAWS // 2)
    return shares


def discriminations(values: Floats) -> Floats:
    """Return the correlation of each task with the other tasks, over the sides; NaN if constant.

    Near 1 the task ranks the sides as the others do; below 0 it ranks them the other way round.
    """
    rest = values.sum(axis=0) - values
    x, y = (v - v.mean(axis=1, keepdims=True) for v in (values, rest))
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = (x * y).sum(axis=1) / np.sqrt(np.square(x).sum(1) * np.square(y).sum(1))
    return np.where(np.isfinite(found), np.clip(found, -1, 1), np.nan)


def rasch_difficulties(passes: Floats, tries: Floats) -> Floats:
    """Return the difficulty of each task in logits (Rasch model), from passes out of tries.

    Abilities of sides are normal with mean 0 and standard deviation 1.5; a weak normal prior keeps
    tasks that all or none solve finite. Fitted by marginal maximum likelihood (EM).
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(31)
    ability = 1.5 * nodes
    difficulty = np.zeros(len(passes))
    for _ in range(200):
        chance = special.expit(ability[:, None] - difficulty)
        log = np.log(chance) @ passes + np.log1p(-chance) @ (tries - passes)
        posterior = weights[:, None] * np.exp(log - log.max(axis=0))
        posterior /= posterior.sum(axis=0)
        expected = posterior @ tries.T
        slope = passes.sum(axis=1) - (expected * chance).sum(axis=0) + difficulty / 9
        curve = (expected * chance * (1 - chance)).sum(axis=0) + 1 / 9
        step = np.clip(-slope / curve, -1, 1)
        difficulty = difficulty + step
        if np.abs(step).max() < 1e-8:
            break
    return difficulty
