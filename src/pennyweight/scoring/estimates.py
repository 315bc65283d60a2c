"""Estimates: each metric's value with its interval, for every group of records."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from pennyweight.define import Metric, by_task, metric_named
from pennyweight.errors import UsageError
from pennyweight.scoring.estimands import USUAL, Estimand, restated
from pennyweight.scoring.groups import GROUP, Grouped, Shape, shape_of
from pennyweight.scoring.repeats import Attempts
from pennyweight.stats.resample import Ends

Value = float | str | None
_OVER = ("all", "scored", "tasks")
_OF_VERDICTS = ("passed", "judge_cost_usd")
"""What an attempt that ended in an error does not have."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A metric's value, its interval, and the numbers of records used and left out."""

    value: float | Any
    """A number; None if nothing could be measured, and a letter if it is a grade.

    The type lets you compute with the number of a metric without proving that it is one.
    """
    low: float | Any = None
    high: float | Any = None
    records: int = 0
    skipped: int = 0
    skewed: bool = False
    """Whether a few tasks decide the value, so that the interval may be too narrow."""
    lacks: tuple[str, ...] = ()
    """The columns or measures that it needs and no record has."""


@dataclass(frozen=True, slots=True)
class Headline:
    """The headline metric of a run: of its best side, whose name is given, if it has several."""

    metric: str
    estimate: Estimate
    side: str = ""


def estimates(
    frame: pl.DataFrame,
    groups: int,
    metrics: Sequence[Metric],
    options: Mapping[str, Any],
    confidence: float,
    seed: int,
    estimand: Estimand = USUAL,
) -> list[dict[str, Estimate]]:
    """Estimate metrics for each of the groups that a measured frame numbers.

    Records with status `error` enter only the metrics that are declared over all attempts.
    """
    wanted = with_parts(metrics, options)
    every = Grouped(frame, groups, options, confidence, seed)
    scored = replace(every, rows=frame.filter(pl.col("status").ne_missing("error")))
    found = estimated(every, scored, wanted, estimand)
    return combined(found, metrics, groups, options)


def estimated(
    every: Grouped, scored: Grouped, metrics: Sequence[Metric], estimand: Estimand = USUAL
) -> dict[str, list[Estimate]]:
    """Estimate the metrics that do not combine others, over all records or those that count."""
    plain = {over: [m for m in metrics if m.over == over and not m.combined] for over in _OVER}
    found = _estimate(every, plain["all"]) | _estimate(scored, plain["scored"])
    found |= _over_tasks(scored, plain["tasks"])
    return found if estimand == USUAL else restated(found, scored, metrics, estimand)


def combined(
    found: dict[str, list[Estimate]],
    metrics: Sequence[Metric],
    groups: int,
    options: Mapping[str, Any],
) -> list[dict[str, Estimate]]:
    """Add the metrics that combine others; return the estimates of each group."""
    for metric in with_parts(metrics, options):
        if metric.combined:
            found[metric.name] = combine(metric, found, groups, options)
    return [{m.name: found[m.name][g] for m in metrics} for g in range(groups)]


def with_parts(metrics: Sequence[Metric], options: Mapping[str, Any]) -> list[Metric]:
    """Order metrics so that the parts of others come first."""
    done: dict[str, Metric] = {}

    def visit(metric: Metric, inside: tuple[str, ...] = ()) -> None:
        for name in metric.part_names(options):
            if name not in inside:
                visit(metric_named(name), (*inside, metric.name))
        done.setdefault(metric.name, metric)

    for metric in metrics:
        visit(metric)
    return list(done.values())


def _estimate(grouped: Grouped, metrics: Sequence[Metric]) -> dict[str, list[Estimate]]:
    """Estimate metrics; those that need a column without any value are null at once."""
    rows = grouped.rows
    needed = {name for metric in metrics for name in metric.needs}
    known = needed & set(rows.columns)
    empty = {name for name in known if rows[name].null_count() == rows.height}
    absent = [m for m in metrics if not empty.isdisjoint(m.needs)]
    return _nulls(grouped, absent, empty) | _estimate_known(
        grouped, [m for m in metrics if empty.isdisjoint(m.needs)]
    )


def _nulls(
    grouped: Grouped, metrics: Sequence[Metric], empty: Collection[str] = ()
) -> dict[str, list[Estimate]]:
    """Return the estimates of metrics that no record has the values for: these are `empty`."""
    if not metrics:
        return {}
    for metric in metrics:
        if not set(metric.options).isdisjoint(grouped.options):
            metric.expression(grouped.options)  # a mistake in an option is told all the same
    skipped = grouped.aggregate([pl.len().alias("n")])["n"].fill_null(0)
    lacking = {m.name: tuple(n for n in m.needs if n in empty) for m in metrics}
    return {
        name: [Estimate(None, skipped=n, lacks=lacks) for n in skipped]
        for name, lacks in lacking.items()
    }


