"""Parse chunks into frames of raw cells, with the place of each row and what was wrong.

JSON is parsed by Polars with the record's types. A chunk in which some cell is not of its type is
parsed again as text; one that is not all JSON is then parsed line by line, to name what is wrong.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from assay.errors import InputError

Problem = tuple[int, str]
"""Where (a line or row number) and what."""


@dataclass(frozen=True, slots=True)
class Names:
    """The columns to read, with the types that JSON is parsed into; `all` reads every other too."""

    types: Mapping[str, Any]
    all: bool = False

    def __contains__(self, name: str) -> bool:
        return name in self.types

    def __iter__(self) -> Iterator[str]:
        return iter(self.types)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A chunk as a frame of raw cells."""

    file: str
    unit: str
    """What the numbers count: `line` or `row`."""
    frame: pl.DataFrame
    numbers: pl.Series
    present: frozenset[str] | None = None
    """All columns of the file, where they are known without reading it."""
    problems: Sequence[Problem] = field(default=())


def parse_json_lines(file: str, data: bytes, numbers: Sequence[int], names: Names) -> Parsed:
    """Parse lines of JSON objects, given the number of each line."""
    for types in (dict(names.types), dict.fromkeys(names.types, pl.String)):
        try:
            frame = pl.read_ndjson(data, schema=types)
            if names.all:
                rest = pl.read_ndjson(data, infer_schema_length=None)
                frame = frame.hstack(rest.select(pl.exclude(frame.columns)))
        except (pl.exceptions.PolarsError, UnicodeDecodeError):
            continue
        places = _line_numbers(data, numbers, frame.height)
        if places is not None:
            frame = frame.select(s for s in frame if s.null_count() < frame.height)
            return Parsed(file, "line", frame, places, _keys(data))
    return _parse_each_line(file, data, numbers, names)


def _keys(data: bytes) -> frozenset[str]:
    """Name the columns of the first line; for suggestions."""
    try:
        return frozenset(_json_object(data[: data.find(b"\n")]))
    except ValueError:
        return frozenset()


def _line_numbers(data: bytes, numbers: Sequence[int], height: int) -> pl.Series | None:
    """Number the rows by their lines; None if rows and lines do not match."""
    if len(numbers) == height and isinstance(numbers, range):
        start, stop = numbers.start, numbers.stop
        return pl.select(pl.int_range(start, stop, dtype=pl.UInt32)).to_series()
    lines = zip(numbers, data.split(b"\n"), strict=False)
    filled = [number for number, line in lines if line.strip()]
    return pl.Series(filled, dtype=pl.UInt32) if len(filled) == height else None


def _parse_each_line(file: str, data: bytes, numbers: Sequence[int], names: Names) -> Parsed:
    rows: list[dict[str, str | None]] = []
    places: list[int] = []
    problems: list[Problem] = []
    for place, line in zip(numbers, data.split(b"\n"), strict=False):
        if not line.strip():
            continue
        try:
            rows.append(_json_object(line))
            places.append(place)
        except ValueError as error:
            problems.append((place, str(error)))
    columns = dict.fromkeys(names if not names.all else {k for row in rows for k in row})
    frame = pl.DataFrame(
        {name: [row.get(name) for row in rows] for name in {**dict.fromkeys(names), **columns}},
        schema_overrides=dict.fromkeys({**dict.fromkeys(names), **columns}, pl.String),
    )
    return Parsed(file, "line", frame, pl.Series(places, dtype=pl.UInt32), problems=problems)


def _json_object(line: bytes) -> dict[str, str | None]:
    """Parse one object into cells of text; ValueError says what is wrong."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is not UTF-8.") from None
    try:
        value = json.loads(text, parse_float=_Number, parse_int=_Number, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} (column {error.colno}).") from None
    except RecursionError:
        raise ValueError("not JSON that can be read: nested too deeply.") from None
    if not isinstance(value, dict):
        kind = {list: "an array", _Number: "a number", str: "a string"}.get(type(value), "a value")
        raise ValueError(f"a JSON object is needed here, not {kind}.")
    return {name: _cell(cell) for name, cell in value.items()}


class _Number(str):
    """A JSON number as it is written, since not every one fits a machine's number."""

    __slots__ = ()


def _constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON; write null for a missing value.")


def _cell(value: Any) -> str | None:
    if value is None or type(value) is str:
        return value
    if isinstance(value, _Number):
        number = float(value)
        whole = value.lstrip("-").isdigit() or number in (float("inf"), float("-inf"))
        return str(value) if whole else repr(number)
    return json.dumps(value, ensure_ascii=False)


def parse_csv(
    file: str, data: bytes, first: int, header: bytes, separator: str, names: Names
) -> Parsed:
    """Parse records of a CSV file; every cell is text, an empty one is missing."""
    try:
        columns = next(csv.reader(io.StringIO(header.decode()), delimiter=separator))
    except UnicodeDecodeError:
        raise InputError([f"{file}, line 1: bytes that are not UTF-8."]) from None
    twice = sorted({c for c in columns if columns.count(c) > 1})
    if twice:
        raise InputError([f"{file}, line 1: the column {twice[0]!r} is there twice."])
    try:
        frame = pl.read_csv(
            data,
            has_header=False,
            new_columns=columns,
            separator=separator,
            infer_schema=False,
            truncate_ragged_lines=False,
            raise_if_empty=False,
            schema=dict.fromkeys(columns, pl.String),
        )
        places, problems = _csv_places(data, first, separator, frame.height), []
        if places is None:
            raise pl.exceptions.ComputeError
    except pl.exceptions.PolarsError:
        frame, places, problems = _parse_each_row(data, first, columns, separator)
    wanted = columns if names.all else [c for c in columns if c in names]
    numbers = pl.Series(places, dtype=pl.UInt32)
    return Parsed(file, "line", frame.select(wanted), numbers, frozenset(columns), problems)


def _csv_places(data: bytes, first: int, separator: str, height: int) -> Sequence[int] | None:
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    if lines == height:
        return range(first, first + height)
    places = [place for place, cells in _csv_rows(data.decode(), first, separator) if cells]
    return places if len(places) == height else None


def _csv_rows(text: str, first: int, separator: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    place = first
    for cells in reader:
        yield place, cells
        place = first + reader.line_num


def _parse_each_row(
    data: bytes, first: int, columns: list[str], separator: str
) -> tuple[pl.DataFrame, list[int], list[Problem]]:
    problems: list[Problem] = []
    lines = data.split(b"\n")
    for index, line in enumerate(lines):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            problems.append((first + index, f"byte {error.start + 1} is not UTF-8."))
    rows: list[list[str | None]] = []
    places: list[int] = []
    bad = {place for place, _ in problems}
    csv.field_size_limit(len(data) + 1)
    for place, cells in _csv_rows(data.decode(errors="replace"), first, separator):
        if not cells or place in bad:
            continue
        if len(cells) > len(columns):
            cut = f"{len(cells)} cells where the header has {len(columns)}."
            problems.append((place, cut))
            continue
        missing = [""] * (len(columns) - len(cells))
        rows.append([cell or None for cell in (*cells, *missing)])
        places.append(place)
    frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
    return frame, places, problems
