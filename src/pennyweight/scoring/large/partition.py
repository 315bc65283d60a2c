"""Measured partitions: each file of a table in any process, and all of them put together."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from pennyweight.scoring.pipeline import ScoreRequest, Scoring
from pennyweight.sources.loader import FILE, Loaded, load
from pennyweight.sources.source import Source


@dataclass(frozen=True, slots=True)
class MeasuredPartition:
    """One partition, as it is sent between processes."""

    loaded: Loaded
    table: bytes
    """The measured records, compressed: a tenth of what they take in memory."""

    @classmethod
    def of(cls, loaded: Loaded) -> MeasuredPartition:
        """Take the records of a partition."""
        table = io.BytesIO()
        if loaded.frames:
            whole = pl.concat(loaded.frames)
            whole.write_parquet(table, compression="lz4", statistics=False)
        loaded.frames = []
        return cls(loaded, table.getvalue())

    @property
    def frames(self) -> list[pl.DataFrame]:
        """The measured records."""
        return [pl.read_parquet(self.table)] if self.table else []


@dataclass(frozen=True, slots=True)
class PartitionJob:
    """What every partition is measured for; it can be sent to another process."""

    request: ScoreRequest
    by: tuple[str, ...] = ()

    def __call__(self, source: Source) -> MeasuredPartition:
        """Measure the records of one partition."""
        request = replace(self.request, progress=None)
        plan, read = Scoring.of([source], request, self.by).plan.knowing([source])
        loaded = load(read, plan.wanted, plan.measure, plan.taker(None), check=False)
        return MeasuredPartition.of(loaded)


def put_together(
    work: Scoring,
    sources: Sequence[Source],
    parts: Iterator[MeasuredPartition],
    take: Callable[[pl.DataFrame], pl.DataFrame],
) -> Loaded:
    """Join partitions that were measured elsewhere, in the order of the sources."""
    whole, done = Loaded(), 0
    for number, (source, measured) in enumerate(zip(sources, parts, strict=True)):
        part = measured.loaded
        whole.files.append(source.name)
        whole.units.update((number, unit) for unit in part.units.values())
        whole.present |= part.present
        whole.filled |= part.filled
        whole.meanings |= part.meanings
        whole.bad_records += part.bad_records
        whole.problem_count += part.problem_count
        whole.problems += part.problems
        for frame in measured.frames:
            numbered = frame.with_columns(pl.lit(number, dtype=pl.UInt32).alias(FILE))
            whole.frames.append(take(numbered))
            done += frame.height
        if work.request.progress:
            work.request.progress(done)
    work.plan.wanted.check(whole.filled, whole.meanings)
    return whole
