"""Every record with its measures, as a file: JSONL or Parquet.

Parts are written as they arrive and joined at the end, so memory stays bounded, and the file
appears only once all records are known to be valid.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from pennyweight.define import MEASURES
from pennyweight.errors import InputError, UsageError
from pennyweight.sources.conversion import LINE
from pennyweight.sources.loader import FILE
from pennyweight.sources.parsing import as_text

SUFFIXES = (".jsonl", ".parquet")
_INFINITE = sys.float_info.max


@dataclass(frozen=True, slots=True)
class PerTaskResult:
    """The measures of one record, with the fields of the specification of reasoning metrics."""

    correct: bool | None
    cot: str | None
    cot_tokens: int | None
    step_count: int | None
    self_correcting: bool | None
    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    latency_ms: float | None


@dataclass(slots=True)
class PerTask:
    """The parts of the file, in a temporary folder until it is complete."""

    path: Path
    folder: Path
    parts: list[Path] = field(default_factory=list)
    filled: set[str] = field(default_factory=set)

    @classmethod
    @contextmanager
    def open(cls, path: str | Path | None) -> Iterator[PerTask | None]:
        """Prepare to write `path`; None if there is nothing to write."""
        if path is None:
            yield None
            return
        target = Path(path)
        if target.suffix not in SUFFIXES:
            raise UsageError(f"--per-task {path}: the name must end in .jsonl or .parquet.")
        if not target.parent.is_dir():
            raise InputError([f"{target.parent}: no such folder to write {target.name} into."])
        if target.is_dir():
            raise InputError([f"{target}: a folder has this name; choose another for --per-task."])
        with _writing(target):
            folder = tempfile.TemporaryDirectory(prefix=".pennyweight-", dir=target.parent)
        with folder as name:
            yield cls(target, Path(name))

    def add(self, frame: pl.DataFrame) -> None:
        """Write the records of one chunk."""
        if frame.is_empty():
            return
        part = self.folder / f"{len(self.parts):06}.parquet"
        with _writing(self.path):
            frame.write_parquet(part, compression="lz4")
        self.parts.append(part)
        nulls = frame.null_count().row(0, named=True)
        self.filled |= {name for name, count in nulls.items() if count < frame.height}

    def finish(self, dropped: Sequence[int]) -> None:
        """Write the file, without the rows whose numbers are given; none if there is no record."""
        if not self.parts:
            return
        table = pl.concat(_alike(map(pl.scan_parquet, self.parts)), how="diagonal_relaxed")
        columns = [
            name
            for name in table.collect_schema().names()
            if name not in {LINE, FILE} and (name in self.filled or name in MEASURES)
        ]
        again = pl.Series(dropped, dtype=pl.UInt32)
        rows = table.filter(~pl.int_range(pl.len(), dtype=pl.UInt32).is_in(again.implode()))
        finished = self.folder / self.path.name
        with _writing(self.path):
            if self.path.suffix == ".parquet":
                rows.select(columns).sink_parquet(finished)
            else:
                with finished.open("wb") as file:
                    for batch in rows.select(columns).collect_batches(maintain_order=True):
                        file.write(_json_lines(batch))
            finished.replace(self.path)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError([f"{path}: cannot be written: {error.strerror or error}."]) from error


def _alike(tables: Iterable[pl.LazyFrame]) -> list[pl.LazyFrame]:
    """Convert foreign columns whose types differ between parts to text."""
    parts = list(tables)
    kinds: dict[str, set[pl.DataType]] = {}
    for part in parts:
        for name, kind in part.collect_schema().items():
            kinds.setdefault(name, set()).add(kind)
    mixed = [n for n, k in kinds.items() if len(k) > 1 and not all(x.is_numeric() for x in k)]
    return [part.with_columns(_texts(part, mixed)) for part in parts]


def _texts(part: pl.LazyFrame, names: Sequence[str]) -> list[pl.Expr]:
    there = part.collect_schema()
    columns = [pl.col(n) for n in names if n in there]
    return [c.map_batches(as_text, return_dtype=pl.String, is_elementwise=True) for c in columns]


def _json_lines(batch: pl.DataFrame) -> bytes:
    """Write strict JSON: an infinite cost of pass is the string "Infinity"."""
    cost = pl.col("cost_of_pass")
    batch = batch.with_columns(
        pl.when(cost.is_infinite()).then(_INFINITE).otherwise(cost).alias("cost_of_pass"),
        *(as_text(series) for series in batch if "Binary" in str(series.dtype)),
    )
    mark = pl.DataFrame({"cost_of_pass": [_INFINITE]}).write_ndjson().strip()[1:-1]
    return batch.write_ndjson().replace(mark, '"cost_of_pass":"Infinity"').encode()
