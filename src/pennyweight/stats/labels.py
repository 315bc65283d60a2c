"""What labels by people say about automatic verdicts: agreement, and a corrected share.

Each record has a verdict of a rule or judge, and some records have a label as well. Records of one
task are not independent, so errors are those of whole tasks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pennyweight.stats.interval import Floats, rate_interval, z_quantile
from pennyweight.stats.paired import tango
from pennyweight.stats.resample import CLUSTER, Sample

Tasks = NDArray[np.int64]
"""The task of each record, counted from 0."""
Ends = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often verdicts equal labels: the share, and Cohen's kappa, with intervals.

    Kappa is None where chance alone would agree always: one of the two values never occurs.
    """

    records: int
    share: float | None
    interval: Ends
    kappa: float | None
    kappa_interval: Ends


@dataclass(frozen=True, slots=True)
class CorrectedShare:
    """A share of automatic verdicts, corrected by labels of some of the records."""

    value: float
    interval: Ends
    judged: float
    """The share without correction."""
    records: int
    labelled: int
    to_halve: int | None
    """How many more labels would halve the interval; None if no number of them can."""


@dataclass(frozen=True, slots=True)
class CorrectedByLabels:
    """The interval of a share that labels correct; the metric reads verdicts, then labels."""

    text: str = "Wilson's of the labels, joined with that of all verdicts and Tango's of both"

    def __call__(self, sample: Sample) -> Ends:
        """Return both ends; None with one task, or without labels of two."""
        verdict, label = sample.inputs
        rows = sample.frame.drop_nulls(verdict)
        verdicts, labels = (rows[n].cast(pl.Float64).fill_null(np.nan) for n in (verdict, label))
        tasks = rows[CLUSTER].rank("dense").cast(pl.Int64).to_numpy()
        found = corrected_share(verdicts.to_numpy(), labels.to_numpy(), tasks, sample.confidence)
        return found.interval if found else None


def agreement(verdicts: Floats, labels: Floats, tasks: Tasks, confidence: float) -> Agreement:
    """Compare verdicts and labels, which are 0 or 1, on the same records.

    Kappa is 1 − (disagreement) / (disagreement by chance), so the interval of the disagreement,
    divided by that of chance, is its interval: it holds where all agree and an error from the
    table of counts would be 0.

    >>> found = agreement(np.array([1.0, 1, 0, 0]), np.array([1.0, 0, 0, 0]), np.arange(4), 0.95)
    >>> found.share, found.kappa
    (0.75, 0.5)
    """
    n = len(labels)
    if not n:
        return Agreement(0, None, None, None, None)
    apart = (verdicts != labels).astype(np.float64)
    wrong = float(apart.mean())
    ends = _rate_ends(apart, tasks, confidence)
    a, b = float(verdicts.mean()), float(labels.mean())
    chance = a * (1 - b) + b * (1 - a)
    kappa = 1 - wrong / chance if chance > 0 else None
    return Agreement(
        n,
        1 - wrong,
        ends and (1 - ends[1], 1 - ends[0]),
        kappa,
        (ends and chance > 0 and (max(-1.0, 1 - ends[1] / chance), 1 - ends[0] / chance)) or None,
    )


def corrected_share(
    verdicts: Floats, labels: Floats, tasks: Tasks, confidence: float
) -> CorrectedShare | None:
    """Correct the share of verdicts by labels (NaN where there is none): prediction-powered.

    The value is the labels' own share, plus λ times how far the verdicts of the other records
    differ from those of the labelled ones, which must be a random part of them. λ is tuned
    (Angelopoulos, Duchi and Zrnic 2023): 0 where verdicts say nothing about labels, so a judge that
    guesses costs no more than it brings.

    The value is also a mean of two estimates: the labels alone, and the mean verdict moved by the
    mean of (label − verdict). The interval joins Wilson's, that of the mean verdict and Tango's, so
    it does not shrink to nothing where all labels agree. It contains the interval that labels of
    all records would have: fewer labels cannot say more.
    """
    known = ~np.isnan(labels)
    n, every = int(known.sum()), len(verdicts)
    if not n:
        return None
    said, own, judged = labels[known], tasks[known], verdicts[known]
    apart = said - judged
    power = _power(said, judged, verdicts)
    mean, shift, plain = float(verdicts.mean()), float(apart.mean()), float(said.mean())
    value = min(max(power * (mean + shift) + (1 - power) * plain, 0.0), 1.0)
    parts = _rate_ends(verdicts, tasks, confidence), _rate_ends(said, own, confidence)
    if parts[0] is None or parts[1] is None:
        return CorrectedShare(value, None, mean, every, n, None)
    more, less = float((apart > 0).mean()), float((apart < 0).mean())
    moved = tango(more, less, n / _crowding(apart, own), z_quantile(confidence))
    of_all = power * _distances(mean, parts[0])
    of_labels = _joined(
        power * _distances(shift, moved),
        (1 - power) * _distances(plain, parts[1]),
        _correlation(said, apart),
    )
    weighed = said - power * judged
    together = _correlation(judged, weighed) * math.sqrt(n / every)
    below, above = _joined(of_all, of_labels, together)
    least = _all_labelled(value, verdicts, tasks, confidence)
    low, high = max(min(value - below, least[0]), 0.0), min(max(value + above, least[1]), 1.0)
    halved = (high - low) / 2 >= least[1] - least[0]
    halves = float(of_all.mean()), float(of_labels.mean())
    to_halve = _to_halve(*halves, together, n, every, (high - low) / 4) if halved else None
    return CorrectedShare(value, (low, high), mean, every, n, to_halve)


