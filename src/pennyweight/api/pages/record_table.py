"""The records that match a filter as one table to download: CSV, JSONL or Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import polars as pl

from pennyweight.render.plain import csv_table
from pennyweight.store.filters import Filter
from pennyweight.store.store import Store
from pennyweight.store.whole_records import whole_records

TableKind = Literal["csv", "jsonl", "parquet"]
KINDS: dict[TableKind, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
"""The kinds of tables, and the media type of each."""
PART_BYTES = 1 << 20


def record_table(store: Store, run: str, wanted: Filter, kind: TableKind) -> Iterator[bytes]:
    """Yield the parts of a file with the whole records, their measures and people's verdicts."""
    frames = whole_records(store, run, wanted)
    if kind == "parquet":
        yield from _parquet(frames)
        return
    for number, frame in enumerate(frames):
        if kind == "jsonl":
            yield frame.write_ndjson().encode()
        else:
            head = [frame.columns] if number == 0 else []
            yield csv_table([*head, *frame.rows()], nulls=True).encode()


def _parquet(frames: Iterator[pl.DataFrame]) -> Iterator[bytes]:
    """Write the parts to files first: the whole table need not fit in memory."""
    with TemporaryDirectory(prefix="pennyweight-table-") as folder:
        parts = []
        for number, frame in enumerate(frames):
            parts.append(Path(folder) / f"{number:08}.parquet")
            frame.write_parquet(parts[-1])
        whole = Path(folder) / "records.parquet"
        pl.scan_parquet(parts).sink_parquet(whole)
        with whole.open("rb") as file:
            while part := file.read(PART_BYTES):
                yield part
