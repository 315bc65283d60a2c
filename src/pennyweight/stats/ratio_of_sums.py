"""The interval of a ratio of two sums over tasks, such as cost per pass.

A ratio r is in the interval if the mean of top − r · bottom may be 0 (Fieller's method), judged by
the interval of a skewed mean.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from pennyweight.stats.interval import t_quantile, z_quantile
from pennyweight.stats.resample import CLUSTER, SLICE, Ends, Sample
from pennyweight.stats.skewness import LONG_TAIL, MAX_EXPONENT, SEEN

FARTHEST = 1e9
"""A ratio this many times the observed one counts as infinite."""
TURNS = 80


@dataclass(frozen=True, slots=True)
class RatioOfSums:
    """Interval of a ratio of sums; `parts` returns top and bottom, null where unused.

    A part that is a `share` lies between 0 and 1; the other one has a long tail. If the share does
    not vary, it gets the variance of one more hit and one more miss.
    """

    parts: Callable[..., tuple[pl.Expr, pl.Expr]]
    share: str
    """Which part is a share: `top` or `bottom`."""
    text: str = "t, corrected for skewness, of top − ratio · bottom, clustered by task"

    def __call__(self, sample: Sample) -> Ends:
        """Return both ends, or None with one task."""
        top, bottom = self.parts(*(pl.col(n) for n in sample.inputs), **sample.options)
        key = [CLUSTER] if sample.clustered else []  # which takes as much memory as a part
        rows = sample.frame.select(*key, x=top.cast(pl.Float64), y=bottom.cast(pl.Float64))
        rows = rows.drop_nulls()
        if sample.clustered:
            by_task = rows.group_by(CLUSTER, maintain_order=True)
            rows = by_task.agg(pl.col("x", "y").sum(), n=pl.len().cast(pl.Float64))
        if rows.height < 2:
            return None
        sizes = rows["n"].to_numpy() if sample.clustered else None
        records = float(rows.height if sizes is None else sizes.sum())
        kish = max(records if sizes is None else records**2 / (sizes @ sizes), 2.0)
        means = float(rows["x"].sum()) / records, float(rows["y"].sum()) / records
        if means[1] <= _NOTHING:
            return self._without_bottom(means[0], kish, sample.confidence)
        if means[0] <= _NOTHING:
            flat = (0.0, means[0] / means[1])
            return flat if self.share == "bottom" else self._flat(means[1], kish, sample)
        place = 0 if self.share == "top" else 1
        spread = _Spread.of(rows, records, means).with_least(place, means[place], records, kish)
        low, high = spread.ends(self.share, kish, sample.confidence)
        ratio = means[0] / means[1]
        return ratio * low, ratio * high

    def _without_bottom(self, top: float, tasks: float, confidence: float) -> Ends:
        """Return the least that one hit costs, if there was none."""
        if self.share == "top":
            return None
        return top / _most(tasks, confidence), math.inf

    def _flat(self, bottom: float, tasks: float, sample: Sample) -> Ends:
        """Return the interval of a share of 0, per unit of the bottom."""
        return 0.0, _most(tasks, sample.confidence) / bottom


_NOTHING = math.sqrt(sys.float_info.min)
"""The reciprocal of a mean this small cannot be squared."""


def _most(tasks: float, confidence: float) -> float:
    """Return how large a rate may be if none of the tasks was a hit: exactly, as gates use it."""
    return 1 - math.exp(math.log((1 - confidence) / 2) / tasks)


@dataclass(frozen=True, slots=True)
class _Spread:
    """Sums of products of what both means lose without one task, as shares of the means."""

    squares: tuple[float, float, float]
    cubes: tuple[float, float, float, float]
    tasks: int

    @classmethod
    def of(cls, tasks: pl.DataFrame, records: float, means: tuple[float, float]) -> _Spread:
        """Add the products up slice by slice, so that they are not held for all tasks."""
        squares, cubes = np.zeros(3), np.zeros(4)
        for part in tasks.iter_slices(SLICE):
            size = part["n"].to_numpy() if "n" in part.columns else 1.0
            x, y = (
                (part[name].to_numpy() - size * mean) / (records - size) / mean
                for name, mean in zip("xy", means, strict=True)
            )
            xx, yy = x * x, y * y
            squares += [x @ x, x @ y, y @ y]
            cubes += [xx @ x, xx @ y, x @ yy, yy @ y]
        a, b, c, d = cubes.tolist()
        xx_, xy_, yy_ = squares.tolist()
        return cls((xx_, xy_, yy_), (a, b, c, d), tasks.height)

    def with_least(self, place: int, rate: float, records: float, tasks: float) -> _Spread:
        """Give a share at least the variance that one more hit and one more miss would show.

        If the share varies, its records are as dependent as its variance shows; if not, fully.
        """
        rate, found = min(rate, 1.0), self.squares[2 * place]
        single = (1 - rate) / rate / max(records - 1, 1)
        varies = found > 0 and single > 0
        size = records if varies else tasks
        smooth = (rate * size + 1) / (size + 2)
        least = smooth * (1 - smooth) / size / rate**2 * (found / single if varies else 1.0)
        squares = list(self.squares)
        squares[2 * place] = max(found, least)
        return _Spread((squares[0], squares[1], squares[2]), self.cubes, self.tasks)

    def ends(self, share: str, tasks: float, confidence: float) -> tuple[float, float]:
        """Return the ends of the ratio, as multiples of the observed one."""
        t, z = float(t_quantile(np.array([tasks]), confidence)[0]), z_quantile(confidence)

        def inside(r: float) -> bool:
            return abs(1 - r) <= t * self._reach(r, z, share)

        high = math.inf if inside(FARTHEST) else _border(inside, FARTHEST)
        low = 0.0 if inside(1 / FARTHEST) else _border(inside, 1 / FARTHEST)
        return low, high

    def _reach(self, r: float, z: float, share: str) -> float:
        """Return the error of 1 − r, stretched by the skewness on the side of 0."""
        xx, xy, yy = self.squares
        square = max(xx - 2 * r * xy + r * r * yy, 1e-200)  # its power must not be 0
        scale = (self.tasks - 1) / self.tasks
        a, b, c, d = self.cubes
        skew = (a - 3 * r * b + 3 * r * r * c - r**3 * d) / square**1.5
        tail = max(0.0, SEEN * skew if r > 1 else -SEEN * skew)
        long = (r > 1) == (share == "bottom")
        own = (xx if share == "bottom" else r * r * yy) * scale
        if long:
            relative = math.sqrt(own) if share == "bottom" else math.sqrt(yy * scale)
            tail = max(tail, LONG_TAIL * relative * (own / (square * scale)) ** 1.5)
        x = min(2 / 3 * z * tail, MAX_EXPONENT)
        return math.sqrt(square * scale) * (math.expm1(x) / x if x > 1e-9 else 1.0)


def _border(inside: Callable[[float], bool], outside: float) -> float:
    """Find the border between 1, which is inside, and a ratio that is outside."""
    within = 1.0
    for _ in range(TURNS):
        middle = math.sqrt(within * outside)
        within, outside = (middle, outside) if inside(middle) else (within, middle)
    return within
