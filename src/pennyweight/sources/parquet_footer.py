"""The footer of a Parquet file: how many records it promises, and whether its pages hold as many.

Readers believe the footer. One that promises fewer records than the file has loses them without a
word, and one that is damaged makes Polars panic. So it is checked before Polars reads the file.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO, Any

MAGIC = b"PAR1"
_TRAILER = 8
_DEEPEST = 32
_DEEPEST_COLUMN = 100
"""How deep columns are nested at most: a list of lists has four levels."""
_PAGE_HEADER = 1 << 16
"""The most bytes of a page's header that are read at first; statistics can make it long."""
_MOST_HEADER = 16 << 20
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = (
    *(0, 1, 2, 3, 7, 8, 9, 10, 11, 12),
)
_INTEGERS = (4, 5, 6)
_DATA, _DATA_V2 = 0, 3
"""Kinds of pages that hold values."""

Struct = dict[int, Any]
"""A Thrift struct: its fields by their number."""


class FooterError(ValueError):
    """A footer that cannot be read, or that does not agree with the file."""


def checked_rows(path: Path) -> int:
    """Return how many records a Parquet file has; raise FooterError if its parts disagree."""
    with path.open("rb") as file:
        try:
            footer = _footer(file)
            groups = [(group[3], group[1]) for group in footer.get(4, ())]
            rows: int = footer[3] + 0  # text is no number
            flat = _flat_columns(footer[2])
            if (
                rows != sum(size for size, _ in groups)
                or min((n for n, _ in groups), default=0) < 0
            ):
                inside = sum(size for size, _ in groups)
                raise FooterError(f"its footer promises {rows:,} rows, its parts {inside:,}")
            for size, columns in groups:
                _check_group(file, size, columns, flat)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise FooterError("its footer is damaged") from error
    return rows


def _footer(file: IO[bytes]) -> Struct:
    end = file.seek(0, io.SEEK_END)
    file.seek(max(0, end - _TRAILER))
    trailer = file.read(_TRAILER)
    size = int.from_bytes(trailer[:4], "little")
    if trailer[4:] != MAGIC or not 0 < size <= end - _TRAILER - len(MAGIC):
        raise FooterError("it is cut off, or its footer is damaged")
    file.seek(end - _TRAILER - size)
    return _Thrift(file.read(size)).struct()


def _flat_columns(schema: list[Struct]) -> list[bool]:
    """Return which of the stored columns have exactly one value a record."""
    found: list[bool] = []

    def visit(place: int, depth: int, *, flat: bool) -> int:
        if depth > _DEEPEST_COLUMN:
            raise FooterError("its columns are nested too deeply")
        element = schema[place]
        flat = flat and element.get(3) != 2  # not repeated
        children = element.get(5, 0)
        if not children:
            found.append(flat)
        place += 1
        for _ in range(children):
            place = visit(place, depth + 1, flat=flat)
        return place

    root = schema[0].get(5, 0)
    place = 1
    for _ in range(root):
        place = visit(place, 1, flat=True)
    if place != len(schema):
        raise FooterError("its footer is damaged")
    return found


def _check_group(file: IO[bytes], rows: int, columns: list[Struct], flat: list[bool]) -> None:
    """Compare the number of records with the values that the columns promise and one holds."""
    if len(columns) != len(flat):
        raise FooterError("its footer is damaged")
    for column, single in zip(columns, flat, strict=True):
        values = column[3][5]
        if values != rows if single else values < rows:
            raise FooterError(f"its footer promises {rows:,} rows, a column {values:,} values")
    if True in flat:
        chunk = columns[flat.index(True)]
        if 1 not in chunk:  # the values are in this file
            held = _held(file, chunk[3])
            if held != rows:
                raise FooterError(f"its footer promises {rows:,} rows, its pages hold {held:,}")


def _held(file: IO[bytes], chunk: Struct) -> int:
    """Count the values in the pages of a column."""
    start = min(chunk[9], chunk.get(11) or chunk[9])
    place, end, held = start, start + chunk[7], 0
    if not 0 <= start <= end <= file.seek(0, io.SEEK_END):
        raise FooterError("its footer names a place outside the file")
    while place < end:
        header, size = _page(file, place)
        if header[1] in {_DATA, _DATA_V2}:
            held += header[5 if header[1] == _DATA else 8][1]
        if header[3] < 0:
            raise FooterError("its pages are damaged")
        place += size + header[3]
    return held


def _page(file: IO[bytes], place: int) -> tuple[Struct, int]:
    """Read the header of a page, and how long it is."""
    room = 256
    while True:
        file.seek(place)
        data = file.read(room)
        thrift = _Thrift(data)
        try:
            return thrift.struct(), thrift.at
        except FooterError:
            if len(data) < room or room >= _MOST_HEADER:
                raise
            room = min(room * 16, _MOST_HEADER)


class _Thrift:
    """Reads values in Thrift's compact form."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.depth = data, 0, 0

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise FooterError("its footer is nested too deeply")

    def struct(self) -> Struct:
        self.deeper()
        fields: Struct = {}
        number = 0
        while True:
            head = self.byte()
            kind = head & 15
            if head == _STOP:
                self.depth -= 1
                return fields
            number = number + (head >> 4) if head >> 4 else self.integer()
            fields[number] = kind == _TRUE if kind in {_TRUE, _FALSE} else self.value(kind)

    def value(self, kind: int) -> Any:
        if kind in _INTEGERS:
            return self.integer()
        if kind == _BINARY:
            return self.bytes(self.varint())
        if kind == _STRUCT:
            return self.struct()
        if kind in {_LIST, _SET}:
            return self.list()
        if kind in {_BYTE, _TRUE, _FALSE}:
            return self.byte()
        if kind == _DOUBLE:
            return self.bytes(8)
        raise FooterError("its footer is damaged")  # maps, which Parquet does not have

    def list(self) -> list[Any]:
        head = self.byte()
        size = head >> 4
        if size == 15:
            size = self.varint()
        if size > len(self.data) - self.at:
            raise FooterError("its footer is damaged")
        self.deeper()
        values = [self.value(head & 15) for _ in range(size)]
        self.depth -= 1
        return values

    def integer(self) -> int:
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def varint(self) -> int:
        number = shift = 0
        while shift < 70:
            byte = self.byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
        raise FooterError("its footer is damaged")

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise FooterError("its footer is damaged")
        self.at += 1
        return self.data[self.at - 1]

    def bytes(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise FooterError("its footer is damaged")
        self.at += size
        return self.data[self.at - size : self.at]
