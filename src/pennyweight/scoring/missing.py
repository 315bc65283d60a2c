"""Missing results: attempts that ended in an error or have no verdict, and what they could change.

Estimates leave them out. A statement about sides has to hold whatever these results would have
been: a comparison is made again as if each of them had counted for one side and against the other,
and a gate as if each had ended well, or badly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from pennyweight.define import Metric

BEST = {
    "passed": (pl.Boolean, True),
    "scenario_score": (pl.Float64, 1.0),
    "impl_rate": (pl.Float64, 1.0),
    "composite_score": (pl.Float64, 1.0),
    "quality": (pl.Float64, 1.0),
}
"""The best value of each measure of a verdict; the worst is 0 or False."""

WAITING = ("undecided", "judge_scores")
"""The columns that show which attempts wait for a verdict."""


@dataclass(frozen=True, slots=True)
class MissingResults:
    """The results that two sides lack on the tasks that both tried, and what they could change."""

    a: int
    b: int
    errors: int
    """How many of them ended in an error; the others have no verdict."""
    low: float
    """The difference if every missing result counts for the first side and against the second."""
    high: float
    """The difference if every missing result counts against the first side and for the second."""
    p: float
    """The p-value of the observed direction where the missing results speak against it."""
    p_adjusted: float = 1.0
    """The same, corrected as that of the pair."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        counts = {name: getattr(self, name) for name in ("a", "b", "errors")}
        bounds = [self.low, self.high]
        return {**counts, "bounds": bounds, "p": self.p, "p_adjusted": self.p_adjusted}


def undecided(metric: Metric) -> pl.Expr:
    """Select the attempts without an error that a metric leaves out for lack of a verdict.

    A check raised an error, a review is missing, or a judge's reply was invalid.
    """
    never = pl.lit(value=False)
    scored = pl.col("status").cast(pl.String).ne_missing("error")
    inputs, needs = metric.inputs, metric.needs
    if "passed" in inputs:
        mask = scored & pl.col("passed").is_null()
        if "category" in inputs:
            category = pl.col("category").str.strip_chars().str.to_lowercase()
            mask &= category.eq_missing(pl.lit("adversarial"))
        return mask
    if not needs or "correct" in needs:  # an answer is right or wrong, whatever else is open
        return never
    waits = (pl.col("undecided").list.len() > 0).fill_null(value=False)
    waits |= (pl.col("judge_scores").list.len() == 0).fill_null(value=False)
    mask = scored & waits & pl.any_horizontal(pl.col(name).is_null() for name in needs)
    return mask & (pl.col("expected") > 0).fill_null(value=True) if "expected" in inputs else mask


def settled(frame: pl.DataFrame, mask: pl.Expr, *, good: bool) -> pl.DataFrame:
    """Return measured records as if the attempts of a mask had ended well, or badly."""
    columns = [
        pl.when(mask & pl.col(name).is_null())
        .then(pl.lit(best if good else type(best)(0), dtype=dtype))
        .otherwise(pl.col(name))
        .alias(name)
        for name, (dtype, best) in BEST.items()
        if name in frame.columns
    ]
    if {"observed", "expected"} <= set(frame.columns):
        seen = pl.col("expected") if good else pl.lit(0, dtype=frame.schema["expected"])
        lacking = mask & pl.col("observed").is_null()
        columns.append(pl.when(lacking).then(seen).otherwise(pl.col("observed")).alias("observed"))
    return frame.with_columns(columns)
