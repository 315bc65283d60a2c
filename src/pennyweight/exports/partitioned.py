"""Records as a partitioned table: Parquet files in folders such as `subject=ours/tier=T0`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import polars as pl

from pennyweight.errors import UsageError, unknown
from pennyweight.sources.partitions import NULL

ROWS = 100_000
"""How many records are gathered before they are written, so that parts are few and large."""
MAX_FOLDERS = 10_000
LONGEST_NAME = 255
"""How many bytes the name of a folder has at most, on the usual file systems."""


def write_partitions(folder: Path, frames: Iterable[pl.DataFrame], by: Sequence[str]) -> None:
    """Write records to a folder for each value of these columns, which the files then lack."""
    made: set[tuple[str, ...]] = set()
    for number, frame in enumerate(_large(frames)):
        for column in by:
            if column not in frame.columns:
                there = "The records do not have it."
                raise UsageError(
                    f"--partition-by: {unknown('Column', column, frame.columns, there)}"
                )
        for values, rows in frame.partition_by(by, as_dict=True, maintain_order=True).items():
            place = tuple(map(_folder, by, values))
            _refuse_long(by, values, place)
            made.add(place)
            if len(made) > MAX_FOLDERS:
                raise UsageError(
                    f"--partition-by {','.join(by)}: there are more than {MAX_FOLDERS:,} folders "
                    "to write. Choose columns with fewer values."
                )
            inside = folder.joinpath(*place)
            inside.mkdir(parents=True, exist_ok=True)
            rows.drop(by).write_parquet(inside / f"part-{number:06}.parquet")


def _refuse_long(by: Sequence[str], values: Sequence[object], place: Sequence[str]) -> None:
    """Refuse a value that cannot be the name of a folder."""
    for column, value, name in zip(by, values, place, strict=True):
        if len(name.encode()) > LONGEST_NAME:
            raise UsageError(
                f"--partition-by {column}: a value is too long for the name of a folder: "
                f"{str(value)[:60]!r}… ({len(str(value)):,} characters). Choose another column."
            )


def _folder(column: str, value: object) -> str:
    """Return the name of the folder of a value.

    >>> _folder("subject", "local/small 2"), _folder("tier", None)
    ('subject=local%2Fsmall%202', 'tier=__HIVE_DEFAULT_PARTITION__')
    """
    written = NULL if value is None else quote(str(value), safe="")
    if value == NULL:  # a text like any other
        written = written.replace("_", "%5F")
    return f"{quote(column, safe='')}={written}"


def _large(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    waiting: list[pl.DataFrame] = []
    for frame in frames:
        waiting.append(frame)
        if sum(one.height for one in waiting) >= ROWS:
            yield pl.concat(waiting, how="diagonal_relaxed")
            waiting = []
    if waiting:
        yield pl.concat(waiting, how="diagonal_relaxed")
