"""The risk–coverage curve: the error rate among the most confident answers, at every coverage.

Records of equal confidence share their errors, since their order is arbitrary. What is needed for
each record is computed slice by slice, so that little is held for all records at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pennyweight.stats.interval import Floats
from pennyweight.stats.resample import SLICE

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """The levels of confidence, from the highest on, with their records and error rates."""

    levels: Floats
    """Negative, so that they rise."""
    counts: Counts
    rates: Floats

    @classmethod
    def of(cls, stated: Floats, hits: Floats) -> RiskCoverage:
        """Read the curve from stated probabilities and outcomes, which are 0 or 1."""
        ordered, wrong = np.sort(-stated), np.sort(-stated[hits == 0])
        starts = np.append(0, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)
        levels, counts = ordered[starts], np.diff(np.append(starts, len(ordered)))
        errors = np.searchsorted(wrong, levels, "right") - np.searchsorted(wrong, levels, "left")
        return cls(levels, counts, errors / counts)

    def area(self) -> float:
        """Return the mean error rate over all coverages."""
        total = before = 0.0
        for ranks, place in self._slices():
            errors = before + self.rates[place].cumsum()
            total += float((errors / ranks).sum())
            before = errors[-1]
        return total / int(self.counts.sum())

    def moved(self, stated: Floats, hits: Floats) -> Floats:
        """Return how far each record moves the area: Σ_{k ≥ rank} (its error − error_k) / k."""
        later, weights = np.zeros(len(self.levels)), np.zeros(len(self.levels))
        after = [0.0, 0.0]
        for ranks, place in reversed(list(self._slices())):
            first = place[0]
            ones = np.ones(len(place))
            for at, (total, x) in enumerate(((later, self.rates[place]), (weights, ones))):
                rest = after[at] + (x / ranks)[::-1].cumsum()[::-1]
                sums = np.bincount(place - first, rest)
                total[first : first + len(sums)] += sums
                after[at] = rest[0]
        later, weights = later / self.counts, weights / self.counts
        found = np.empty(len(stated))
        for start in range(0, len(stated), SLICE):
            part = slice(start, start + SLICE)
            place = np.searchsorted(self.levels, -stated[part])
            found[part] = weights[place] * (1 - hits[part]) - later[place]
        return found

    def _slices(self) -> Iterator[tuple[Counts, Counts]]:
        """Yield ranks, and the level of confidence that each of them has."""
        ends = self.counts.cumsum()
        for start in range(0, int(ends[-1]), SLICE):
            ranks = np.arange(start + 1, min(start + SLICE, int(ends[-1])) + 1)
            yield ranks, np.searchsorted(ends, ranks)
