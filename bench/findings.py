"""What a simulation found: an observed rate, its Monte-Carlo error, and what was promised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

ERRORS = 2.0
"""A row misses its bound only if it is worse by more than this many Monte-Carlo errors."""


@dataclass(frozen=True)
class Finding:
    """One row of the table."""

    section: str
    what: str
    """The metric, test or gate."""
    world: str
    """How its data are drawn."""
    size: str
    """Tasks, or tasks × attempts."""
    rate: float
    """The observed share of data sets: intervals that hold the truth, false alarms, …"""
    error: float
    """The Monte-Carlo standard error of the rate; 0 if it was computed exactly."""
    stated: float
    low: float
    high: float
    """The rate must lie between these bounds."""
    sets: int
    width: float | None = None
    """The median width of the intervals, as a multiple of the ideal width."""
    widest: float | None = None

    @property
    def slack(self) -> float:
        return ERRORS * self.error

    @property
    def met(self) -> bool:
        wide = self.width is not None and self.widest is not None and self.width > self.widest
        return self.low - self.slack <= self.rate <= self.high + self.slack and not wide

    @property
    def bound(self) -> str:
        """What is accepted, in words."""
        parts = []
        if self.low > 0:
            parts.append(f"≥ {100 * self.low:g} %")
        if self.high < 1:
            parts.append(f"≤ {100 * self.high:g} %")
        if self.widest is not None:
            parts.append(f"width ≤ {self.widest:g}")
        return ", ".join(parts)

    @property
    def observed(self) -> str:
        """The rate with its error, in percent."""
        return f"{100 * self.rate:.1f} ± {100 * self.error:.1f} %"

    def __str__(self) -> str:
        width = "" if self.width is None else f"{self.width:.2f}"
        named = f"{self.what}; {self.world}; {self.size}"
        return f"{self.observed:>14}{width:>7}  {self.bound:<24}{named}"

    def to_dict(self) -> dict[str, object]:
        numbers = {"rate": round(self.rate, 5), "error": round(self.error, 5)}
        if self.width is not None:
            numbers["width"] = round(self.width, 4)
        return asdict(self) | numbers | {"met": self.met}


def share(found: NDArray[np.bool_] | Sequence[bool]) -> tuple[float, float]:
    """Return the share of data sets, and its standard error; never 0 for a simulation."""
    count = len(found)
    rate = float(np.mean(found)) if count else math.nan
    likely = (rate * count + 1) / (count + 2)
    return rate, math.sqrt(likely * (1 - likely) / max(count, 1))
