"""Ranks of several sides on the same tasks, and how hard each task is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pennyweight.stats.quantiles import special
from pennyweight.stats.skewed import hall_distance

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Sides = NDArray[np.intp]

DRAWS = 2000
BLOCKS = 1000
"""Beyond this many tasks, the means of blocks of tasks take their place."""
LEAST = 1e-9
"""The lowest level of an interval: with few tasks nothing can be shown at any level."""
ROUNDING = 1e-9
"""What is larger by less than this share is the same: its sums were added in another order."""
_CHUNK = 100


@dataclass(frozen=True, slots=True)
class RankRanges:
    """The rank of each side, from 1 for the best, and the ranks that the data leave open."""

    rank: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    """Sides between which no difference is shown, best first; a side can be in several groups."""
    p: Floats
    """The p-value of each pair, adjusted for all pairs (sides × sides)."""
    level: float
    """The level at which a single interval must be computed to agree with these tests."""


def rank_ranges(
    values: Floats, confidence: float, seed: int, tries: Floats | None = None
) -> RankRanges:
    """Rank sides by the means of their columns (tasks × sides); higher is better.

    `open_ranks` gives the best and the worst possible rank of a side. All pairs are tested at once,
    so with the stated confidence every range contains the true rank. `tries` is how often each side
    tried each task, if values are shares of passes; None for scores.

    >>> passes = np.array([[1.0, 0, 0], [1, 0, 1]] * 20)
    >>> found = rank_ranges(passes, 0.95, seed=0, tries=np.ones((40, 3)))
    >>> found.rank, found.low, found.high, found.groups
    ((1, 3, 2), (1, 3, 2), (1, 3, 2), ((0,), (2,), (1,)))
    """
    means = values.mean(axis=0)
    blocks = in_blocks(values, seed)
    better, p, limit = all_pairs(blocks, confidence, seed, largest_t(blocks, tries))
    low, high, groups = open_ranks(means, better)
    same = ROUNDING * np.abs(means).max()
    return RankRanges(
        rank=tuple(1 + int((means > mean + same).sum()) for mean in means),
        low=low,
        high=high,
        groups=groups,
        p=p,
        level=min(1 - confidence, max(LEAST, 2 * float(special.stdtr(len(blocks) - 1, -limit)))),
    )


def open_ranks(
    values: Floats, better: Flags
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Return the lowest and the highest rank that are open for each side, and groups of sides.

    A side's best possible rank is one more than the number of sides shown to be better, its worst
    is one less for each side shown to be worse. A side may still be the best unless one that may be
    the best is shown to be better, so a side that alone has rank 1 is shown to be above all others.

    >>> better = np.array([[False, True, False], [False, False, True], [False, False, False]])
    >>> open_ranks(np.array([0.9, 0.6, 0.3]), better)[:2]
    ((1, 2, 1), (2, 2, 3))
    """
    order = sorted(range(len(values)), key=lambda side: -values[side])
    low, high = 1 + better.sum(axis=0), len(values) - better.sum(axis=1)
    low[~better[low == 1].any(axis=0)] = 1
    return tuple(low.tolist()), tuple(high.tolist()), tuple(_groups(order, better))


def in_blocks(values: Floats, seed: int) -> Floats:
    """Return the means of random blocks of tasks of equal size, if there are very many tasks."""
    size = len(values) // BLOCKS
    if size < 2:
        return values
    order = np.random.default_rng(seed).permutation(len(values))[: size * BLOCKS]
    blocks: Floats = values[order].reshape(BLOCKS, size, -1).mean(axis=1)
    return blocks


def all_pairs(
    values: Floats, confidence: float, seed: int, most: Floats
) -> tuple[Flags, Floats, float]:
    """Test all pairs at once (max-T); return who is better, p and the critical |t|.

    Under the null hypothesis a task is as likely to favour one side as the other. The differences
    of whole tasks change sign at random, and the largest |t| of all pairs gives the critical value.
    The |t| of a pair counts as at most `most`.
    """
    tasks, sides = values.shape
    a, b = np.triu_indices(sides, 1)
    squares = np.empty(len(a))
    for start in range(0, len(a), _CHUNK):
        part = slice(start, start + _CHUNK)
        squares[part] = np.square(values[:, a[part]] - values[:, b[part]]).mean(axis=0)
    means = values.mean(axis=0)
    signed = _studentised(means[a] - means[b], squares, tasks)
    observed = np.minimum(np.abs(signed), most) * (1 - ROUNDING)
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
    better[a, b] = (observed > limit) & (signed > 0)
    better[b, a] = (observed > limit) & (signed < 0)
    p = np.ones((sides, sides))
    above = DRAWS - np.searchsorted(largest, observed)
    p[a, b] = p[b, a] = (1 + above) / (DRAWS + 1)
    return better, p, float(limit)


def largest_t(values: Floats, tries: Floats | None) -> Floats:
    """Return what the |t| of each pair counts as at most.

    Flips of signs promise too much where a task does not favour both sides alike: for scores, of
    which shares of several tries are some. There Hall's interval must agree, and tasks may not
    differ by less than single tries must.
    """
    a, b = np.triu_indices(values.shape[1], 1)
    few = tries if tries is not None and len(tries) == len(values) else None
    scores = tries is None or bool((tries > 1).any())
    most = np.full(len(a), np.inf)
    for start in range(0, len(a) if scores else 0, _CHUNK):
        part = slice(start, start + _CHUNK)
        sides = values[:, a[part]], values[:, b[part]]
        most[part] = _skewed(sides[0] - sides[1])
        if few is not None:
            by_chance = _tried(*sides, 2 / (1 / few[:, a[part]] + 1 / few[:, b[part]]))
            most[part] = np.minimum(most[part], by_chance)
    return most if few is None else np.minimum(most, _at_edges(np.abs(values), a, b))


def _skewed(differences: Floats) -> Floats:
    """Return the |t| of columns as Hall's interval counts it; ∞ if nothing varies."""
    tasks, means = len(differences), differences.mean(axis=0)
    spread = differences.std(axis=0, ddof=1)
    third = ((differences - means) ** 3).sum(axis=0) * tasks / (tasks - 1) / max(tasks - 2, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = hall_distance(means / spread, third / spread**3, tasks)
    return np.where(spread > ROUNDING, distance, np.inf)


def _tried(first: Floats, second: Floats, tries: Floats) -> Floats:
    """Return the |t| of columns if nothing but single tries varied: so few tasks may hide it."""
    value = first.mean(axis=0) - second.mean(axis=0)
    apart = np.abs(first).mean(axis=0) + np.abs(second).mean(axis=0)
    apart -= 2 * (first * second).mean(axis=0) + np.square(value)
    error = np.sqrt(np.maximum(apart, ROUNDING) / tries.sum(axis=0))
    return np.where(apart > ROUNDING, np.abs(value) / error, np.inf)


def _at_edges(passed: Floats, a: Sides, b: Sides) -> Floats:
    """Return the |t| at which all tasks passed, or none, by chance; ∞ unless one side did that.

    The chance is that of the other side, if its results are mixed.
    """
    tasks, means = len(passed), passed.mean(axis=0)
    first, mixed = passed[0], np.any((passed > 0) & (passed < 1), axis=0)
    edge = np.all(passed == first, axis=0) & ~mixed
    most = np.full(len(a), np.inf)
    for side, other in ((a, b), (b, a)):
        share = np.where(first[side] > 0, means[other], 1 - means[other]) ** tasks
        t = -special.stdtrit(max(tasks - 1, 1), np.minimum(share, 0.5))
        most = np.where(edge[side] & mixed[other], t, most)
    return most


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
