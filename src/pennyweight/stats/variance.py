"""Where the variance of repeated runs comes from: tasks, attempts at a task, judges of an attempt.

A random-effects analysis of variance by the method of moments, which allows unequal numbers of
attempts and judges. It needs no distribution: the values may be scores, or true and false.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pennyweight.stats.quantiles import student_quantile

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

FEWEST_TASKS = 4
"""With fewer tasks there is no interval of the intraclass correlation."""
_NOISE = 1e-12
"""A part of the variance this small beside the others comes from rounding alone."""


@dataclass(frozen=True, slots=True)
class VarianceSplit:
    """The variance of one value: between tasks, between attempts at a task, between judges.

    A component that the data estimate below zero is zero. `judge` is None if no attempt has the
    scores of several judges; then `attempt` contains the judges' part.
    """

    task: float
    attempt: float
    judge: float | None
    tasks: int
    attempts: int
    """How many attempts there are at all tasks together."""
    judges: float = 1.0
    """How many judges scored an attempt, on average."""
    low: float | None = None
    high: float | None = None
    """The ends of the interval of the intraclass correlation."""

    @property
    def total(self) -> float:
        """The variance of one judge's score of one attempt at one task."""
        return self.task + self.attempt + (self.judge or 0.0)

    @property
    def icc(self) -> float | None:
        """The intraclass correlation: the share of the tasks; None if nothing varies."""
        return self.share(self.task)

    def share(self, component: float) -> float | None:
        """Return a component as a share of the whole; None if nothing varies."""
        return component / self.total if self.total > 0 else None

    def error(self, tasks: int, attempts: float = 1, judges: float = 1) -> float:
        """Return the standard error of the mean over this many tasks, attempts at each, judges.

        >>> round(VarianceSplit(0.16, 0.09, None, 50, 150).error(tasks=100, attempts=3), 4)
        0.0436
        """
        each = self.task + (self.attempt + (self.judge or 0.0) / judges) / attempts
        return math.sqrt(each / tasks)

    @property
    def from_repeats(self) -> float | None:
        """The share of the mean's own variance that endless attempts at each task would remove."""
        now = self.error(self.tasks, self.attempts / self.tasks, self.judges) ** 2
        return 1 - self.error(self.tasks, math.inf) ** 2 / now if now > 0 else None


def variance_split(
    values: Floats, task: Codes, attempt: Codes | None = None, confidence: float = 0.95
) -> VarianceSplit | None:
    """Split the variance of values; None unless there are two tasks and one has two attempts.

    `task` numbers the task of each value from 0. `attempt` numbers its attempt, from 0 over all
    tasks, if attempts have several values: those of their judges.

    >>> split = variance_split(np.array([1.0, 1.0, 0.0, 1.0]), np.array([0, 0, 1, 1]))
    >>> split.task, split.attempt
    (0.0, 0.25)
    """
    values = values - values.mean() if len(values) else values
    own = np.arange(len(values)) if attempt is None else attempt
    nested, whole = _Sums.of(values, own), _Sums.of(values, task)
    judged = len(nested.count) < len(values)
    of_task = np.zeros(len(nested.count), np.int64)
    of_task[own] = task
    tasks, attempts, n = len(whole.count), len(nested.count), float(len(values))
    if tasks < 2 or attempts == tasks:
        return None
    spread = np.bincount(of_task, nested.count**2) / whole.count
    between = whole.squares.sum()
    judge = (np.square(values).sum() - nested.squares.sum()) / (n - attempts) if judged else 0.0
    inner = (n - spread.sum()) / (attempts - tasks)
    within = (nested.squares.sum() - between) / (attempts - tasks)
    each = max(0.0, (within - judge) / inner)
    outer = (n - np.square(whole.count).sum() / n) / (tasks - 1)
    crossed = (spread.sum() - np.square(nested.count).sum() / n) / (tasks - 1)
    mean_square = (between - values.sum() ** 2 / n) / (tasks - 1)
    task_part = max(0.0, (mean_square - judge - crossed * each) / outer)
    if task_part < _NOISE * (each + judge):
        task_part = 0.0
    ends = None if judged else _icc_interval(values, task, whole, confidence)
    low, high = ends or (None, None)
    parts = float(task_part), float(each), float(judge) if judged else None
    return VarianceSplit(*parts, tasks, attempts, n / attempts, low, high)


@dataclass(frozen=True, slots=True)
class _Sums:
    """For each task or attempt, how many values it has, and the square of their sum by number."""

    count: Floats
    total: Floats

    @classmethod
    def of(cls, values: Floats, codes: Codes) -> _Sums:
        count, total = np.bincount(codes), np.bincount(codes, values)
        return cls(count.astype(np.float64), total.astype(np.float64))

    @property
    def squares(self) -> Floats:
        return self.total**2 / self.count


def _icc_interval(
    values: Floats, task: Codes, whole: _Sums, confidence: float
) -> tuple[float, float] | None:
    """Return the jackknife interval over tasks, on the logarithm of the ratio of mean squares.

    Unlike the usual one from the F distribution it holds for rates as well: with 100 tasks, 5
    attempts at each and a correlation of 0.85 that one contains the truth in 58 to 75 % of cases.
    """
    tasks = len(whole.count)
    if tasks < FEWEST_TASKS:
        return None
    squares = np.bincount(task, np.square(values))
    columns = np.stack([whole.count, whole.count**2, whole.total, whole.squares, squares])
    every = columns.sum(axis=1, keepdims=True)
    ratio, size = _mean_squares(every, tasks)
    left, _ = _mean_squares(every - columns, tasks - 1)
    if not (np.isfinite(ratio).all() and np.isfinite(left).all()):
        return None
    error = math.sqrt((tasks - 1) / tasks * np.square(left - left.mean()).sum())
    half = student_quantile(tasks - 1.0, 0.5 + confidence / 2) * error
    ends = np.exp(ratio.item() + np.array([-half, half]))
    low, high = np.clip((ends - 1) / (ends + size.item() - 1), 0, 1).tolist()
    return (low, high) if high > 0 else None  # fewer agreements than by chance: it tells nothing


def _mean_squares(sums: Floats, tasks: int) -> tuple[Floats, Floats]:
    """Return the logarithm of the ratio of mean squares, and the effective attempts at a task."""
    n, square, total, between, values = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        outer = (between - total**2 / n) / (tasks - 1)
        within = (values - between) / (n - tasks)
        within = np.where(within > 1e-12 * values / n, within, 0.0)
        return np.log(outer / within), (n - square / n) / (tasks - 1)