def _whole(
    grouped: Grouped, metrics: Sequence[Metric], shapes: Mapping[str, Shape]
) -> tuple[Grouped, dict[str, Shape]]:
    """Compute values of users' metrics over whole groups: they may depend on other records.

    Intervals add values up task by task, where such values would be others.
    """
    found = dict(shapes)
    for metric in metrics:
        values = found[metric.name].values
        if metric.is_users and values is not None and not values.meta.is_column():
            name = f"\0{metric.name}"
            if (computed := grouped.with_values(name, values)) is not None:
                grouped = computed
                found[metric.name] = replace(found[metric.name], values=pl.col(name))
    return grouped, found


def _estimate_known(grouped: Grouped, metrics: Sequence[Metric]) -> dict[str, list[Estimate]]:
    if not metrics:
        return {}
    bodies = {m.name: m.expression(grouped.options) for m in metrics}
    shapes = {m.name: Shape() if m.interval else shape_of(bodies[m.name]) for m in metrics}
    grouped, shapes = _whole(grouped, metrics, shapes)
    counts = [s.values.count().alias(f"{n}/n") for n, s in shapes.items() if s.values is not None]
    missing = [_missing(m).alias(f"{m.name}/missing") for m in metrics]
    partly = _partly(grouped, metrics)
    there = [pl.col(n).count().alias(f"{n}/there") for n in partly]
    wanted = [pl.len().alias("len"), *bodies.values(), *missing, *counts, *there]
    table = grouped.aggregate(wanted)
    values = {m.name: [_clean(v) for v in table[m.name].to_list()] for m in metrics}
    ranges = {m.name: m.range or (None, None) for m in metrics}
    nothing: list[Ends] = [None] * grouped.groups
    ends = {n: nothing for n, found in values.items() if all(v is None for v in found)}
    known = {n: s for n, s in shapes.items() if n not in ends}
    means = {n: s.values for n, s in known.items() if s.values is not None and s.share is None}
    mean_ends, skewed = grouped.mean_intervals(means, table, ranges) if means else ({}, {})
    quantiles = {n: s for n, s in known.items() if s.share is not None}
    ends |= mean_ends | grouped.quantile_intervals(quantiles, table)
    others = [m for m in metrics if m.name not in ends]
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        intervals = pool.map(
            lambda m: grouped.other_interval(m, bodies[m.name], values[m.name]), others
        )
        ends |= dict(zip((m.name for m in others), intervals, strict=True))
    result = {}
    for metric in metrics:
        name = metric.name
        skipped = table[f"{name}/missing"].fill_null(0).to_list()
        used = (table[f"{name}/n"] if f"{name}/n" in table.columns else table["len"]).fill_null(0)
        less = [0] * grouped.groups if f"{name}/n" in table.columns else skipped
        few = skewed.get(name, [False] * grouped.groups)
        result[name] = [
            Estimate(v, *_bounded(metric, v, e), n - k, s, skewed=w)
            for v, e, n, k, s, w in zip(
                values[name], ends[name], used, less, skipped, few, strict=True
            )
        ]
        for column in partly & set(metric.needs):
            sizes = (table[n].fill_null(0) for n in (f"{column}/there", "len"))
            both = zip(result[name], *sizes, strict=True)
            result[name] = [e if n else Estimate(None, skipped=size) for e, n, size in both]
    return result


def _partly(grouped: Grouped, metrics: Sequence[Metric]) -> set[str]:
    """Return needed columns that may have no value in one of the groups.

    Without one, a metric is null as it is for that group alone, whatever it makes of nothing:
    `False & null` is false.
    """
    if grouped.groups == 1:
        return set()
    needed = {name for metric in metrics for name in metric.needs}
    return {name for name in needed if grouped.rows[name].has_nulls()}


def _over_tasks(grouped: Grouped, metrics: Sequence[Metric]) -> dict[str, list[Estimate]]:
    """Estimate metrics over tasks: without `k`, only in groups that tried a task several times.

    Those that draw k attempts count the attempts that passed or did not; agreement counts all.
    """
    if not metrics:
        return {}
    attempts = Attempts.of(grouped)
    drawing = [m for m in metrics if "k" in m.options]
    others = [m for m in metrics if "k" not in m.options]
    every = [1 if grouped.clustered else None] * grouped.groups
    sizes = attempts.sizes(grouped.options, grouped.groups)
    return _of_tasks(grouped, drawing, attempts, sizes) | _of_tasks(
        grouped, others, attempts, every
    )


