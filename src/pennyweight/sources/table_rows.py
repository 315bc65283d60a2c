"""Rows of a table that a tool wrote as JSONL, CSV or Parquet, each as a mapping."""

from __future__ import annotations

import ast
import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pennyweight.errors import InputError
from pennyweight.sources.files import MAX_LINE, PARQUET, UNREADABLE, RecordFile, open_file
from pennyweight.sources.json_array import JsonArray, loads
from pennyweight.sources.json_lines import json_lines
from pennyweight.sources.log_format import Log
from pennyweight.sources.peek import Peek

_SLICE = 1_000
_PYTHON, _LONG = "[{(TFN", 1 << 20
"""How a value begins that Python wrote, and from which length on it stays a text."""


def one_table(path: Path) -> Path:
    """Return the path without its ending: tables that differ only in it hold the same rows."""
    return path.with_suffix("")


def best_form(log: Log, among: Sequence[Path] = ()) -> list[Path]:
    """Return the form of a table that loses least, and say which are not read."""
    best = min(among or log.files, key=lambda path: (path.suffix.lower() == ".csv", path))
    if others := [path.name for path in log.files if path != best]:
        log.note(f"not read: {', '.join(others)}, the same rows as {best.name}.")
    return [best]


def table_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the place and the row of each line, told by the content; None for what is no row."""
    head = Peek.of(path)
    if head.head.startswith(PARQUET):
        yield from _parquet(path)
    elif head.head.lstrip().startswith(b"["):
        yield from ((f"row {n}", loads(text)) for n, text in enumerate(JsonArray(path), 1))
    elif head.head.lstrip().startswith(b"{"):
        yield from ((f"line {n}", value) for n, value in json_lines(path))
    else:
        yield from _csv(path)


def _parquet(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        frame = pl.scan_parquet(path, glob=False)
        total = frame.select(pl.len()).collect().item()
        for start in range(0, total, _SLICE):
            rows = frame.slice(start, _SLICE).collect().iter_rows(named=True)
            yield from ((f"row {start + n}", row) for n, row in enumerate(rows, 1))
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError([f"{path}: not Parquet that can be read: {reason}."]) from error


def _csv(path: Path) -> Iterator[tuple[str, Any]]:
    csv.field_size_limit(MAX_LINE)
    try:
        with open_file(RecordFile(str(path), "csv")) as (stream, _):
            text = io.TextIOWrapper(stream, "utf-8-sig", "replace", newline="")
            reader = csv.DictReader(text)
            for row in reader:
                whole = None not in row and None not in row.values()
                yield f"line {reader.line_num}", row if whole else None
    except (csv.Error, *UNREADABLE) as error:
        raise InputError([f"{path}: cannot be read to its end: {error}."]) from error


def cell(value: Any) -> Any:
    """Return what a cell of a CSV file means: JSON, or a list or mapping as Python writes it.

    >>> cell("['a', None]"), cell('{"a": 1}'), cell("1.5"), cell("True"), cell(""), cell("text")
    (['a', None], {'a': 1}, 1.5, True, None, 'text')
    """
    if not isinstance(value, str):
        return value
    if not value:
        return None
    if (found := loads(value.encode("utf-8", "replace"))) is not None:
        return found
    try:
        return ast.literal_eval(value) if value[0] in _PYTHON and len(value) < _LONG else value
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return value
