"""Records as they would typically be, to see what intervals and gates make of so many tasks."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from pennyweight.catalogue import METRICS
from pennyweight.scoring.estimates import estimates
from pennyweight.scoring.groups import GROUP, cluster
from pennyweight.stats.paired import Kind
from pennyweight.stats.sample_size import fewest
from pennyweight.stats.variation import Variation

STAND_INS: dict[Kind, tuple[str, str]] = {
    "rate": ("pass_rate", "passed"),
    "score": ("impl_rate_mean", "impl_rate"),
    "number": ("cost_usd_mean", "cost_usd"),
}
"""For each kind of values, a metric that is their mean, and its column."""
SHARES = (np.arange(9) + 0.5) / 9
"""The quantiles over which the width of an interval is averaged."""
SHIFTS = SHARES[[4, 0, 7, 2, 5, 8, 3, 6, 1]].tolist()
"""The shift of each of these samples, so that their passes are not all rounded alike."""
MOST_ROWS = 30_000
"""With more records than this, the width of an interval falls with the square root of tasks."""


def typical_records(
    variation: Variation, tasks: int, runs: int, shift: float = 0.5, group: int = 0
) -> pl.DataFrame:
    """Return measured records with the values that this many tasks would typically have.

    Passes have a record for each attempt; other values only enter as the mean of a task.
    """
    values = variation.typical(tasks, runs, shift)
    _, column = STAND_INS[variation.kind]
    names = pl.Series("task_id", np.arange(tasks)).cast(pl.String)
    if variation.kind == "rate":
        passes = np.rint(values * runs).astype(np.int64)
        single = (np.arange(runs) < passes[:, None]).ravel()
        frame = pl.DataFrame({"task_id": names.gather(np.repeat(np.arange(tasks), runs))})
        frame = frame.with_columns(pl.Series(column, single))
    else:
        frame = pl.DataFrame({"task_id": names, column: values})
    return frame.with_columns(
        cluster(),
        pl.lit("ok").alias("status"),
        pl.lit(group, dtype=pl.UInt32).alias(GROUP),
    )


def width(variation: Variation, tasks: int, runs: int, confidence: float) -> float:
    """Return how wide the interval of the mean is on average.

    It is averaged over the likely means of a sample; with many tasks these are all nearly the same.
    """
    if tasks < 2:
        return math.inf
    each = runs if variation.kind == "rate" else 1
    used = min(tasks, max(MOST_ROWS // each, 2))
    samples = [(variation, 0.5)]
    if used * each * len(SHARES) <= MOST_ROWS and variation.kind != "number":
        means = np.clip(variation.likely_means(used, runs, SHARES), 1e-9, 1 - 1e-9).tolist()
        samples = [(variation.at(mean), shift) for mean, shift in zip(means, SHIFTS, strict=True)]
    frame = pl.concat(
        typical_records(sample, used, runs, shift, group)
        for group, (sample, shift) in enumerate(samples)
    )
    name, _ = STAND_INS[variation.kind]
    found = [e[name] for e in estimates(frame, len(samples), [METRICS[name]], {}, confidence, 0)]
    widths = [
        e.high - e.low if isinstance(e.low, float) and isinstance(e.high, float) else math.inf
        for e in found
    ]
    return sum(widths) / len(widths) * math.sqrt(used / tasks)


def tasks_for_width(
    variation: Variation, wanted: float, runs: int, confidence: float
) -> int | None:
    """Return how many tasks give an interval of the mean that is on average at most this wide."""
    return fewest(lambda tasks: width(variation, tasks, runs, confidence) <= wanted)
