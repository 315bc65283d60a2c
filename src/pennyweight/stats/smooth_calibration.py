"""The smooth calibration error: how far confidence is from accuracy, without bins.

Residuals are smoothed with a Gaussian kernel that is reflected at 0 and 1. The error is the width
of the kernel at which the mean absolute smoothed residual equals the width itself, so that nothing
has to be chosen (Błasiok and Nakkiran 2023).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from pennyweight.stats.interval import Floats, t_quantile
from pennyweight.stats.resample import CLUSTER, Ends, Sample

CELLS = 1_000
DRAWS = 100
_DECAY = -((np.pi * np.arange(CELLS)) ** 2) / 2


def smooth_error(stated: Floats, correct: Floats) -> float:
    """Return the smooth calibration error of stated probabilities.

    >>> round(smooth_error(np.full(100, 0.9), np.repeat([1.0, 0.0], 50)), 3)
    0.4
    """
    cell = np.minimum((stated * CELLS).astype(int), CELLS - 1)
    return _of_residuals(np.bincount(cell, correct - stated, CELLS) / len(stated))


def _of_residuals(residuals: Floats) -> float:
    from scipy.fft import dct, idct  # noqa: PLC0415 - it takes a while to load

    waves = dct(residuals)  # a reflected Gaussian kernel only shrinks each cosine wave

    def smoothed(width: float) -> float:
        return float(np.abs(idct(waves * np.exp(_DECAY * width**2))).sum())

    low, high = 1 / CELLS, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if smoothed(middle) > middle else (low, middle)
    return min(1.0, smoothed(high))


@dataclass(frozen=True, slots=True)
class SmoothCalibration:
    """An interval by resampling tasks; its lower end without the error that chance alone adds."""

    text: str = "bootstrap over tasks; the lower end without bias"

    def __call__(self, sample: Sample) -> Ends:
        """Return both ends, or None with one task."""
        stated, correct = (pl.col(name) for name in sample.inputs)
        rows = sample.frame.select(CLUSTER, p=stated, y=correct.cast(pl.Float64)).drop_nulls()
        rows = rows.sort("p", "y")  # draws must not depend on the order of records
        rows = rows.sort(pl.col("p", "y").sum().over(CLUSTER), maintain_order=True)
        p, y = rows["p"].to_numpy(), rows["y"].to_numpy()
        _, first, place = np.unique(
            rows[CLUSTER].to_numpy(), return_index=True, return_inverse=True
        )
        task, tasks = first.argsort().argsort()[place], len(first)
        if tasks < 2:
            return None
        rng = np.random.default_rng(sample.seed)
        cell = np.minimum((p * CELLS).astype(int), CELLS - 1)

        def error(weights: Floats, hits: Floats) -> float:
            return _of_residuals(np.bincount(cell, weights * (hits - p), CELLS) / weights.sum())

        ones = np.ones(len(p))
        drawn = [
            error(rng.multinomial(tasks, np.full(tasks, 1 / tasks)).astype(float)[task], y)
            for _ in range(DRAWS)
        ]
        half = float(np.std(drawn)) * t_quantile(np.array([float(tasks)]), sample.confidence).item()
        chance = np.mean([error(ones, (rng.random(len(p)) < p).astype(float)) for _ in range(20)])
        return max(0.0, sample.value - half - float(chance)), min(1.0, sample.value + half)
