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
from pennyweight.stats.resample import BLOCKS, CLUSTER, SLICE, Ends, Sample, drawn_weights

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
    total = np.zeros(CELLS)
    for start in range(0, len(stated), SLICE):
        p, y = stated[start : start + SLICE], correct[start : start + SLICE]
        order = np.lexsort((y, p))  # so that not even rounding depends on the records' order
        total += np.bincount(_cells(p[order]), (y - p)[order], CELLS)
    return float(_of_residuals(total[None] / len(stated))[0])


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
        rows = sample.frame.select(CLUSTER, p=stated, y=correct).drop_nulls()
        tasks = rows[CLUSTER].n_unique() if sample.clustered else rows.height
        if tasks < 2:
            return None
        if tasks <= BLOCKS:
            rows = rows.with_columns(pl.col(CLUSTER).rank("dense") - 1)
        blocks = min(tasks, BLOCKS)
        residuals, sums = np.zeros((blocks, CELLS)), np.zeros(blocks)
        records = np.zeros(blocks, np.int64)
        expected, counts = np.zeros(CELLS), np.zeros(CELLS, np.int64)
        for part in rows.iter_slices(SLICE):  # so that little is held for all records
            one = part.with_columns(pl.col("y").cast(pl.Float64)).sort("p", "y", CLUSTER)
            p, gaps = one["p"].to_numpy(), (one["y"] - one["p"]).to_numpy()
            block = (one[CLUSTER] % BLOCKS).cast(pl.Int64).to_numpy()
            cell = _cells(p)
            places = block * CELLS + cell
            residuals += np.bincount(places, gaps, blocks * CELLS).reshape(blocks, CELLS)
            sums += np.bincount(block, p, blocks)
            records += np.bincount(block, minlength=blocks)
            expected += np.bincount(cell, p, CELLS)
            counts += np.bincount(cell, minlength=CELLS)
        order = np.lexsort((sums, residuals.sum(axis=1)))
        weights = drawn_weights(blocks, sample.seed)[:DRAWS]  # not by the order of records
        sizes = weights @ records[order]
        drawn = _of_residuals(weights @ residuals[order] / sizes[:, None])
        half = drawn.std() * t_quantile(np.array([float(tasks)]), sample.confidence).item()
        chance = _by_chance(expected, counts, sample.seed)
        # The draws have a long upper tail, which a standard deviation alone does not show.
        most = max(sample.value + half, float(np.quantile(drawn, (1 + sample.confidence) / 2)))
        return max(0.0, sample.value - half - chance), min(1.0, most)


def _by_chance(expected: Floats, count: Cells, seed: int) -> float:
    """Return the mean error of outcomes that are as likely as stated, in each cell on average."""
    share = (expected / np.maximum(count, 1)).clip(0, 1)
    hits = np.random.default_rng(seed).binomial(count, share, (CHANCES, CELLS))
    return float(_of_residuals((hits - expected) / count.sum()).mean())
