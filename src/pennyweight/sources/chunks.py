"""Cut files into chunks that can be parsed independently.

Reading is sequential and cheap; parsing is neither. So a chunk holds bytes (or a slice of a Parquet
file) and parses itself when called, and several chunks can be parsed at the same time.
"""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, NoReturn

import numpy as np
import polars as pl

from pennyweight.errors import InputError
from pennyweight.sources.files import (
    MAX_LINE,
    PARQUET,
    STDIN,
    UNREADABLE,
    RecordFile,
    open_file,
    too_long,
)
from pennyweight.sources.logs.registry import format_of
from pennyweight.sources.parquet_footer import FooterError, checked_rows
from pennyweight.sources.parsing import Names, Parsed, parse_csv, parse_json_lines, plain_cells
from pennyweight.sources.peek import HEAD, Peek

CHUNK = 16 << 20
ROWS = 50_000
LOOK_AHEAD = 16 << 20
"""The most bytes that are read in search of a closing quote."""
_BOM = b"\xef\xbb\xbf"
_WHITE = " \t\r\n"
_LINE_END = ord("\n")
_LONGEST = 16
"""An error this close to the end of the buffer may only mean that more must be read."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a table that Polars reads."""

    file: str
    frame: pl.LazyFrame
    numbers: range

    def __call__(self, names: Names) -> Parsed:
        """Parse into a frame."""
        with _readable(self.file):
            present = self.frame.collect_schema().names()
            columns = present if names.all else [n for n in present if n in names]
            frame = plain_cells(self.frame.select(columns).collect(), names).rechunk()
        numbers = pl.Series(self.numbers, dtype=pl.UInt32)
        return Parsed(self.file, "row", frame, numbers, frozenset(present))


Chunk = Callable[[Names], Parsed]
"""Parses a part of a file into a frame of the requested columns."""


def may_have(chunk: Chunk, names: Iterable[str]) -> bool:
    """Whether a chunk may have one of these columns, as far as that shows without parsing it."""
    if isinstance(chunk, Rows):
        with _readable(chunk.file):
            return not set(names).isdisjoint(chunk.frame.collect_schema().names())
    if not isinstance(chunk, partial) or chunk.func not in {parse_json_lines, parse_csv}:
        return True
    text = chunk.args[1] if chunk.func is parse_json_lines else chunk.args[3]
    lasts = [name.rpartition(".")[2] for name in names]  # of a path into nested data
    return any(not name.isascii() or name.encode() in text for name in lasts)


def chunks_of(file: RecordFile) -> Iterator[Chunk]:
    """Cut one file into chunks."""
    with open_file(file) as (stream, format_):
        if file.path == STDIN:
            _refuse_log(stream)
        try:
            cut = {"jsonl": _lines, "csv": _csv, "json": _array, "parquet": _parquet}[format_]
            yield from cut(file, stream)
        except UNREADABLE as error:
            raise InputError([f"{file.path}: cannot be read to its end: {error}."]) from error


