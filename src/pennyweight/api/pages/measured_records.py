"""Measured records, to be scored and compared by one column and by another."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from pennyweight.catalogue import chosen
from pennyweight.errors import InputError, UsageError
from pennyweight.render.comparison import words
from pennyweight.scoring.comparison import NEEDED, Comparison, compare_measured
from pennyweight.scoring.digest import HEADLINES, ComparisonDigest, group_name
from pennyweight.scoring.exam import EXAM, ExamMatch, how_to_regrade, rows_of
from pennyweight.scoring.overview import best_first
from pennyweight.scoring.pairs import MEASURED
from pennyweight.scoring.per_task import PerTask
from pennyweight.scoring.pipeline import Measured, ScoreRequest, Scoring
from pennyweight.scoring.scores import Group
from pennyweight.scoring.sides import SIDE, Sides, side_name, side_values
from pennyweight.sources.source import Rerun, Source

SIDE_COLUMNS = ("run", "subject", "tier")
TASK_COLUMNS = ("category", "capability")
MAX_DESCRIBED = 4
"""The most sides whose comparison is also described in sentences, in every metric."""


@dataclass(frozen=True, slots=True)
class MeasuredRecords:
    """The records, and what was asked of them."""

    work: Scoring
    records: Measured

    def scored(self, by: Sequence[str], metrics: Sequence[str] = ()) -> list[Group]:
        """Score the records of each group; every metric unless some are named."""
        work = replace(self.work, metrics=chosen(list(metrics))) if metrics else self.work
        return list(work.score(self.records.frame, by)[0])

    def of_one_exam(
        self, frame: pl.LazyFrame, by: Sequence[str], reruns: Mapping[str, Rerun]
    ) -> OneExam:
        """Leave out tasks that are not the same on all sides.

        `frame` has the same records. Nothing is left out where a side would have no record left.
        """
        if not by or not self.records.frame.height:
            return OneExam(self, frame)
        named = Sides(tuple(by)).named(self.records.frame)[1]
        present = named[SIDE].unique().to_list()
        if len(present) < 2:
            return OneExam(self, frame)
        titles = {side: side_name(side_values(side), " · ") for side in present}
        exam = ExamMatch.of(rows_of(named), titles, reruns, self.work.request.regraded)
        graded = [f"{exam.regrading} {how_to_regrade(exam.regraded)}"] if exam.regraded else []
        if not exam.changed:
            return OneExam(self, frame, [*graded, *exam.remarks()], same=not graded)
        stays = exam.stays()
        if named.filter(stays)[SIDE].n_unique() < len(present):
            return OneExam(self, frame, [*graded, exam.nothing_left], same=False)
        records = replace(self.records, frame=self.records.frame.filter(stays))
        said, left = [*graded, *exam.sentences()], exam.left.to_list()
        return OneExam(replace(self, records=records), frame.filter(stays), said, not graded, left)

    def compared(
        self, groups: Sequence[Group], by: Sequence[str], metric: str | None
    ) -> ComparisonDigest | None:
        """Compare groups with the best of them on the same tasks; None where that is impossible.

        A group without a value of the metric, such as one of errors only, is left out, and so is
        one of records that lack a column: all others are ranked.
        """
        if metric is None:
            return None
        sides = [g for g in groups if None not in g.group.values()]
        valued = [g for g in sides if metric in g.estimates and g[metric].value is not None]
        if len(valued) < 2:
            return None
        titles = {_side_of(group): group_name(group) for group in groups}
        best, *others = map(_side_of, best_first(valued, metric))
        only = [(best, other) for other in others] if len(valued) < len(sides) else []
        needed = [*NEEDED, *HEADLINES]
        work = replace(self.work, metrics=chosen(list(dict.fromkeys(needed))))
        about = work, self.records, Sides(tuple(by))
        with suppress(UsageError, InputError):  # sides that cannot be compared
            found = compare_measured(
                *about, [metric], best, only=only, titles=titles, together=True
            )
            if not any(pair.tasks for pair in found.pairs):
                return None  # groups of different tasks, as categories are
            first = next(raw for raw, title in titles.items() if title == found.leader)
            if first != best and not only and any(group.errors for group in valued):
                found = compare_measured(*about, [metric], first, titles=titles, together=True)
            whole = found
            if len(groups) <= MAX_DESCRIBED:
                whole = compare_measured(*about, None, titles=titles)
            return compared_digest(whole, found)
        return None


@dataclass(frozen=True, slots=True)
class OneExam:
    """Measured records of tasks that are the same on all sides."""

    measured: MeasuredRecords
    frame: pl.LazyFrame
    said: Sequence[str] = ()
    """Which tasks are left out because they changed, and how sides are graded differently."""
    same: bool = True
    """Whether the sides were graded alike and each has some task that did not change."""
    changed: Sequence[str] = ()
    """The tasks that are left out."""


def _side_of(group: Group) -> str:
    """Return the name of a group as a side of a comparison."""
    return side_name([str(v) for v in group.group.values()])


def compared_digest(found: Comparison, headline: Comparison | None = None) -> ComparisonDigest:
    """Return a comparison as plain data.

    `headline` compares the same sides with the best of them, in the headline metric alone.
    """
    pairs: Any = found.to_dict()["pairs"]
    gaps: Any = [pair.to_dict() for pair in headline.pairs] if headline else pairs
    first = headline or found
    if first.ranking:  # sentences, intervals and ranks agree
        found = replace(found, ranking=first.ranking)
    ranking: Any = first.ranking.to_dict() if first.ranking else {"sides": []}
    tests: Any = asdict(first.ranking.tests) if first.ranking else None
    return {
        "words": words(found) if len(found.sides) <= MAX_DESCRIBED or not headline else [],
        "pairs": pairs,
        "gaps": [pair for pair in gaps if pair["metric"] == gaps[0]["metric"]],
        "by": list(found.by),
        "baseline": first.baseline,
        "ranks": list(ranking["sides"]),
        "tests": tests,
        "common": len(first.common) if first.common else 0,
    }


@contextmanager
def measured_records(
    sources: Sequence[Source],
    confidence: float,
    by: Sequence[str],
    where: Mapping[str, str],
    progress: Callable[[int], None],
    options: Mapping[str, Any],
    map: Mapping[str, str] | None = None,  # noqa: A002
) -> Iterator[tuple[MeasuredRecords, pl.LazyFrame]]:
    """Measure everything once, with each measured record in a temporary file."""
    also = (*SIDE_COLUMNS, *TASK_COLUMNS, "correct", "checks", *MEASURED, *EXAM)
    request = ScoreRequest(
        confidence=confidence, map=map, progress=progress, where=where, options=options
    )
    work = Scoring.of(sources, request, by, everything=True, also=also)
    with tempfile.TemporaryDirectory(prefix="pennyweight-digest-") as folder:
        path = Path(folder) / "records.parquet"
        with PerTask.open(path) as sink:
            records = work.measure(sources, sink)
            if sink:
                sink.finish(records.doubles)
        if not path.exists():
            raise UsageError("There are no records yet, so there is nothing to report.")
        yield MeasuredRecords(work, records), pl.scan_parquet(path)
