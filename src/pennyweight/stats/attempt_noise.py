"""Single attempts of both sides: how much chance alone moves a task's difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pennyweight.stats.interval import Floats


@dataclass(frozen=True, slots=True)
class Tries:
    """Every attempt of both sides, unit by unit; within a unit, the first side's come first.

    A unit is a task in one configuration; a task's difference is the mean over its units.
    """

    values: Floats
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    tasks: NDArray[np.int64]
    """The task of each unit, counted from 0."""

    @property
    def noise(self) -> Floats:
        """The variance of each task's difference that attempts alone cause."""
        counts = np.stack([self.first, self.second], axis=1).ravel()
        split = np.cumsum(counts) - counts
        means = np.add.reduceat(self.values, split) / counts
        apart = np.square(self.values - np.repeat(means, counts))
        every = self.first + self.second
        within = np.add.reduceat(apart, split[::2]) / np.maximum(every - 2, 1)
        units = within * (1 / self.first + 1 / self.second)
        held = np.bincount(self.tasks).astype(np.float64)
        added: Floats = np.bincount(self.tasks, weights=units) / held**2
        return added
