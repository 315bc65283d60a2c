"""Measured records on disk, once there are many: written in parts, read column by column.

A measured record has some sixty values, but a metric reads one or two of them. So memory holds the
columns of one metric at a time, for all records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from pennyweight.errors import InputError
from pennyweight.record import KEY
from pennyweight.scoring.large.folder import temporary_folder
from pennyweight.stats.resample import CLUSTER

IN_MEMORY = 2_000_000
"""Up to this many records stay in memory."""
PART = 500_000
"""How many records are written at a time."""
LABELS = (
    *("normalized_answer", "normalized_target", "label", "answer_class"),
    *("target_label", "answer_label"),
)
"""Texts that are only compared with each other, and so are stored as codes."""
TASK = "\0task"
"""The column with the hash of the task; null without one."""
_ROW = "\0row"
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
    views: dict[str, pl.Expr] = field(default_factory=dict)
    """Columns that are computed from others when they are read."""
    added: dict[str, list[pl.Series]] = field(default_factory=dict)
    """Columns that were computed from all records, part by part; they are in memory."""
    kept: list[pl.Series] = field(default_factory=list)
    """Which records of each part are not left out; empty if all are kept."""
    _waiting: int = 0
    _folder: Path | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    @classmethod
    @contextmanager
    def open(cls, by: Sequence[str]) -> Iterator[Spill]:
        """Return an empty one; what it writes is removed at the end."""
        spill = cls(by, IN_MEMORY)
        with ExitStack() as stack:
            spill._stack = stack
            yield spill

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
        if not self._folder:
            self._folder = self._stack.enter_context(temporary_folder())
        labels = [name for name in LABELS if name in frame.columns]
        key = [n for n in dict.fromkeys((*KEY, *self.by)) if n != "attempt"]
        identity = pl.struct(*key, pl.col("attempt").fill_null(1))
        named = pl.col("task_id").is_not_null()
        frame = frame.with_columns(
            pl.col(labels).cast(pl.Categorical),
            pl.when(named).then(pl.col("task_id").hash()).alias(TASK),
            pl.when(named).then(identity.hash()).alias(IDENTITY),
        )
        path = self._folder / f"{len(self.parts):06}.parquet"
        try:
            frame.write_parquet(path, compression="lz4", statistics=False)
        except (OSError, pl.exceptions.PolarsError) as error:
            why = str(getattr(error, "strerror", None) or error).rpartition("IO error: ")[2]
            raise InputError(
                [
                    f"{path.parent}: the measured records cannot be written: {why}. "
                    "Set TMPDIR to a disk with more room."
                ]
            ) from error
        self.parts.append(path)
        self.sizes.append(frame.height)
        self.schema = frame.schema
        nulls = frame.null_count().row(0, named=True)
        self.filled.update({name: frame.height - count for name, count in nulls.items()})

    def drop(self, numbers: Iterable[int]) -> None:
        """Leave records out."""
        gone = pl.Series(numbers, dtype=pl.UInt64).implode()
        rows = (pl.int_range(first, first + n, dtype=pl.UInt64) for first, n in self._places())
        if gone.list.len().item():
            self.kept = [pl.select(~one.is_in(gone)).to_series() for one in rows]

    def keep(self, mask: pl.Expr) -> None:
        """Leave out the records for which an expression of columns is not true."""
        masks = [frame.to_series().fill_null(value=False) for frame in self.rows([mask])]
        for own, new in zip(self.kept, masks, strict=False):
            own.scatter(own.arg_true().filter(~new), values=False)
        self.kept = self.kept or masks

    @property
    def height(self) -> int:
        """How many records there are."""
        return sum(self._heights)

    @property
    def _heights(self) -> list[int]:
        """How many records each part has, without those that are left out."""
        return [int(one.sum()) for one in self.kept] or self.sizes

    def read(self, columns: Sequence[str], number: int, *, named: bool = False) -> pl.DataFrame:
        """Return columns of one part, and `CLUSTER`; tasks by their hash, unless they are named."""
        viewed = {name: self.views[name] for name in columns if name in self.views}
        roots = [name for one in viewed.values() for name in one.meta.root_names()]
        stays = [name for name in columns if name not in self.added]
        plain = [name for name in stays if name not in viewed]
        hashed = "task_id" in plain and not named  # only compared: it takes a fraction of the room
        stored = {TASK if n == CLUSTER or (hashed and n == "task_id") else n for n in plain}
        frame = pl.read_parquet(self.parts[number], columns=sorted({*stored, *roots}))
        frame = frame.filter(self.kept[number]) if self.kept else frame
        made = [expr.alias(name) for name, expr in viewed.items()]
        if hashed:
            made.append(pl.col(TASK).alias("task_id"))
        if CLUSTER in columns:
            first = sum(self._heights[:number])
            alone = pl.int_range(first, first + pl.len(), dtype=pl.UInt64).hash()
            own = pl.when(pl.col(TASK).is_null()).then(alone).otherwise(pl.col(TASK))
            made.append(own.alias(CLUSTER))
        frame = frame.with_columns(made).select(stays)
        more = [self.added[name][number] for name in columns if name in self.added]
        return frame.with_columns(more).select(columns) if more else frame

    def rows(
        self, what: Sequence[str | pl.Expr], keep: pl.Expr | None = None
    ) -> Iterator[pl.DataFrame]:
        """Yield columns, or expressions of single records, part by part."""
        exprs = [pl.col(one) if isinstance(one, str) else one for one in what]
        asked = exprs if keep is None else [*exprs, keep]
        columns = sorted({name for one in asked for name in one.meta.root_names()})
        for number in range(len(self.parts)):
            frame = self.read(columns, number, named=True)
            yield (frame if keep is None else frame.filter(keep)).select(exprs)

    def add(self, column: pl.Series) -> None:
        """Add a column with a value for each record."""
        first, parts = 0, self.added.setdefault(column.name, [])
        for size in self._heights:
            parts.append(column.slice(first, size))
            first += size

    def column(
        self, name: str, only: Sequence[pl.Series] = (), *, named: bool = False
    ) -> pl.Series:
        """Return a column of all records, or of those that a mask for each part selects."""
        found = []
        for number in range(len(self.parts)):
            series = self.read([name], number, named=named)[name]
            found.append(series.filter(only[number]) if only else series)
        whole = pl.concat(found)
        return whole.rechunk()  # one chunk, so that sums are made in the order of records

    def frame(
        self, columns: Sequence[str], only: Sequence[pl.Series] = (), *, named: bool = False
    ) -> pl.DataFrame:
        """Return columns of all records; one after the other, so that few are held twice."""
        return pl.DataFrame(
            [self.column(name, only, named=named) for name in dict.fromkeys(columns)]
        )

    def gathered(self, columns: Iterable[str]) -> pl.DataFrame:
        """Return columns of all records in memory; a column of one value takes no memory."""
        plain = pl.DataFrame({_ROW: pl.int_range(self.height, eager=True, dtype=pl.UInt32)})
        for name in columns:
            kind = self.schema[name]
            values: pl.Expr | pl.Series = pl.lit(None, dtype=kind)
            if self.filled[name]:
                found = pl.concat(rows.to_series() for rows in self.rows([name])).rechunk()
                whole = len(found) > 0 and not (found.has_nulls() or kind.is_nested())
                constant = whole and (found == found.first()).all()
                values = pl.lit(found.first(), dtype=kind) if constant else found
            plain = plain.with_columns(values.alias(name))
        return plain.drop(_ROW)

    def _places(self) -> Iterator[tuple[int, int]]:
        """Yield the number of the first record of each part, and how many it has."""
        first = 0
        for size in self.sizes:
            yield first, size
            first += size
