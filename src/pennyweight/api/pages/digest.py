"""Digest records: scores, the numbers behind each chart, and the most telling records."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import polars as pl

from pennyweight.catalogue import chosen
from pennyweight.errors import InputError, UsageError
from pennyweight.render.comparison import words
from pennyweight.scoring import chart_data as data
from pennyweight.scoring.comparison import compare
from pennyweight.scoring.digest import (
    VERSION,
    ComparisonDigest,
    RecordsDigest,
    RepeatsCurve,
    RowChart,
    group_digest,
    headline,
    telling,
)
from pennyweight.scoring.per_task import PerTask
from pennyweight.scoring.pipeline import Measured, ScoreRequest, Scoring
from pennyweight.scoring.scores import Group
from pennyweight.sources.source import Source, copied

Progress = Callable[[str, int], None]

SIDE_COLUMNS = ("run", "subject", "tier")


def digest(
    sources: Sequence[Source],
    *,
    confidence: float = 0.95,
    where: Mapping[str, str] | None = None,
    take: Callable[[pl.LazyFrame], None] | None = None,
    progress: Progress | None = None,
) -> RecordsDigest:
    """Score records and gather what charts and pages show.

    `where` leaves out records with other values in columns or measures.
    `take` gets the measured records, for instance to store them; they are deleted afterwards.
    `progress` gets the name of each step (`read`, `measure`, `score`, `compare`) and how many
    records are done.
    """
    if not all(source.rereadable for source in sources):
        raise UsageError("Standard input can be read only once; write it to a file and name that.")
    step: Progress = progress or (lambda *_: None)
    with (
        copied(sources, partial(step, "read")) as copies,
        _measured(copies, confidence, where or {}, partial(step, "measure")) as (measured, frame),
    ):
        step("score", 0)
        whole = measured.scored([])[0]
        by = [n for n in SIDE_COLUMNS if data.distinct(frame, n) > 1]
        metric = headline(whole)
        groups = measured.scored(by) if by else []
        step("compare", 0)
        paired = None
        if len(groups) > 1:
            with suppress(UsageError, InputError):  # sides that cannot be compared
                paired = compared(copies, confidence, where=where)
        made: RecordsDigest = {
            "version": VERSION,
            "confidence": confidence,
            "by": by,
            "headline": metric,
            "whole": group_digest(whole),
            "sides": [group_digest(g) for g in groups],
            "left_out": measured.records.left_out,
            "comparison": paired,
            "charts": {
                "sides": data.estimates(groups, metric) if len(groups) > 1 else None,
                "differences": data.differences(paired, metric),
                "frontier": data.frontier(groups, metric),
                "categories": _categories(measured, frame, metric),
                "reliability": data.reliability(frame),
                "thought": data.thought(frame),
                "answers": data.answers(frame),
                "latency": data.histogram(frame, "latency_ms"),
                "tokens": data.histogram(frame, "total_tokens"),
                "coverage": data.coverage(frame),
                "repeats": _curve(measured, whole, len(groups) or 1),
            },
            "telling": telling(frame),
            "failures": data.failures(frame),
        }
        if take:
            take(frame)
    return made


def compared(
    sources: Sequence[Source],
    confidence: float,
    by: Sequence[str] = (),
    titles: Mapping[str, str] | None = None,
    where: Mapping[str, str] | None = None,
) -> ComparisonDigest:
    """Compare the sides on the same tasks, in sentences and numbers.

    `titles` gives sides other names in both. Raises UsageError or InputError where the sides
    cannot be compared.
    """
    request = ScoreRequest(confidence=confidence, where=where or {})
    found = compare(sources, request, by, titles=titles)
    pairs = found.to_dict()["pairs"]
    return {"words": words(found), "pairs": pairs, "by": list(found.by)}


@dataclass(frozen=True, slots=True)
class _MeasuredRecords:
    """Measured records, to be scored by one column and by another."""

    work: Scoring
    records: Measured

    def scored(self, by: Sequence[str], metric: str | None = None) -> list[Group]:
        """Score the records of each group; every metric unless one is named."""
        work = replace(self.work, metrics=chosen([metric])) if metric else self.work
        return list(work.score(self.records.frame, by)[0])


@contextmanager
def _measured(
    sources: Sequence[Source],
    confidence: float,
    where: Mapping[str, str],
    progress: Callable[[int], None],
) -> Iterator[tuple[_MeasuredRecords, pl.LazyFrame]]:
    """Measure everything once, with each measured record in a temporary file."""
    also = (*SIDE_COLUMNS, "category")
    request = ScoreRequest(confidence=confidence, progress=progress, where=where)
    work = Scoring.of(sources, request, everything=True, also=also)
    with tempfile.TemporaryDirectory(prefix="pennyweight-digest-") as folder:
        path = Path(folder) / "records.parquet"
        with PerTask.open(path) as sink:
            records = work.measure(sources, sink)
            if sink:
                sink.finish(records.doubles)
        if not path.exists():
            raise UsageError("There are no records yet, so there is nothing to report.")
        yield _MeasuredRecords(work, records), pl.scan_parquet(path)


def _curve(measured: _MeasuredRecords, whole: Group, sides: int) -> RepeatsCurve | None:
    if whole.repeats is None:
        return None
    by_k = data.curve_metrics(whole.repeats.fewest)
    work = replace(measured.work, metrics=[metric for same in by_k.values() for metric in same])
    (group,), _ = work.score(measured.records.frame, [])
    return data.repeats_curve(group, by_k, sides)


def _categories(
    measured: _MeasuredRecords, frame: pl.LazyFrame, metric: str | None
) -> RowChart | None:
    if metric is None or not 2 <= data.distinct(frame, "category") <= 200:
        return None
    groups = sorted(measured.scored(["category"], metric), key=lambda g: -g.records)
    shown = sorted(groups[: data.MAX_CATEGORIES], key=lambda g: str(g.group["category"]))
    return data.estimates(shown, metric)
