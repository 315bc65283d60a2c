"""Partitioned tables: the files of one table, in folders such as `tier=T0` that name columns."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from glob import glob, has_magic
from pathlib import Path, PurePath
from urllib.parse import unquote

import polars as pl

from pennyweight.errors import InputError
from pennyweight.sources.chunks import Chunk
from pennyweight.sources.files import format_of
from pennyweight.sources.parsing import Names, Parsed, Problem

NULL = "__HIVE_DEFAULT_PARTITION__"
"""What a folder has in place of a missing value, by the convention of Hive."""

PartitionColumns = tuple[tuple[str, str | None], ...]
"""The columns that the folders of a file name, with the value of all of its records."""


def is_pattern(name: str | Path) -> bool:
    """Whether a name is a pattern of paths, such as `runs/*.parquet`, and no path itself."""
    return has_magic(str(name)) and not Path(name).exists()


def matching(pattern: str | Path) -> list[Path]:
    """Return the files that match a pattern; the folders, if no file does.

    `**` matches any number of folders.
    """
    found = [Path(name) for name in sorted(glob(str(pattern), recursive=True))]  # noqa: PTH207
    files = [path for path in found if path.is_file()]
    known = [path for path in files if format_of(path)]
    if paths := known or files or found:
        return paths
    raise InputError(
        [f"{pattern}: no file matches. '*' is any name in one folder, '**' any number of folders."]
    )


def table_root(named: str | PurePath) -> PurePath:
    """Return the folder of the table that a path or pattern names a part of.

    Folders such as `tier=T0` at the end of the path belong to the table, those above do not.

    >>> [str(table_root(f"x=1/t/{name}")) for name in ("", "tier=T0", "*/2024/*.parquet")]
    ['x=1/t', 'x=1/t', 'x=1/t']
    """
    parts = PurePath(named).parts
    fixed = next((n for n, part in enumerate(parts) if has_magic(part)), len(parts))
    if format_of(Path(*parts[:fixed])):
        fixed -= 1
    while fixed and "=" in parts[fixed - 1].lstrip("="):
        fixed -= 1
    return PurePath(*parts[:fixed])


def partition_columns(path: str | PurePath, root: PurePath | None = None) -> PartitionColumns:
    """Read the columns that the folders of a path below `root` name.

    >>> partition_columns("runs/subject=gpt%2F5/tier=T0/part-0.parquet")
    (('subject', 'gpt/5'), ('tier', 'T0'))
    """
    named: dict[str, str | None] = {}
    below = PurePath(path).parts[len(root.parts) if root else 0 : -1]
    for name, equals, written in (part.partition("=") for part in below):
        if name and equals:
            column, value = unquote(name), None if written == NULL else unquote(written)
            if named.setdefault(column, value) != value:
                raise InputError([f"{path}: its folders give {column} two values."])
    return tuple(named.items())


def with_partition_columns(chunk: Chunk, columns: PartitionColumns) -> Chunk:
    """Return a chunk whose records also have the columns that the folders name."""
    return partial(_added, chunk, columns) if columns else chunk


def _added(chunk: Chunk, columns: PartitionColumns, names: Names) -> Parsed:
    parsed = chunk(names)
    frame, numbers = parsed.frame, parsed.numbers
    problems: list[Problem] = list(parsed.problems)
    for name, value in columns:
        if name not in names and not names.all:
            continue
        if name in frame.columns:
            other = _differing(frame[name], value)
            problems += [
                (numbers[row], f"{name} is {frame[name][row]!r}, but its folder is {name}={value}.")
                for row in other.arg_true()
            ]
            frame, numbers = frame.filter(~other), numbers.filter(~other)
        constant = pl.Series(name, [value], pl.String).new_from_index(0, len(numbers))
        frame = frame.with_columns(constant)
    present = parsed.present | {name for name, _ in columns}
    return replace(parsed, frame=frame, numbers=numbers, present=present, problems=problems)


def _differing(own: pl.Series, value: str | None) -> pl.Series:
    """Return which records say something else than their folder."""
    if value is None:
        return own.is_not_null()
    if own.dtype.is_numeric():
        same: pl.Series = own == pl.Series([value]).cast(own.dtype, strict=False)[0]
    else:
        same = own.cast(pl.String, strict=False).str.strip_chars() == value
    return own.is_not_null() & ~same.fill_null(value=False)
