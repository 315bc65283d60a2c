"""The smooth calibration error: how far confidence is from accuracy, without bins.

Residuals are smoothed with a Gaussian kernel that is reflected at 0 and 1. The error is the width
of the kernel at which the mean absolute smoothed residual equals the width itself, so that nothing
has to be chosen (Błasiok and Nakkiran 2023).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pennyweight.stats.interval import Floats, t_quantile
from pennyweight.stats.resample import BLOCKS, CLUSTER, Ends, Sample, drawn_weights

Cells = NDArray[np.int64]

CELLS = 1_000
NARROWEST = 2 / CELLS
"""The smallest width of the kernel: the cells do not show a narrower one as it is."""
DRAWS = 100
CHANCES = 20
"""How often outcomes are drawn that are as likely as stated."""
_DECAY = -((np.pi * np.arange(CELLS + 1)) ** 2) / 2


def smooth_error(stated: Floats, correct: Floats) -> float:
    """Return the smooth calibration error of stated probabilities.

    >>> round(smooth_error(np.full(100, 0.9), np.repeat([1.0, 0.0], 50)), 3)
    0.4
    """
    order = np.lexsort((correct, stated))  # so that not even rounding depends on the records' order
    stated, correct = stated[order], correct[order]
    residuals = np.bincount(_cells(stated), correct - stated, CELLS) / len(stated)
    return float(_of_residuals(residuals[None])[0])


def _cells(stated: Floats) -> Cells:
    cells: Cells = np.minimum((stated * CELLS).astype(np.int64), CELLS - 1)
    return cells


def _of_residuals(residuals: Floats) -> Floats:
    """Return the errors of several sets of residuals, one set a row and one cell a column."""
    both = np.concatenate([residuals, residuals[:, ::-1]], axis=1)
    waves = np.fft.rfft(both)  # a reflected Gaussian kernel only shrinks each wave

    def smoothed(width: Floats) -> Floats:
        left = np.fft.irfft(waves * np.exp(_DECAY * width[:, None] ** 2), 2 * CELLS)
        found: Floats = np.abs(left).sum(axis=1) / 2
        return found

    low, high = np.full(len(both), NARROWEST), np.ones(len(both))
    for _ in range(12):
        middle = (low + high) / 2
        wider = smoothed(middle) > middle
        low, high = np.where(wider, middle, low), np.where(wider, high, middle)
    return np.minimum(1.0, smoothed(high))


@dataclass(frozen=True, slots=True)
class SmoothCalibration:
    """An interval by resampling tasks; its lower end without the error that chance alone adds."""

    text: str = "bootstrap over tasks; the lower end without bias"

    def __call__(self, sample: Sample) -> Ends:
        """Return both ends, or None with one task."""
        stated, correct = (pl.col(name) for name in sample.inputs)
        rows = sample.frame.select(CLUSTER, p=stated, y=correct.cast(pl.Float64)).drop_nulls()
        rows = rows.sort("p", "y", CLUSTER)
        tasks = rows[CLUSTER].n_unique()
        if tasks < 2:
            return None
        p, gaps = rows["p"].to_numpy(), (rows["y"] - rows["p"]).to_numpy()
        cluster = rows[CLUSTER]
        group = cluster % BLOCKS if tasks > BLOCKS else cluster.rank("dense") - 1
        block = group.cast(pl.Int64).to_numpy()
        blocks, cell = min(tasks, BLOCKS), _cells(p)
        residuals = np.bincount(block * CELLS + cell, gaps, blocks * CELLS).reshape(blocks, CELLS)
        order = np.lexsort((np.bincount(block, p, blocks), residuals.sum(axis=1)))
        weights = drawn_weights(blocks, sample.seed)[:DRAWS]  # not by the order of records
        sizes = weights @ np.bincount(block, minlength=blocks)[order]
        drawn = _of_residuals(weights @ residuals[order] / sizes[:, None])
        half = drawn.std() * t_quantile(np.array([float(tasks)]), sample.confidence).item()
        chance = _by_chance(p, cell, sample.seed)
        return max(0.0, sample.value - half - chance), min(1.0, sample.value + half)


def _by_chance(stated: Floats, cell: Cells, seed: int) -> float:
    """Return the mean error of outcomes that are as likely as stated, in each cell on average."""
    expected, count = np.bincount(cell, stated, CELLS), np.bincount(cell, minlength=CELLS)
    share = (expected / np.maximum(count, 1)).clip(0, 1)
    hits = np.random.default_rng(seed).binomial(count, share, (CHANCES, CELLS))
    return float(_of_residuals((hits - expected) / len(stated)).mean())