def _of_tasks(
    grouped: Grouped, metrics: Sequence[Metric], attempts: Attempts, sizes: Sequence[int | None]
) -> dict[str, list[Estimate]]:
    """Estimate metrics over the tasks of the groups that have a size."""
    rows = grouped.rows
    if not metrics or not any(sizes):
        return _nulls(grouped, metrics)
    tables = [by_task(rows.clear(), attempts.key, metrics, grouped.options)]
    for n in sorted({size for size in sizes if size}):
        own = [g for g, size in enumerate(sizes) if size == n]
        part = rows if len(own) == grouped.groups else rows.filter(pl.col(GROUP).is_in(own))
        tables.append(by_task(part, attempts.key, metrics, {**grouped.options, "n": n}))
    tasks = replace(grouped, rows=pl.concat(tables))
    found = _estimate(tasks, [m.mean() for m in metrics])
    used = [
        pl.col(f"{m.name}/n").filter(pl.col(m.name).is_not_null()).sum().alias(m.name)
        for m in metrics
    ]
    counts = tasks.aggregate(used).fill_null(0)
    records = grouped.aggregate([pl.len().alias("n")])["n"].fill_null(0)
    return {
        name: [
            replace(e, records=n, skipped=size - n)
            for e, n, size in zip(es, counts[name], records, strict=True)
        ]
        for name, es in found.items()
    }


def _missing(metric: Metric) -> pl.Expr:
    """Count the records that lack a value that the metric needs.

    A metric that needs no value uses all records, unless none has any of its inputs. An error has
    no verdict, and a metric that counts errors does not miss it.
    """
    if not metric.needs:
        there = pl.sum_horizontal(pl.col(n).count() for n in metric.inputs)
        return pl.when(there > 0).then(0).otherwise(pl.len())
    judged = pl.lit(value=True)
    if metric.over == "all" and "status" in metric.inputs:
        judged = pl.col("status").cast(pl.String).ne_missing("error")
    return pl.any_horizontal(
        pl.col(n).is_null() & (judged if n in _OF_VERDICTS else True) for n in metric.needs
    ).sum()


def _bounded(metric: Metric, value: Value, ends: Ends) -> tuple[Value, Value]:
    if value is None or ends is None:
        return None, None
    first, last = metric.range or (None, None)
    low, high = float(ends[0]), float(ends[1])
    if isinstance(value, float):  # products of the smallest numbers are 0
        low, high = min(low, value), max(high, value)
    return (
        low if first is None else max(low, float(first)),
        high if last is None else min(high, float(last)),
    )


def combine(
    metric: Metric, found: Mapping[str, list[Estimate]], groups: int, options: Mapping[str, Any]
) -> list[Estimate]:
    """Estimate a metric that combines other metrics, for all groups at once.

    It is assumed to rise or fall with each part, so the ends of its interval are its values at the
    ends of theirs. That is exact if the parts vary together, and conservative otherwise.
    """
    parts = {n: found[n] for n in metric.part_names(options)}
    for name in (n for n, es in parts.items() if any(isinstance(e.value, str) for e in es)):
        raise UsageError(f"{metric.name} cannot use {name!r}: it is not a number.")
    at = {n: [e.value for e in es] for n, es in parts.items()}
    values = _apply(metric, at, groups, options)
    worst, best = dict(at), dict(at)
    for name, es in parts.items():
        ends = [[e.low for e in es], [e.high for e in es]]
        low, high = (_apply(metric, {**at, name: end}, groups, options) for end in ends)
        falls = [
            isinstance(x, float) and isinstance(y, float) and x > y
            for x, y in zip(low, high, strict=True)
        ]
        pairs = list(zip(*ends, falls, strict=True))
        worst[name] = [b if down else a for a, b, down in pairs]
        best[name] = [a if down else b for a, b, down in pairs]
    lows, highs = (_apply(metric, side, groups, options) for side in (worst, best))
    result = []
    for g, value in enumerate(values):
        own = [es[g] for es in parts.values()]
        sure = value is not None and all(e.low is not None for e in own)
        result.append(
            Estimate(
                value,
                lows[g] if sure else None,
                highs[g] if sure else None,
                min((e.records for e in own), default=0),
                max((e.skipped for e in own), default=0),
            )
        )
    return result


def _apply(
    metric: Metric, parts: Mapping[str, list[Value]], groups: int, options: Mapping[str, Any]
) -> list[Value]:
    index = "\0group"
    table = {index: range(groups), **parts}
    frame = pl.DataFrame(table, schema_overrides=dict.fromkeys(parts, pl.Float64), strict=False)
    combined = metric.apply({name: pl.col(name) for name in parts}, options)
    return [_clean(value) for value in frame.select(index, combined)[metric.name]]


def _clean(value: Any) -> Value:
    """Convert a value from Polars: NaN becomes None, integers become floats."""
    if value is None or isinstance(value, str):
        return value
    number = float(value)
    return None if math.isnan(number) else number
