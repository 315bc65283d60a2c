"""Digest records: scores, the numbers behind each chart, and the most telling records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from pennyweight.api.pages.boards import boards
from pennyweight.api.pages.measured_records import (
    SIDE_COLUMNS,
    MeasuredRecords,
    measured_records,
)
from pennyweight.api.pages.reasoning_charts import confidence_sources, thinking
from pennyweight.api.pages.side_charts import side_charts, side_curves
from pennyweight.errors import UsageError
from pennyweight.render.attempts import judgments_text
from pennyweight.scoring import chart_data as data
from pennyweight.scoring.chart_types import RepeatsCurve, RepeatsPoint, RowChart, SideCharts
from pennyweight.scoring.digest import (
    MEASURES,
    VERSION,
    RecordsDigest,
    TellingRecord,
    group_digest,
    group_name,
    headline,
    telling,
)
from pennyweight.scoring.overview import best_first
from pennyweight.scoring.scores import Group
from pennyweight.scoring.sides import reruns_of
from pennyweight.sources.source import Source, copied
from pennyweight.stored_runs.source import RunSource
from pennyweight.stored_runs.task_results import with_judgments

Progress = Callable[[str, int], None]


def digest(
    sources: Sequence[Source],
    *,
    confidence: float = 0.95,
    by: Sequence[str] = (),
    where: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    map: Mapping[str, str] | None = None,  # noqa: A002
    further: Sequence[str] = (),
    take: Callable[[pl.LazyFrame, RecordsDigest], None] | None = None,
    progress: Progress | None = None,
) -> RecordsDigest:
    """Score records and gather what charts and pages show.

    `by` names the columns whose values are the sides (default: those of run, subject and tier that
    have several).
    `where` leaves out records with other values in columns or measures. `options` are those of
    measures and metrics, such as another `match_rule`. `map` says from which columns others are
    read, as in `score`.
    `further` names columns of the user's own: those of the tasks have a leaderboard too.
    `take` gets the measured records and the digest, for instance to store them; the records are
    deleted afterwards.
    `progress` gets the name of each step (`read`, `measure`, `score`, `compare`) and how many
    records are done.
    """
    if not all(source.rereadable for source in sources):
        raise UsageError("Standard input can be read only once; write it to a file and name that.")
    step: Progress = progress or (lambda *_: None)
    with (
        copied(sources, partial(step, "read"), [*by, *(where or ()), *further]) as copies,
        measured_records(
            *(copies, confidence, by, where or {}, partial(step, "measure"), options or {}, map)
        ) as (measured_all, all_records),
    ):
        step("score", 0)
        by = list(by) or [n for n in SIDE_COLUMNS if data.distinct(all_records, n) > 1]
        reruns = reruns_of(sources)
        exam = measured_all.of_one_exam(all_records, by, reruns)
        measured, frame = exam.measured, exam.frame
        whole = measured.scored([])[0]
        metric = headline(whole)
        groups = measured.scored(by) if by else []
        step("compare", 0)
        paired = measured.compared(groups, by, metric)
        made: RecordsDigest = {
            "version": VERSION,
            "confidence": confidence,
            "errors": str((options or {}).get("errors", "exclude")),
            "by": by,
            "headline": metric,
            "whole": group_digest(whole),
            "sides": [group_digest(g) for g in groups],
            "left_out": measured.records.left_out,
            "exam": [*exam.said],
            "same_exam": exam.same,
            "changed": [*exam.changed],
            "comparison": paired,
            "boards": boards(measured, frame, by, metric, groups, further),
            "charts": {
                "sides": data.estimates(groups, metric) if len(groups) > 1 else None,
                "differences": data.differences(paired, metric),
                "frontier": data.frontier(groups, metric),
                "categories": None if by == ["category"] else _categories(measured, frame, metric),
                "reliability": data.reliability(frame),
                "thought": data.thought(frame),
                "answers": data.answers(frame),
                "latency": data.histogram(frame, "latency_ms"),
                "tokens": data.histogram(frame, "total_tokens"),
                "coverage": data.coverage(frame),
                "repeats": _curve(measured, whole, len(groups) or 1),
                "sources": confidence_sources(frame),
                "thinking": thinking(groups, metric),
                "each": _each(measured, frame, by, groups, metric),
            },
            "telling": _with_evidence(telling(frame), sources),
            "failures": data.failures(frame),
        }
        if take:
            take(frame, made)
    return made


def _with_evidence(rows: list[TellingRecord], sources: Sequence[Source]) -> list[TellingRecord]:
    """Add what the judges said, where judges decided."""
    runs = {one.run.id: one for one in sources if isinstance(one, RunSource)}
    alone = next(iter(runs)) if len(runs) == len(sources) == 1 else None
    keyed: list[Any] = [row for row in rows if row.get("task_id") is not None]
    for run, source in runs.items():
        own = [row for row in keyed if row.get("run", alone) == run]
        for row, judged in zip(own, with_judgments(own, source.run, source.store), strict=True):
            if text := judgments_text(judged):
                row["judgments"] = text
    return rows


def _curve(measured: MeasuredRecords, whole: Group, sides: int) -> RepeatsCurve | None:
    if whole.repeats is None:
        return None
    by_k = data.curve_metrics(whole.repeats.fewest)
    work = replace(measured.work, metrics=[metric for same in by_k.values() for metric in same])
    (group,), _ = work.score(measured.records.frame, [])
    return data.repeats_curve(group, by_k, sides)


def _each(
    measured: MeasuredRecords,
    frame: pl.LazyFrame,
    by: Sequence[str],
    groups: Sequence[Group],
    metric: str | None,
) -> SideCharts | None:
    """Return the charts of each side by itself, the best first."""
    if len(groups) < 2 or not data.has(frame, *by):
        return None
    curves: dict[str, list[RepeatsPoint]] = {}
    fewest = {group_name(g): g.repeats.fewest for g in groups if g.repeats}
    if fewest and max(fewest.values()) > 1:
        by_k = data.curve_metrics(max(fewest.values()))
        work = replace(measured.work, metrics=[m for same in by_k.values() for m in same])
        curves = side_curves(work.score(measured.records.frame, by)[0], by_k, fewest)
    order = best_first(groups, metric) if metric else list(groups)
    return side_charts(frame, by, order, MEASURES.get(metric or ""), curves)


def _categories(
    measured: MeasuredRecords, frame: pl.LazyFrame, metric: str | None
) -> RowChart | None:
    if metric is None or not 2 <= data.distinct(frame, "category") <= 200:
        return None
    groups = sorted(measured.scored(["category"], [metric]), key=lambda g: -g.records)
    shown = sorted(groups[: data.MAX_CATEGORIES], key=lambda g: str(g.group["category"]))
    return data.estimates(shown, metric)
