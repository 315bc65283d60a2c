"""The sign-flip test of the tasks' differences.

If two sides are equally good overall, each task's difference is equally likely with the opposite
sign. A task is flipped as a whole, so repeated attempts do not count as tasks.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pennyweight.stats.interval import Floats
from pennyweight.stats.quantiles import special

FLIPS = 9_999
BLOCKS = 1_000
EXACT = 15
"""The most differing tasks for which all flips of signs are enumerated."""
FINEST = 120
"""The sums of differences that are multiples of 1/1, 1/2, … or 1/120 are counted exactly."""
WORK = 10_000_000
"""The most additions for that; beyond, flips are drawn at random."""
ENOUGH = 10
"""With this many drawn flips as extreme as the results, p is precise enough."""
ALL_FLIPS, SOME_FLIPS = "exact sign-flip permutation", "sign-flip permutation"


def sign_flip(differences: Floats, seed: int, bar: float = 0.05) -> tuple[float, str]:
    """Test whether differences are 0 on average by flipping their signs; return p and the method.

    `bar` is the significance level; enough flips are drawn for p to fall below it. If no drawn flip
    is as extreme as the results, Hoeffding's inequality bounds p.

    >>> sign_flip(np.array([1.0, 2.0, 3.0]), seed=0)
    (0.25, 'exact sign-flip permutation')
    """
    moved = differences[differences != 0]
    if len(moved) == 0:
        return 1.0, ALL_FLIPS
    if unit := step(moved):
        whole = np.rint(moved / unit).astype(np.int64)
        if len(whole) * int(np.abs(whole).sum()) <= WORK:
            return _counted(whole), ALL_FLIPS
    moved = moved / np.abs(moved).max()
    exact = len(moved) <= EXACT
    if len(moved) > BLOCKS:
        moved = _in_blocks(moved, seed)
    values, own = moved.astype(np.float32), abs(float(moved.sum())) - 1e-5 * len(moved)
    if exact:
        signs = all_signs(len(moved))
        return int((np.abs(signs @ values) >= own).sum()) / len(signs), ALL_FLIPS
    return _drawn(moved, values, own, seed, bar), SOME_FLIPS


def step(differences: Floats) -> float | None:
    """Return the largest number of which all differences are multiples; None if there is none.

    >>> step(np.array([0.5, -0.75, 0.0])), step(np.array([0.0])), step(np.array([math.pi]))
    (0.25, None, None)
    """
    sizes = np.unique(np.abs(differences[differences != 0]))
    if not len(sizes) or sizes[-1] * FINEST > WORK:
        return None
    parts = np.arange(1, FINEST + 1)
    for size in sizes.tolist():
        units = np.rint(size * parts)
        parts = parts[(units > 0) & (np.abs(size * parts - units) < 1e-6)]
        if not len(parts):
            return None
    least = int(parts[0])
    return float(np.gcd.reduce(np.rint(sizes * least).astype(np.int64))) / least


def _counted(units: NDArray[np.int64]) -> float:
    """Count all flips of integers by the sum of those that stay positive."""
    sizes, times = np.unique(np.abs(units), return_counts=True)
    total = int((sizes * times).sum())
    chance: Floats = np.zeros(total + 1)
    chance[0], reached = 1.0, 0
    for size, count in zip(sizes.tolist(), times.tolist(), strict=True):
        before = chance[: reached + 1].copy()
        chance[: reached + 1] = 0.0
        for k, share in enumerate(_halves(count)):
            chance[k * size : k * size + reached + 1] += share * before
        reached += size * count
    far = (total + abs(int(units.sum()))) // 2
    return min(1.0, max(2 * float(chance[far:].sum()), 1e-300))


@lru_cache(maxsize=256)
def _halves(count: int) -> tuple[float, ...]:
    """Return the probabilities of 0, 1, … heads of a fair coin."""
    k = np.arange(count + 1.0)
    log = special.gammaln(count + 1.0) - special.gammaln(k + 1) - special.gammaln(count - k + 1)
    return tuple(np.exp(log - count * math.log(2)).tolist())


def _drawn(moved: Floats, values: NDArray[np.float32], own: float, seed: int, bar: float) -> float:
    extreme = int((np.abs(_some_signs(len(moved), seed) @ values) >= own).sum())
    if extreme:
        return (extreme + 1) / (FLIPS + 1)
    bound = 2 * math.exp(-(own**2) / (2 * float(np.square(moved).sum())))
    rounds = 1
    while bound > bar and rounds * FLIPS < 20 / bar and extreme < ENOUGH:
        signs = _drawn_signs(len(moved), [seed, rounds])
        extreme += int((np.abs(signs @ values) >= own).sum())
        rounds += 1
    return min(max(bound, 1e-300), (extreme + 1) / (rounds * FLIPS + 1))


def _in_blocks(values: Floats, seed: int) -> Floats:
    """Sum tasks in blocks whose signs are flipped together: also valid, and fast for any size."""
    order = np.random.default_rng(seed).permutation(len(values))
    return np.bincount(np.arange(len(values)) % BLOCKS, weights=values[order]).astype(np.float64)


@lru_cache(maxsize=EXACT)
def all_signs(count: int) -> NDArray[np.float32]:
    """Return half of all sign patterns; the other half are their mirror images."""
    patterns = np.arange(2 ** (count - 1))[:, None] >> np.arange(count) & 1
    return (1 - 2 * patterns).astype(np.float32)


@lru_cache(maxsize=2)
def _some_signs(count: int, seed: int) -> NDArray[np.float32]:
    return _drawn_signs(count, seed)


def _drawn_signs(count: int, seed: int | list[int]) -> NDArray[np.float32]:
    whole = -(-count // 8)
    drawn = np.frombuffer(np.random.default_rng(seed).bytes(FLIPS * whole), dtype=np.uint8)
    bits = np.unpackbits(drawn.reshape(FLIPS, whole), axis=1, count=count)
    return (1 - 2 * bits.astype(np.float32)).astype(np.float32)
