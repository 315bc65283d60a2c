"""Parse chunks into frames of raw cells, with the place of each row and the problems.

Polars parses JSON with the types of the record. If a cell has another type, the chunk is parsed
again as text; if it is not valid JSON, it is parsed line by line to find what is wrong.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pennyweight.errors import InputError

Problem = tuple[int, str]
"""The number of the line or row, and the message."""

_COUNTED = 8
"""Counting a key in a chunk takes about as long as looking up this many names."""
_LONGEST_CELL = 2**31 - 1
MAX_COLUMNS = 10_000
"""The most columns of a CSV file."""


@dataclass(frozen=True, slots=True)
class Names:
    """The columns to read, with the types that JSON is parsed into; `all` also reads all others."""

    types: Mapping[str, Any]
    all: bool = False

    def __contains__(self, name: object) -> bool:
        return name in self.types

    def __iter__(self) -> Iterator[str]:
        return iter(self.types)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A chunk as a frame of raw cells."""

    file: str
    unit: str
    frame: pl.DataFrame
    numbers: pl.Series
    present: frozenset[str] = frozenset()
    """The columns of the file, as far as the chunk shows them."""
    problems: Sequence[Problem] = field(default=())


def parse_json_lines(file: str, data: bytes, numbers: Sequence[int], names: Names) -> Parsed:
    """Parse lines of JSON objects, given the number of each line."""
    keys = _keys(data)
    paths = {n: n.split(".") for n in names.types if "." in n and n not in keys}
    paths = {name: path for name, path in paths.items() if path[0] in keys}
    if paths:
        data = b"\n".join(_with_nested(line, paths) for line in data.split(b"\n"))
        keys = _keys(data)
    usual = {name: kind for name, kind in names.types.items() if name in keys}
    for types in (usual, dict(names.types), dict.fromkeys(names.types, pl.String)):
        try:
            if types is usual and (names.all or not usual):
                continue
            frame = pl.read_ndjson(data, schema=types)
            if types is usual and not _only(keys, data, frame):
                continue
            if names.all:
                rest = pl.read_ndjson(data, infer_schema_length=None)
                frame = frame.hstack(rest.select(pl.exclude(frame.columns)))
        except (pl.exceptions.PolarsError, UnicodeDecodeError):
            continue
        places = _line_numbers(data, numbers, frame.height)
        if places is not None:
            return Parsed(file, "line", _filled(frame), places, keys)
    return _parse_each_line(file, data, numbers, names)


def _with_nested(line: bytes, paths: Mapping[str, Sequence[str]]) -> bytes:
    """Add the values at these paths to an object, under their paths as names.

    >>> _with_nested(b'{"a": {"b": 0.50}}', {"a.b": ["a", "b"]})
    b'{"a": {"b": 0.50}, "a.b": 0.50}'
    """
    try:
        found = json.loads(line, parse_float=_WrittenNumber, parse_int=_WrittenNumber)
    except (ValueError, RecursionError):
        return line  # it is reported where lines are read
    body = line.rstrip()
    for name, path in paths.items():
        value = found
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            written = value if isinstance(value, _WrittenNumber) else json.dumps(value)
            body = body[:-1] + b", " + f"{json.dumps(name)}: {written}".encode() + b"}"
    return body


class _WrittenNumber(str):
    """A number as it is written."""

    __slots__ = ()


def _only(keys: frozenset[str], data: bytes, frame: pl.DataFrame) -> bool:
    """Whether there are certainly no other keys: each colon after a quote belongs to one of these.

    Looking up some sixty absent names would take as long as parsing those that are present.
    """
    unsure = [k for k in keys if k not in frame or frame[k].null_count()]
    if len(unsure) > _COUNTED:
        return False
    text = np.frombuffer(data, np.uint8)
    colons = np.flatnonzero(text == ord(":"))
    before = text[colons - 1]
    quotes = colons[before == ord('"')] - 1
    sure = (len(keys) - len(unsure)) * frame.height
    found = sure + sum(_ending(text, quotes, json.dumps(k)[:-1].encode()) for k in unsure)
    return found == len(quotes) and not (before <= ord(" ")).any()


