"""Records that are the same attempt as another one, in memory and on disk."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from pennyweight.record import KEY
from pennyweight.scoring.large.spill import IDENTITY, Spill
from pennyweight.sources.conversion import LINE
from pennyweight.sources.loader import FILE, Loaded

ROW = "\0row"


def suspects(spill: Spill, by: Sequence[str]) -> pl.DataFrame:
    """Return the records whose identity occurs again, with the number of each; few or none."""
    if not spill.filled["task_id"]:
        return pl.DataFrame()
    hashes = spill.column(IDENTITY).drop_nulls().sort()
    again = hashes.filter(hashes == hashes.shift(1)).unique()
    if again.is_empty():
        return pl.DataFrame()
    columns = [*dict.fromkeys((*KEY, *by, LINE, FILE)), IDENTITY]
    found, first = [], 0
    for path, size in zip(spill.parts, spill.sizes, strict=True):
        rows = pl.read_parquet(path, columns=columns).with_row_index(ROW, first)
        found.append(rows.filter(pl.col(IDENTITY).is_in(again.implode())))
        first += size
    return pl.concat(found)


def without_doubles(
    frame: pl.DataFrame, loaded: Loaded, by: Sequence[str]
) -> tuple[pl.DataFrame, list[int]]:
    """Drop all but the first record of each attempt; the others are problems."""
    key = [n for n in dict.fromkeys((*KEY, *by)) if n != "attempt"]
    attempt = pl.col("attempt").fill_null(1)
    hashed = frame.select(pl.struct(*key, attempt).hash())
    named = frame["task_id"].null_count() < frame.height
    if not named or hashed.to_series().n_unique() == frame.height:
        return frame, []
    doubles = report_doubles(frame.with_row_index(ROW), loaded, by)
    if not doubles:
        return frame, []
    rows = frame.with_columns(attempt)
    return rows.filter(~pl.int_range(pl.len()).is_in(doubles)), doubles


def report_doubles(rows: pl.DataFrame, loaded: Loaded, by: Sequence[str]) -> list[int]:
    """Report the records that are the same attempt as an earlier one; return their numbers."""
    key = [n for n in dict.fromkeys((*KEY, *by)) if n != "attempt"]
    rows = rows.with_columns(pl.col("attempt").fill_null(1))
    first = [pl.col(n).first().over(*key, "attempt").alias(f"{n}/first") for n in (ROW, FILE, LINE)]
    again = rows.with_columns(first).filter(
        pl.col("task_id").is_not_null() & (pl.col(ROW) != pl.col(f"{ROW}/first"))
    )
    for row in again.head(20).iter_rows(named=True):
        before = loaded.place(row[f"{FILE}/first"], row[f"{LINE}/first"])
        loaded.problems.append(
            f"{loaded.place(row[FILE], row[LINE])}: task {row['task_id']!r}: the same attempt "
            f"({row['attempt']}) as in {before}; number repeated "
            "tries in a column 'attempt', or name theirs with --map attempt=COLUMN."
        )
    loaded.problem_count += again.height
    return again[ROW].to_list()