def _refuse_log(stream: io.BufferedReader) -> None:
    """Refuse the log of another tool on standard input: only files are read as logs."""
    found = format_of(Peek(Path(STDIN), stream.peek(HEAD)))
    if found:
        raise InputError([f"Standard input is a log of {found}; write it to a file and name that."])


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Turn every error about a broken Parquet file into InputError."""
    try:
        yield
    except FooterError as error:
        raise InputError([f"{path}: not a readable Parquet file: {error}."]) from error
    except pl.exceptions.PanicException as error:
        raise InputError([f"{path}: not a readable Parquet file: it is damaged."]) from error
    except pl.exceptions.PolarsError as error:
        reason = str(error).partition("\n")[0]
        raise InputError([f"{path}: not a readable Parquet file: {reason}."]) from error


def _pieces(
    file: RecordFile, stream: IO[bytes], *, quoted: bool = False
) -> Iterator[tuple[range, bytes]]:
    """Read pieces of about `CHUNK` bytes that end with a line, with the numbers of their lines.

    With `quoted`, the end of a line inside of quotes does not end a piece.
    """
    first = 1
    while data := stream.read(CHUNK):
        data += (tail := stream.readline(MAX_LINE))
        if len(tail) == MAX_LINE:
            raise too_long(file, first + data.count(b"\n"))
        if quoted and data.count(b'"') % 2:
            data += b"".join(_to_closed_quote(file, stream, first + data.count(b"\n")))
        after = first + int(np.count_nonzero(np.frombuffer(data, np.uint8) == _LINE_END))
        if not data.isspace():
            yield range(first, after + (not data.endswith(b"\n"))), data
        first = after


def _to_closed_quote(file: RecordFile, stream: IO[bytes], number: int) -> Iterator[bytes]:
    """Read up to the line that closes a quote."""
    size = 0
    while line := stream.readline(MAX_LINE):
        yield line
        size += len(line)
        if line.count(b'"') % 2:
            return
        if size > LOOK_AHEAD:
            near = f"a quote before line {number} is not closed within {LOOK_AHEAD >> 20} MB."
            raise InputError([f"{file.path}: {near}"])


def _lines(file: RecordFile, stream: IO[bytes]) -> Iterator[Chunk]:
    for numbers, piece in _pieces(file, stream):
        data = piece.removeprefix(_BOM) if numbers.start == 1 else piece
        if data and not data.isspace():
            yield partial(parse_json_lines, file.path, data, numbers)


def _csv(file: RecordFile, stream: IO[bytes]) -> Iterator[Chunk]:
    header, separator = b"", ","
    for numbers, piece in _pieces(file, stream, quoted=True):
        line, data = numbers.start, piece
        if not header:
            blank = len(data) - len(data.removeprefix(_BOM).lstrip(b"\r\n"))
            end = data.find(b"\n", blank) + 1 or len(data)
            odd = data.count(b'"', blank, end) % 2
            while end < len(data) and odd:
                start, end = end, data.find(b"\n", end) + 1 or len(data)
                odd ^= data.count(b'"', start, end) % 2
            line += data.count(b"\n", 0, end)
            header, data = data[blank:end].rstrip(b"\r\n"), data[end:]
            separator = max(",;\t", key=lambda s: header.count(s.encode()))
        if data:
            yield partial(parse_csv, file.path, data, line, header, separator)


def _parquet(file: RecordFile, stream: IO[bytes]) -> Iterator[Chunk]:
    if _is_parquet(Path(file.path)):
        yield from _slices(file, Path(file.path))
        return
    with tempfile.TemporaryDirectory(prefix="pennyweight-") as folder:
        path = Path(folder, "records.parquet")
        with path.open("wb") as copy:
            shutil.copyfileobj(stream, copy)
        for rows in _slices(file, path):
            with _readable(file.path):  # now: the copy is deleted after the last slice
                frame = rows.frame.collect()
            yield Rows(file.path, frame.lazy(), rows.numbers)


def _is_parquet(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(PARQUET)) == PARQUET


def _slices(file: RecordFile, path: Path) -> Iterator[Rows]:
    with _readable(file.path):
        height = checked_rows(path)
        frame = pl.scan_parquet(path, glob=False)
    for start in range(0, height, ROWS):
        numbers = range(start + 1, min(start + ROWS, height) + 1)
        yield Rows(file.path, frame.slice(start, ROWS), numbers)


def _array(file: RecordFile, stream: IO[bytes]) -> Iterator[Chunk]:
    """Cut a JSON array, or a sequence of objects, into chunks without loading all of it."""
    texts: list[bytes] = []
    numbers: list[int] = []
    size = 0
    for number, text in _objects(file, stream):
        texts.append(text.replace("\r", " ").replace("\n", " ").encode())
        numbers.append(number)
        size += len(text)
        if size > CHUNK:
            yield partial(parse_json_lines, file.path, b"\n".join(texts), numbers)
            texts, numbers, size = [], [], 0
    if texts:
        yield partial(parse_json_lines, file.path, b"\n".join(texts), numbers)


def _objects(file: RecordFile, stream: IO[bytes]) -> Iterator[tuple[int, str]]:
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    reader = _Text(file, stream)
    if not reader.take("["):
        while reader.skip(_WHITE) is not None:
            yield reader.value(decoder)
        return
    more = not reader.take("]")
    while more:
        yield reader.value(decoder)
        more = reader.take(",")
        if not more and not reader.take("]"):
            reader.refuse("the array is not closed with ']', or a comma is missing.")
    if reader.skip(_WHITE) is not None:
        reader.refuse("there is more after the end of the array.")


class _Text:
    """A buffer over UTF-8 bytes that counts lines."""

    def __init__(self, file: RecordFile, stream: IO[bytes]) -> None:
        self.file, self.stream, self.line = file, stream, 1
        self.text, self.at, self.tail, self.ended = "", 0, b"", False
        self.more()
        self.text = self.text.removeprefix("\ufeff")

    def more(self) -> bool:
        """Read more; return False at the end."""
        data = self.stream.read(CHUNK)
        self.ended = not data
        whole = self.tail + data
        try:
            text = whole.decode()
            self.tail = b""
        except UnicodeDecodeError as error:
            if self.ended or len(whole) - error.start > 3:
                before = self.text.count("\n", self.at) + whole[: error.start].count(b"\n")
                self.refuse("bytes that are not UTF-8.", self.line + before)
            text, self.tail = whole[: error.start].decode(), whole[error.start :]
        self.text, self.at = self.text[self.at :] + text, 0
        return not self.ended

    def refuse(self, why: str, line: int | None = None) -> NoReturn:
        """Raise InputError about a line, by default the current one."""
        raise InputError([f"{self.file.path}, line {line or self.line}: {why}"]) from None

    def skip(self, what: str) -> str | None:
        """Skip some characters; return the next one, or None at the end."""
        while True:
            while self.at < len(self.text):
                character = self.text[self.at]
                if character not in what:
                    return character
                self.line += character == "\n"
                self.at += 1
            if not self.more():
                return None

    def take(self, character: str) -> bool:
        """Take one character if it comes next."""
        found = self.skip(_WHITE) == character
        self.at += found
        return found

    def value(self, decoder: json.JSONDecoder) -> tuple[int, str]:
        """Return the next JSON value as text, with the number of its first line."""
        self.skip(_WHITE)
        while True:
            try:
                _, end = decoder.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                line = self.line + self.text.count("\n", self.at, error.pos)
                cut = error.msg.startswith("Unterminated") or len(self.text) - error.pos < _LONGEST
                if len(self.text) - self.at > MAX_LINE:
                    raise too_long(self.file, self.line) from None
                if not cut or not self.more():
                    self.refuse(f"not JSON: {error.msg}.", line)
                continue
            except RecursionError:
                self.refuse("not JSON that can be read: nested too deeply.")
            number, text = self.line, self.text[self.at : end]
            self.line += text.count("\n")
            self.at = end
            return number, text