def _ending(text: NDArray[np.uint8], places: NDArray[np.intp], key: bytes) -> int:
    """Count the places right after a key; to search the whole text for it takes longer."""
    for byte in reversed(key):
        places = places[text[places - 1] == byte] - 1
    return len(places)


def _filled(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(s for s in frame if s.null_count() < frame.height)


def _keys(data: bytes) -> frozenset[str]:
    """Return the columns of the first line; for suggestions."""
    first = next(iter(io.BytesIO(data)), b"")
    try:
        return frozenset(_json_object(first))
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
    seen = dict.fromkeys(key for row in rows for key in row)
    frame = pl.DataFrame(
        {name: [row.get(name) for row in rows] for name in seen if names.all or name in names},
        schema_overrides=dict.fromkeys(seen, pl.String),
    )
    lines = pl.Series(places, dtype=pl.UInt32)
    return Parsed(file, "line", _filled(frame), lines, frozenset(seen), problems)


def _json_object(line: bytes) -> dict[str, str | None]:
    """Parse one object into cells of text; ValueError says what is wrong."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is not UTF-8.") from None
    try:
        value = _decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} (column {error.colno}).") from None
    except RecursionError:
        raise ValueError("not JSON that can be read: nested too deeply.") from None
    if not isinstance(value, dict):
        kinds: dict[type, str] = {list: "an array", _JsonNumber: "a number", str: "a string"}
        kind = kinds.get(type(value), "a value")
        raise ValueError(f"a JSON object is needed here, not {kind}.")
    return {_sound(name): _cell(cell) for name, cell in value.items()}


class _JsonNumber(str):
    """A JSON number as written, since not every number fits a float."""

    __slots__ = ()


def _constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON; write null for a missing value.")


_decode = json.JSONDecoder(
    parse_float=_JsonNumber,
    parse_int=_JsonNumber,
    parse_constant=_constant,
    object_pairs_hook=lambda pairs: dict(reversed(pairs)),  # the first of equal keys, as in Polars
).decode


def _sound(text: str) -> str:
    """Replace lone surrogates, which no table can hold."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _cell(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, _JsonNumber):
        number = float(value)
        whole = value.lstrip("-").isdigit() or number in (float("inf"), float("-inf"))
        return str(value) if whole else f"{Decimal(repr(number)):f}".removesuffix(".0")
    return _sound(value if isinstance(value, str) else _written(value))


def _written(value: Any) -> str:
    """Return a nested value as JSON, its numbers as written."""
    if isinstance(value, dict):
        inside = (f"{json.dumps(k, ensure_ascii=False)}: {_written(v)}" for k, v in value.items())
        return "{" + ", ".join(inside) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return str(value) if isinstance(value, _JsonNumber) else json.dumps(value, ensure_ascii=False)


def parse_csv(
    file: str, data: bytes, first: int, header: bytes, separator: str, names: Names
) -> Parsed:
    """Parse records of a CSV file; every cell is text, an empty one is missing."""
    columns = _csv_header(file, header, separator)
    problems: list[Problem] = []
    try:
        frame = pl.read_csv(
            data,
            has_header=False,
            new_columns=columns,
            separator=separator,
            infer_schema=False,
            truncate_ragged_lines=False,
            raise_if_empty=False,
            null_values="",
            schema=dict.fromkeys(columns, pl.String),
        )
        places = _csv_places(data, first, separator, frame.height)
        if places is None:
            raise pl.exceptions.ComputeError
    except (pl.exceptions.PolarsError, UnicodeDecodeError):
        frame, places, problems = _parse_each_row(data, first, columns, separator)
    filled = ~_blank(frame)
    wanted = columns if names.all else [c for c in columns if c in names]
    numbers = pl.Series(places, dtype=pl.UInt32).filter(filled)
    frame = frame.filter(filled).select(wanted)
    return Parsed(file, "line", frame, numbers, frozenset(columns), problems)


def _csv_header(file: str, header: bytes, separator: str) -> list[str]:
    try:
        columns = [name.strip() for name in next(_csv_reader(header.decode(), separator))]
    except UnicodeDecodeError:
        raise InputError([f"{file}, line 1: bytes that are not UTF-8."]) from None
    except csv.Error as error:
        raise InputError([f"{file}, line 1: not the header of a CSV file: {error}."]) from None
    if len(columns) > MAX_COLUMNS:
        message = f"{len(columns):,} columns; at most {MAX_COLUMNS:,} can be read."
        raise InputError([f"{file}, line 1: {message}"])
    twice = sorted(name for name, count in Counter(columns).items() if count > 1)
    if twice:
        raise InputError([f"{file}, line 1: the column {twice[0]!r} appears twice."])
    return columns


def _blank(frame: pl.DataFrame) -> pl.Series:
    first, *others = frame.columns
    empty = pl.col(first).str.strip_chars().fill_null("") == ""
    nothing = (pl.col(n).is_null() for n in others)
    return frame.select(pl.all_horizontal(empty, *nothing)).to_series()


def _csv_places(data: bytes, first: int, separator: str, height: int) -> Sequence[int] | None:
    """Return the line at which each row begins; None if rows and lines do not match."""
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    if lines == height:
        return range(first, first + height)
    rows = list(_csv_rows(data.decode(), first, separator))
    sound = len(rows) == height and not any(isinstance(cells, str) for _, cells in rows)
    return [lines.start for lines, _ in rows] if sound else None


def _csv_reader(text: str, separator: str) -> Any:
    csv.field_size_limit(_LONGEST_CELL)
    return csv.reader(io.StringIO(text, newline="\n"), delimiter=separator, strict=True)


def _csv_rows(text: str, first: int, separator: str) -> Iterator[tuple[range, list[str] | str]]:
    """Yield the lines and the cells of each row, or the reason why it cannot be parsed."""
    reader = _csv_reader(text, separator)
    start, ended = first, False
    while not ended:
        cells: list[str] | str | None
        try:
            cells = next(reader, None)
        except csv.Error as error:
            unclosed = str(error) == "unexpected end of data"
            cells = "a quote is opened here, but never closed." if unclosed else f"{error}."
        end = first + reader.line_num
        if cells is not None:
            yield range(start, end), cells
        start, ended = end, cells is None


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
    for where, cells in _csv_rows(data.decode(errors="replace"), first, separator):
        if not bad.isdisjoint(where):
            continue
        if isinstance(cells, str):
            problems.append((where.start, f"not CSV: {cells}"))
        elif len(cells) > len(columns):
            cut = f"{len(cells)} cells where the header has {len(columns)}."
            problems.append((where.start, cut))
        else:
            missing = [""] * (len(columns) - len(cells))
            rows.append([cell or None for cell in (*cells, *missing)])
            places.append(where.start)
    frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
    return frame, places, problems


def plain_cells(frame: pl.DataFrame, names: Names) -> pl.DataFrame:
    """Convert cells of types that JSON and CSV do not have to what those would hold."""
    return frame.with_columns(
        _plain(series, names.types[series.name]) for series in frame if series.name in names
    )


def _plain(series: pl.Series, wanted: Any) -> pl.Series:
    kind = series.dtype
    if isinstance(kind, pl.Array):
        series, kind = series.arr.to_list(), pl.List(kind.inner)
    if isinstance(kind, pl.List) and isinstance(wanted, pl.List):
        if kind.inner == pl.Null:  # all lists are empty, or hold nothing but nulls
            return series.cast(wanted)
        if kind.inner.is_numeric() or (wanted.inner == pl.String and not kind.inner.is_nested()):
            return series
    if kind.is_nested() or kind in {pl.Binary, pl.Object}:
        return as_text(series)
    return series.dt.total_microseconds() / 1e6 if kind == pl.Duration else series


def as_text(series: pl.Series) -> pl.Series:
    """Convert the cells of any column to text; nested ones to JSON."""
    kind = series.dtype
    if not kind.is_nested() and kind not in {pl.Binary, pl.Object, pl.Duration}:
        return series.cast(pl.String)
    return pl.Series(series.name, list(map(_cell_text, series.to_list())), dtype=pl.String)


def _cell_text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, list | dict):
        return _sound(json.dumps(value, ensure_ascii=False, default=str))
    return None if value is None else str(value)
