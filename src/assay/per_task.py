"""Every record with its measures, as a file: JSONL or Parquet.

Parts are written as they come and joined at the end, so memory stays bounded, and nothing is
written under the file's own name before all records are known to be good.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from assay.define import MEASURES
from assay.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SUFFIXES = (".jsonl", ".parquet")
_INFINITE = sys.float_info.max
_MARK = f'"cost_of_pass":{_INFINITE!r}'.replace("e+", "e").encode()


@dataclass(frozen=True, slots=True)
class PerTaskResult:
    """What one record gives, with the fields of the specification of reasoning metrics."""

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
    """Parts of the file in a folder of their own, until it is finished."""

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
        with tempfile.TemporaryDirectory(prefix=".assay-", dir=target.parent) as folder:
            yield cls(target, Path(folder))

    def add(self, frame: pl.DataFrame) -> None:
        """Keep the records of one chunk."""
        part = self.folder / f"{len(self.parts):06}.parquet"
        frame.write_parquet(part, compression="lz4")
        self.parts.append(part)
        nulls = frame.null_count().row(0, named=True)
        self.filled |= {name for name, count in nulls.items() if count < frame.height}

    def finish(self, dropped: Sequence[int]) -> None:
        """Write the file, without the rows whose numbers are given."""
        table = pl.concat([pl.scan_parquet(p) for p in self.parts], how="diagonal_relaxed")
        columns = [
            name
            for name in table.collect_schema().names()
            if not name.startswith("_") and (name in self.filled or name in MEASURES)
        ]
        rows = table.with_row_index("_row").filter(~pl.col("_row").is_in(list(dropped)))
        finished = self.folder / self.path.name
        if self.path.suffix == ".parquet":
            rows.select(columns).sink_parquet(finished)
        else:
            with finished.open("wb") as file:
                for batch in rows.select(columns).collect_batches(maintain_order=True):
                    file.write(_json_lines(batch))
        finished.replace(self.path)


def results(frame: pl.DataFrame) -> list[PerTaskResult]:
    """Give the records of a measured frame as plain values."""
    fields = list(PerTaskResult.__dataclass_fields__)
    return [PerTaskResult(**row) for row in frame.select(fields).iter_rows(named=True)]


def _json_lines(batch: pl.DataFrame) -> bytes:
    """Write strict JSON: an infinite cost of pass is the string "Infinity"."""
    if "cost_of_pass" in batch.columns:
        cost: Any = pl.col("cost_of_pass")
        batch = batch.with_columns(
            pl.when(cost.is_infinite())
            .then(pl.lit(_INFINITE))
            .otherwise(cost)
            .alias("cost_of_pass")
        )
    return batch.write_ndjson().encode().replace(_MARK, b'"cost_of_pass":"Infinity"')
