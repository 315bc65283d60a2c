"""Measured records on disk, once there are many: written in parts, read column by column.

A measured record has some sixty values, but a metric reads one or two of them. So memory holds the
columns of one metric at a time, for all records.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from pennyweight.errors import InputError
from pennyweight.record import KEY
from pennyweight.stats.resample import CLUSTER

IN_MEMORY = 2_000_000
"""Up to this many records stay in memory."""
PART = 500_000
"""How many records are written at a time."""
LABELS = ("normalized_answer", "normalized_target", "label", "answer_class")
"""Texts that are only compared with each other, and so are stored as codes."""
TASK = "\0task"
"""The column with the hash of the task; null without one."""
IDENTITY = "\0identity"
"""The column with the hash of what identifies an attempt; null without a task."""


@dataclass(slots=True)
class Spill:
    """Takes measured records; keeps them in memory, and on disk once they are too many."""

    by: Sequence[str]
    in_memory: int
    waiting: list[pl.DataFrame] = field(default_factory=list)
    parts: list[Path] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    filled: Counter[str] = field(default_factory=Counter)
    """How many values each column has."""
    schema: pl.Schema = field(default_factory=pl.Schema)
    dropped: pl.Series = field(default_factory=lambda: pl.Series(dtype=pl.UInt64))
    """The numbers of records that are left out."""
    _waiting: int = 0
    _folder: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    @contextmanager
    def open(cls, by: Sequence[str]) -> Iterator[Spill]:
        """Return an empty one; what it writes is removed at the end."""
        spill = cls(by, IN_MEMORY)
        try:
            yield spill
        finally:
            if spill._folder is not None:
                spill._folder.cleanup()

    def take(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Take measured records; return what is left of them elsewhere: nothing."""
        self.waiting.extend(frame.iter_slices(PART))
        self._waiting += frame.height
        if self.parts or self._waiting > self.in_memory:
            while self._waiting >= PART:
                self._write()
        return frame.clear()

    def finish(self) -> bool:
        """Return whether the records are on disk."""
        if self.parts and self.waiting:
            self._write()
        return bool(self.parts)

    def _write(self) -> None:
        """Write as many of the waiting records as a part has."""
        part: list[pl.DataFrame] = []
        while self.waiting and sum(one.height for one in part) < PART:
            part.append(self.waiting.pop(0))
        whole = pl.concat(part)
        self._waiting -= whole.height
        self._write_part(whole)

    def _write_part(self, frame: pl.DataFrame) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="pennyweight-columns-")
        labels = [name for name in LABELS if name in frame.columns]
        key = [n for n in dict.fromkeys((*KEY, *self.by)) if n != "attempt"]
        identity = pl.struct(*key, pl.col("attempt").fill_null(1))
        named = pl.col("task_id").is_not_null()
        frame = frame.with_columns(
            pl.col(labels).cast(pl.Categorical),
            pl.when(named).then(pl.col("task_id").hash()).alias(TASK),
            pl.when(named).then(identity.hash()).alias(IDENTITY),
        )
        path = Path(self._folder.name, f"{len(self.parts):06}.parquet")
        try:
            frame.write_parquet(path, compression="lz4", statistics=False)
        except OSError as error:
            raise InputError(
                [
                    f"{path.parent}: the measured records cannot be written: "
                    f"{error.strerror or error}. Set TMPDIR to a disk with more room."
                ]
            ) from error
        self.parts.append(path)
        self.sizes.append(frame.height)
        self.schema = frame.schema
        nulls = frame.null_count().row(0, named=True)
        self.filled.update({name: frame.height - count for name, count in nulls.items()})

    def read(self, columns: Sequence[str], number: int, *, named: bool = False) -> pl.DataFrame:
        """Return columns of one part, and `CLUSTER`; tasks by their hash, unless they are named."""
        hashed = {CLUSTER} if named else {CLUSTER, "task_id"}
        stored = [TASK if name in hashed else name for name in columns]
        frame = pl.read_parquet(self.parts[number], columns=list(dict.fromkeys(stored)))
        first = sum(self.sizes[:number])
        if (
            "task_id" in columns and not named
        ):  # only compared: the hash takes a fraction of the memory
            frame = frame.with_columns(pl.col(TASK).alias("task_id"))
        if CLUSTER in columns:
            alone = pl.int_range(first, first + pl.len(), dtype=pl.UInt64).hash()
            own = pl.when(pl.col(TASK).is_null()).then(alone).otherwise(pl.col(TASK))
            frame = frame.with_columns(own.alias(CLUSTER))
        frame = frame.select(columns)
        if self.dropped.is_empty():
            return frame
        rows = pl.int_range(first, first + pl.len(), dtype=pl.UInt64)
        return frame.filter(~rows.is_in(self.dropped.implode()))

    def column(self, name: str, only: Sequence[pl.Series] = ()) -> pl.Series:
        """Return a column of all records, or of those that a mask for each part selects."""
        found = []
        for number in range(len(self.parts)):
            series = self.read([name], number)[name]
            found.append(series.filter(only[number]) if only else series)
        return pl.concat(
            found
        ).rechunk()  # one chunk, so that sums are made in the order of records

    def frame(self, columns: Sequence[str], only: Sequence[pl.Series] = ()) -> pl.DataFrame:
        """Return columns of all records; one after the other, so that few are held twice."""
        return pl.DataFrame([self.column(name, only) for name in dict.fromkeys(columns)])
