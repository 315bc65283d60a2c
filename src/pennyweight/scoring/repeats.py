"""Repeated attempts: how often each side tried its tasks, and where the variance comes from.

The attempts at a task are those of one subject in one tier, whichever run made them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from pennyweight.errors import UsageError
from pennyweight.scoring.groups import GROUP, Grouped
from pennyweight.stats.resample import CLUSTER
from pennyweight.stats.variance import VarianceSplit, variance_split

SIDE = ("subject", "tier")
"""The columns that tell whose attempts at a task are repeats of each other."""

Advice = Literal["tasks", "both", "either"]
MOSTLY, HARDLY = 0.5, 0.25
"""Above the first share of the mean's variance more attempts help, below the second they do not."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """The attempts in some rows: what identifies a task of a side, and how many each task has."""

    key: tuple[str, ...]
    counts: pl.DataFrame
    """For each group with repeated tasks: `tasks`, and the `fewest` and `most` attempts at one."""

    @classmethod
    def of(cls, grouped: Grouped) -> Attempts:
        """Count the attempts that passed or did not; all of them if that is known of none."""
        rows = grouped.rows
        key = (GROUP, *(name for name in SIDE if name in rows.columns), CLUSTER)
        if not grouped.clustered:
            rows = rows.clear()
        known = rows.drop_nulls("passed") if rows["passed"].count() else rows
        tasks, size = pl.len().alias("tasks"), pl.col("len")
        counts = known.group_by(key).len().group_by(GROUP)
        table = counts.agg(tasks, size.min().alias("fewest"), size.max().alias("most"))
        return cls(key, table.filter(pl.col("most") > 1))

    def sizes(self, options: Mapping[str, Any], groups: int) -> list[int | None]:
        """Return the option `n` of each group; None without repeated tasks, unless k is set."""
        fewest = dict(self.counts.select(GROUP, "fewest").iter_rows())
        given, least = options.get("n"), None if options.get("k") is None else 1
        return [
            given or fewest.get(g, least) if g in fewest or least else None for g in range(groups)
        ]


@dataclass(frozen=True, slots=True)
class Repeats:
    """The attempts of one group at its tasks, and the variance of their values."""

    k: int
    """The k of `pass_at_k` and the others."""
    tasks: int
    fewest: int
    most: int
    variance: Mapping[str, VarianceSplit]

    def to_dict(self) -> dict[str, Any]:
        """Return `repeats` in what `pennyweight score --format json` prints for one group."""
        return {
            "k": self.k,
            "tasks": self.tasks,
            "attempts": [self.fewest, self.most],
            "variance": {name: _split(one) for name, one in self.variance.items()},
        }


def advice(split: VarianceSplit) -> Advice | None:
    """Return what would make the mean more certain; None if nothing varies."""
    part = split.from_repeats
    if part is None:
        return None
    return "tasks" if part < HARDLY else "both" if part < MOSTLY else "either"


def _split(split: VarianceSplit) -> dict[str, Any]:
    ends = None if split.low is None else [split.low, split.high]
    return {
        "task": split.task,
        "attempt": split.attempt,
        "judge": split.judge,
        "icc": split.icc,
        "icc_interval": ends,
        "from_repeats": split.from_repeats,
        "advice": advice(split),
    }


def check_repeat_options(options: Mapping[str, Any]) -> None:
    """Raise UsageError unless k and n are whole numbers from 1, and tau a share."""
    for name in ("k", "n"):
        value = options.get(name)
        if value is not None and (isinstance(value, bool) or value != int(value) or value < 1):
            raise UsageError(f"{name} is {value}; it must be a whole number, at least 1.")
    if options.get("n") and options.get("k") and options["n"] < options["k"]:
        raise UsageError(f"k is {options['k']} and n is {options['n']}; it must be at least k.")
    tau = options.get("tau", 0.5)
    if not 0 <= tau <= 1:
        raise UsageError(f"tau is {tau:g}; it must be between 0 and 1.")


def repeats(
    frame: pl.DataFrame, groups: int, options: Mapping[str, Any], confidence: float
) -> list[Repeats | None]:
    """Describe the repeated attempts of each group; None for a group without any."""
    scored = frame.filter(pl.col("status").ne_missing("error"))
    return repeats_in(Grouped(scored, groups, options, confidence, 0))


def repeats_in(grouped: Grouped) -> list[Repeats | None]:
    """Describe the repeated attempts of each group, given the records that count."""
    options, confidence = grouped.options, grouped.confidence
    attempts = Attempts.of(grouped)
    known = {row.pop(GROUP): row for row in attempts.counts.to_dicts()}
    return [
        Repeats(
            int(options.get("k") or known[g]["fewest"]),
            **known[g],
            variance=_variance(part, attempts.key, confidence),
        )
        if g in known
        else None
        for g, part in enumerate(grouped.parts if known else [grouped.rows] * grouped.groups)
    ]


def _variance(
    rows: pl.DataFrame, key: tuple[str, ...], confidence: float
) -> dict[str, VarianceSplit]:
    """Split the variance of passes and of scores, each side about its own mean."""
    attempts = rows.select(
        task=pl.struct(key).rank("dense") - 1,
        side=pl.struct(name for name in (GROUP, *SIDE) if name in rows.columns),
        passed=pl.col("passed").cast(pl.Float64),
        impl_rate=pl.col("impl_rate"),
    ).with_row_index("attempt")
    judged = None
    if {"judges", "judge_mean", "judge_variance"} <= set(rows.columns):
        judged = _judgments(attempts, rows)
    values = {"passed": attempts, "impl_rate": attempts}
    if judged is not None and judged.height:
        values = {"passed": attempts, "judge_scores": judged}
    splits = {name: _split_of(table, name, confidence) for name, table in values.items()}
    return {name: split for name, split in splits.items() if split}


def _judgments(attempts: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return scores of each attempt with the number, the mean and the variance of its judges'."""
    known = rows.select("judges", "judge_mean", "judge_variance")
    table = pl.concat([attempts.select("attempt", "task", "side"), known], how="horizontal")
    some = table.drop_nulls("judge_mean")
    places = some.with_columns(place=pl.int_ranges(pl.col("judges"))).explode("place")
    apart = (pl.col("judge_variance") * pl.col("judges") / 2).sqrt()
    sign = pl.when(pl.col("place") == 0).then(1).when(pl.col("place") == 1).then(-1).otherwise(0)
    return places.with_columns(judge_scores=pl.col("judge_mean") + sign * apart)


def _split_of(table: pl.DataFrame, name: str, confidence: float) -> VarianceSplit | None:
    about = pl.col(name) - pl.col(name).mean().over("side")
    rows = table.drop_nulls(name).with_columns(about)
    task, attempt = (
        rows[column].rank("dense").cast(pl.Int64).to_numpy() - 1 for column in ("task", "attempt")
    )
    return variance_split(rows[name].to_numpy(), task, attempt, confidence)
