"""Two sides on the same tasks: the paired difference, its interval and its test.

Each task gives one value a side, the mean of its tries, so tasks count once however often they
were tried. Where each task was tried once and passed or not, the test is McNemar's and the interval
Tango's. Otherwise the test is a permutation: the tries of a task are dealt out to the sides anew,
or the signs of the tasks' differences are flipped. The interval is then Tango's with the sample
size that the differences are worth (for shares and scores), or Student's widened for skew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from assay.stats.dealing import ENOUGH, FLIPS, Passes, dealt_out
from assay.stats.interval import t_quantile, z_quantile
from assay.stats.lazy import special

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from assay.stats.dealing import Tries
    from assay.stats.interval import Floats

Kind = Literal["rate", "score", "number"]
"""What the values are: true or false, numbers between 0 and 1, or any numbers."""

BLOCKS = 1_000
EXACT = 15
"""Up to so many tasks that differ, all flips of their signs are gone through."""

FEW, RELABELLED = 60, 500
"""Up to so many tasks tries are dealt out anew: evenly repeated passes, and uneven tries."""

ROUNDING = 1e-9
"""What varies by less than this share of the values does not vary, but for the last digits."""

MCNEMAR, ALL_FLIPS, SOME_FLIPS, RELABELS = (
    "exact McNemar",
    "exact sign-flip permutation",
    "sign-flip permutation",
    "within-task permutation",
)


@dataclass(frozen=True, slots=True)
class Paired:
    """Two sides' values at the same tasks, and how often each task was tried."""

    a: Floats
    b: Floats
    tries_a: Floats
    tries_b: Floats
    kind: Kind
    each: Tries | None = None
    """Every single try, where sides were tried unevenly and the values are not passes."""

    @property
    def tasks(self) -> int:
        """How many tasks both sides have."""
        return len(self.a)

    @property
    def once(self) -> bool:
        """Whether each task was tried once and passed or not."""
        tries = np.maximum(self.tries_a, self.tries_b)
        return self.kind == "rate" and bool(np.all(tries == 1))

    @property
    def tries(self) -> Floats:
        """How many tries the two values of a task are worth: the harmonic mean of both numbers."""
        worth: Floats = 2 / (1 / self.tries_a + 1 / self.tries_b)
        return worth

    @property
    def differences(self) -> Floats:
        """By how much the second side is above the first, task by task."""
        return self.b - self.a

    @property
    def discordance(self) -> tuple[float, float]:
        """How often a try of the second side succeeds where one of the first fails; and reverse."""
        return float(np.mean(self.b * (1 - self.a))), float(np.mean(self.a * (1 - self.b)))

    @property
    def variance(self) -> float:
        """The squared standard error of the mean difference; 0 where only rounding varies.

        Single tries, where there are any, show a long tail that the tasks' differences may miss.
        """
        if self.tasks < 2:
            return 0.0
        found = float(self.differences.var(ddof=1)) / self.tasks
        if self.each is not None:
            noise = float(self.each.noise.sum()) / self.tasks**2
            found = (found + max(found, noise)) / 2
        scale = max(float(np.abs(self.a).max()), float(np.abs(self.b).max()))
        return found if found > (ROUNDING * scale) ** 2 / self.tasks else 0.0

    @property
    def alike(self) -> bool:
        """Whether numbers differ by the same at every task, which says nothing of chance."""
        return self.kind == "number" and self.variance == 0


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference with what is known about it."""

    value: float
    low: float | None
    high: float | None
    p: float
    method: str


def compare(paired: Paired, confidence: float, seed: int, comparisons: int = 1) -> Difference:
    """Estimate and test the mean difference; test and interval never contradict each other.

    Numbers that differ by the same at every task have no interval: nothing tells how they vary.
    With several `comparisons` p is found finely enough to be corrected for them.

    >>> ones, first = np.ones(20), np.zeros(20)
    >>> found = compare(Paired(first, ones, ones, ones, "rate"), 0.95, 0)
    >>> found.value, round(found.low, 2), f"{found.p:.2g}", found.method
    (1.0, 0.68, '1.9e-06', 'exact McNemar')
    """
    p, method = tested(paired, seed, (1 - confidence) / comparisons)
    value = float(paired.differences.mean())
    ends = None if paired.alike else interval(paired, confidence)
    if ends is None:
        return Difference(value, None, None, p, method)
    low, high = min(ends[0], value), max(ends[1], value)
    if p > 1 - confidence:
        low, high = min(low, 0.0), max(high, 0.0)
    elif value > 0:
        low = max(low, 0.0)
    else:
        high = min(high, 0.0)
    return Difference(value, low, high, p, method)


def tested(paired: Paired, seed: int, bar: float) -> tuple[float, str]:
    """Test that the sides do not differ; gives p and how it was found.

    `bar` is where p is judged in the end; p can fall below it, if the results let it.
    """
    differences = paired.differences
    if paired.once:
        return mcnemar(int((differences > 0).sum()), int((differences < 0).sum())), MCNEMAR
    if deals(paired):
        return relabelled(paired, seed, bar), RELABELS
    return sign_flip(differences, seed, bar)


def deals(paired: Paired) -> bool:
    """Whether tries are dealt out anew; else signs are flipped."""
    if paired.each is not None:
        return True
    even = bool(np.all(paired.tries_a == paired.tries_b))
    return paired.kind == "rate" and paired.tasks <= (FEW if even else RELABELLED)


def mcnemar(more: int, less: int) -> float:
    """Give the exact two-sided p for tasks that one side alone, and the other alone, passed.

    >>> mcnemar(1, 9)
    0.021484375
    """
    tail = float(special.bdtr(min(more, less), more + less, 0.5)) if more + less else 1.0
    return min(1.0, 2 * tail)


def sign_flip(differences: Floats, seed: int, bar: float = 0.05) -> tuple[float, str]:
    """Test that differences are symmetric around 0 by flipping their signs.

    Where no flip drawn is as extreme, Hoeffding's inequality bounds p, else more are drawn.

    >>> sign_flip(np.array([1.0, 2.0, 3.0]), seed=0)
    (0.25, 'exact sign-flip permutation')
    """
    moved = differences[differences != 0]
    if len(moved) == 0:
        return 1.0, ALL_FLIPS
    moved = moved / np.abs(moved).max()
    exact = len(moved) <= EXACT
    if len(moved) > BLOCKS:
        moved = _in_blocks(moved, seed)
    values, own = moved.astype(np.float32), abs(float(moved.sum())) - 1e-5 * len(moved)
    if exact:
        signs = _all_signs(len(moved))
        return int((np.abs(signs @ values) >= own).sum()) / len(signs), ALL_FLIPS
    extreme = int((np.abs(_some_signs(len(moved), seed) @ values) >= own).sum())
    if extreme:
        return (extreme + 1) / (FLIPS + 1), SOME_FLIPS
    bound = 2 * math.exp(-(own**2) / (2 * float(np.square(moved).sum())))
    rounds = 1
    while bound > bar and rounds * FLIPS < 20 / bar and extreme < ENOUGH:
        signs = _drawn_signs(len(moved), [seed, rounds])
        extreme += int((np.abs(signs @ values) >= own).sum())
        rounds += 1
    return min(max(bound, 1e-300), (extreme + 1) / (rounds * FLIPS + 1)), SOME_FLIPS


def relabelled(paired: Paired, seed: int, bar: float) -> float:
    """Test by dealing the tries of each task out to the sides anew.

    On few tasks that has many more outcomes than flipping signs, and so sees more. And it holds
    with one try here and five there, where a task's difference is skewed even between equal sides.
    """
    if paired.each is not None:
        return dealt_out(paired.each, seed, bar)
    a, b = (n.astype(np.int64) for n in (paired.tries_a, paired.tries_b))
    passes = np.rint(paired.a * a + paired.b * b).astype(np.int64)
    return dealt_out(Passes(passes, a, b, paired.differences), seed, bar)


def _in_blocks(values: Floats, seed: int) -> Floats:
    """Add tasks up in blocks whose signs are flipped together: as valid, and quick for any size."""
    order = np.random.default_rng(seed).permutation(len(values))
    return np.bincount(np.arange(len(values)) % BLOCKS, weights=values[order]).astype(np.float64)


@lru_cache(maxsize=EXACT)
def _all_signs(count: int) -> NDArray[np.float32]:
    """Give half of all sign patterns; the other half are their mirror images."""
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


def interval(paired: Paired, confidence: float) -> tuple[float, float] | None:
    """Give the interval of the mean difference; None where there is one task."""
    if paired.tasks < 2:
        return None
    if paired.kind == "number":
        return _skewed_interval(paired, confidence)
    more, less = paired.discordance
    if paired.once:
        return tango(more, less, paired.tasks, z_quantile(confidence))
    quantile = float(t_quantile(np.array(paired.tasks), confidence))
    low, high = tango(more, less, worth(paired), quantile)
    if paired.each is not None and paired.variance > 0:
        ends = _skewed_interval(paired, confidence)
        low, high = max(-1.0, min(low, ends[0])), min(1.0, max(high, ends[1]))
    return low, high


def worth(paired: Paired) -> float:
    """Give how many independent pairs of tries the tasks are worth.

    Where the tasks' differences do not vary that says nothing, and each task counts as one.
    """
    more, less = paired.discordance
    each = more + less - (more - less) ** 2
    if paired.variance == 0 or each <= 0:
        return float(paired.tasks)
    most = float(paired.tries.sum()) if paired.kind == "rate" else np.inf
    return min(each / paired.variance, most)


def tango(more: float, less: float, n: float, quantile: float) -> tuple[float, float]:
    """Give Tango's score interval of a paired difference of shares.

    `more` and `less` are the shares of n pairs (which need not be whole) in which only the second
    side succeeds, and only the first.

    >>> [round(end, 4) for end in tango(0, 0, 10, z_quantile(0.95))]
    [-0.2775, 0.2775]
    """
    low, high = (_root(more, less, n, quantile, end) for end in (-1.0, 1.0))
    return low, high


def _root(more: float, less: float, n: float, quantile: float, end: float) -> float:
    """Find where the score statistic reaches the quantile, between the value and an end."""
    inside, outside = more - less, end
    for _ in range(60):
        middle = (inside + outside) / 2
        if abs(_score(more, less, n, middle)) > quantile:
            outside = middle
        else:
            inside = middle
    return (inside + outside) / 2


def _score(more: float, less: float, n: float, at: float) -> float:
    """Give the score statistic of a paired difference, were it `at`."""
    b = (2 - more + less) * at - more - less
    root = np.sqrt(max(b * b + 8 * less * at * (1 - at), 0.0))
    least = (root - b) / 4
    variance = max(2 * least + at * (1 - at), 1e-300)
    return float((more - less - at) / np.sqrt(variance / n))


def _skewed_interval(paired: Paired, confidence: float) -> tuple[float, float]:
    """Give Student's interval, as wide as Hall's transformation for skew makes it where wider."""
    values, n = paired.differences, paired.tasks
    mean, spread = float(values.mean()), math.sqrt(n * paired.variance)
    if spread == 0:
        return mean, mean
    quantile = float(t_quantile(np.array(n), confidence)) / np.sqrt(n)
    skew = float(np.mean((values - mean) ** 3)) / spread**3
    steps = [quantile, -quantile]
    if abs(skew) > 1e-6:
        bent = [1 + skew * (step - skew / (6 * n)) for step in steps]
        steps += [3 / skew * float(np.cbrt(x) - 1) for x in bent]
    return mean - spread * max(steps), mean - spread * min(steps)


def cliffs_delta(a: Floats, b: Floats) -> float:
    """Give how much oftener a value of b is above one of a than below it, over all pairs.

    >>> cliffs_delta(np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0]))
    0.5555555555555556
    """
    ordered = np.sort(a)
    above = np.searchsorted(ordered, b, side="left").sum()
    below = (len(a) - np.searchsorted(ordered, b, side="right")).sum()
    return float(above - below) / (len(a) * len(b))
