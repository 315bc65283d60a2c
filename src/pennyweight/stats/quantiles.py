"""Quantiles of the normal, Student's and the binomial distribution, for a few numbers at a time.

SciPy has them too, but importing it takes longer than scoring a file of a few thousand records.
`special` is scipy.special, imported on first use.
"""

from __future__ import annotations

import math
from functools import lru_cache
from importlib import import_module
from statistics import NormalDist
from typing import Any

_NORMAL = NormalDist()
_TINY = 1e-300
_LARGE = 2_000.0
"""Degrees of freedom from which Student's quantile is the normal one with corrections."""


class _Special:
    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("scipy.special"), name)


special: Any = _Special()


@lru_cache(maxsize=64)
def normal_quantile(probability: float) -> float:
    """Return the standard normal quantile of a probability.

    >>> round(normal_quantile(0.975), 6)
    1.959964
    """
    return _NORMAL.inv_cdf(probability)


@lru_cache(maxsize=4_096)
def student_quantile(degrees: float, probability: float) -> float:
    """Return Student's quantile, by Newton's method from the normal one.

    >>> round(student_quantile(9.0, 0.975), 6)
    2.262157
    """
    if math.isnan(degrees):
        return math.nan
    if probability < 0.5:
        return -student_quantile(degrees, 1 - probability)
    if probability == 0.5:
        return 0.0
    z = normal_quantile(probability)
    if degrees >= _LARGE:
        return _corrected(z, degrees)
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2))
    scale /= math.sqrt(degrees * math.pi)
    beyond = 1 - probability
    low, high = 0.0, 2 * z
    while _student_tail(degrees, high) > beyond:
        low, high = high, high * 2
    at = (low + high) / 2
    for _ in range(200):
        excess = _student_tail(degrees, at) - beyond
        low, high = (at, high) if excess > 0 else (low, at)
        density = scale * math.exp(-(degrees + 1) / 2 * math.log1p(at * at / degrees))
        after = at + excess / density
        if not low < after < high:
            after = (low + high) / 2
        if abs(after - at) <= 4e-16 * at:
            return after
        at = after
    return at


def _corrected(z: float, degrees: float) -> float:
    """Correct the normal quantile by the Cornish-Fisher expansion."""
    s = z * z
    terms = (
        (s + 1) / 4,
        ((5 * s + 16) * s + 3) / 96,
        (((3 * s + 19) * s + 17) * s - 15) / 384,
        ((((79 * s + 776) * s + 1482) * s - 1920) * s - 945) / 92_160,
    )
    return z * (1 + sum(term / degrees ** (i + 1) for i, term in enumerate(terms)))


def _student_tail(degrees: float, t: float) -> float:
    """Return the probability above a positive t."""
    return beta_share(degrees / 2, 0.5, degrees / (degrees + t * t), t * t / (degrees + t * t)) / 2


def binomial_quantile(probability: float, n: int, share: float) -> int:
    """Return the smallest k with P(K ≤ k) ≥ probability, for K of n draws.

    >>> binomial_quantile(0.975, 100, 0.95)
    99
    """
    spread = math.sqrt(n * share * (1 - share))
    guess = n * share + normal_quantile(probability) * spread
    low, high = -1, n  # P(K ≤ low) < probability ≤ P(K ≤ high)
    step = 1 + int(spread / 8)
    at = min(max(int(guess), 0), n)
    while high - low > 1:
        if _up_to(at, n, share) >= probability:
            high, at = at, max(at - step, low + 1)
        else:
            low, at = at, min(at + step, high - 1)
        step *= 2
        if step > high - low:
            at = (low + high) // 2
    return high


def _up_to(k: int, n: int, share: float) -> float:
    return 1.0 if k >= n else beta_share(n - k, k + 1, 1 - share, share)


@lru_cache(maxsize=4_096)
def binomial_low(hits: int, n: int, tail: float, own: float) -> float:
    """Return the rate at which more hits, and a part of this many, have the probability `tail`.

    With `own` = 1 it is the lower end of Clopper and Pearson, with ½ that of mid-P.

    >>> round(binomial_low(9, 10, 0.05, 1.0), 4)
    0.6058
    """
    if hits <= 0:
        return 0.0
    if hits >= n:
        return math.exp(math.log(tail / own) / n)
    share = hits / n
    logs = math.lgamma(n + 1) - math.lgamma(hits + 1) - math.lgamma(n - hits + 1)
    low, high = 0.0, share
    at = max(share - 2 * math.sqrt(share * (1 - share) / n), share / 4)
    for _ in range(200):
        here = math.exp(logs + hits * math.log(at) + (n - hits) * math.log1p(-at))
        excess = beta_share(hits + 1, n - hits, at, 1 - at) + own * here - tail
        low, high = (low, at) if excess > 0 else (at, high)
        slope = here * ((1 - own) * (n - hits) / (1 - at) + own * hits / at)
        after = at - excess / slope if slope > 0 else low
        if not low < after < high:
            after = (low + high) / 2
        if abs(after - at) <= 1e-14:
            return after
        at = after
    return at


def beta_share(a: float, b: float, x: float, rest: float) -> float:
    """Return the regularised incomplete beta function at x; `rest` is 1 - x, exactly.

    >>> round(beta_share(2, 3, 0.4, 0.6), 6)
    0.5248
    """
    if x <= 0 or rest <= 0:
        return float(x > 0)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(b, a, rest, x)
    logs = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(logs + a * _log(x, rest) + b * _log(rest, x)) / a
    return front * _fraction(a, b, x)


def _log(x: float, rest: float) -> float:
    return math.log(x) if x < 0.5 else math.log1p(-rest)


def _fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function by Lentz's method."""
    d = 1 / _off_zero(1 - (a + b) * x / (a + 1))
    c, h = 1.0, d
    for m in range(1, 100_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / _off_zero(1 + even * d), _off_zero(1 + even / c)
        h *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / _off_zero(1 + odd * d), _off_zero(1 + odd / c)
        h *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return h


def _off_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