def _power(labels: Floats, judged: Floats, verdicts: Floats) -> float:
    """Return the weight of the verdicts that makes the variance least: λ · all / unlabelled."""
    if len(labels) == len(verdicts):
        return 0.0
    spread = float(verdicts.var(ddof=1))
    both = float(np.mean((labels - labels.mean()) * (judged - judged.mean())))
    return min(max(both / spread, 0.0), 1.0) if spread > 0 else 0.0


def _distances(value: float, ends: tuple[float, float]) -> Floats:
    """Return how far an interval reaches below and above a value."""
    return np.array([value - ends[0], ends[1] - value])


def _all_labelled(
    value: float, verdicts: Floats, tasks: Tasks, confidence: float
) -> tuple[float, float]:
    """Return the interval if all records were labelled and the value stayed."""
    n, groups = len(verdicts), len(np.unique(tasks))
    error = math.sqrt(value * (1 - value) / n * _crowding(verdicts, tasks))
    rate, spread, size, clusters = np.array([[value], [error], [n], [groups]], float)
    low, high = rate_interval(rate, spread, size, clusters, confidence)
    return float(low[0]), float(high[0])


def _rate_ends(values: Floats, tasks: Tasks, confidence: float) -> Ends:
    """Return the interval of a rate whose records belong to tasks."""
    groups = len(np.unique(tasks))
    error = math.sqrt(_variance(values, tasks))
    rate, spread, n, clusters = np.array([[values.mean()], [error], [len(values)], [groups]], float)
    low, high = rate_interval(rate, spread, n, clusters, confidence)
    return None if math.isnan(low[0]) else (float(low[0]), float(high[0]))


def _variance(values: Floats, tasks: Tasks) -> float:
    """Return the variance of a mean over whole tasks."""
    _, place = np.unique(tasks, return_inverse=True)
    sums = np.bincount(place, weights=values - values.mean())
    groups = len(sums)
    return float(np.square(sums).sum()) / len(values) ** 2 * groups / max(groups - 1, 1)


def _crowding(values: Floats, tasks: Tasks) -> float:
    """Return by which factor records of one task are worth less than independent ones."""
    alone = _variance(values, np.arange(len(values)))
    return max(1.0, _variance(values, tasks) / alone) if alone > 0 else _most_of_one(tasks)


def _most_of_one(tasks: Tasks) -> float:
    return len(tasks) / len(np.unique(tasks))


def _correlation(a: Floats, b: Floats) -> float:
    spread = float(a.std() * b.std())
    return float(np.mean((a - a.mean()) * (b - b.mean()))) / spread if spread > 0 else 0.0


def _joined(a: Floats, b: Floats, correlation: float) -> Floats:
    """Return the distances of a sum's ends from its value (the method of variance estimates)."""
    joined: Floats = np.sqrt(np.maximum(a * a + b * b + 2 * correlation * a * b, 0.0))
    return joined


def _to_halve(
    of_all: float, of_labels: float, together: float, n: int, every: int, aim: float
) -> int | None:
    """Return how many more labels would halve the interval: `aim` is half of its half.

    The part of the labels shrinks with the root of their number; the rest stays.
    """
    joint = 2 * together * of_all * of_labels  # the covariance does not depend on the labels
    left = aim**2 - of_all**2 - joint
    needed = math.ceil(of_labels**2 * n / left - 1e-9) if left > 0 else math.inf
    return int(needed) - n if needed <= every else None
