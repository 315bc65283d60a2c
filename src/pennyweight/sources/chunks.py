"""Cut files into chunks that can be parsed independently.

Reading is sequential and cheap; parsing is neither. So a chunk holds bytes (or a slice of a Parquet
file) and parses itself when called, and several chunks can be parsed at the same time.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, NoReturn

import polars as pl

from pennyweight.errors import InputError
from pennyweight.sources.files import PARQUET, UNREADABLE, RecordFile, open_file
from pennyweight.sources.parsing import Names, Parsed, parse_csv, parse_json_lines, plain_cells

CHUNK = 16 << 20
ROWS = 50_000
LOOK_AHEAD = 16 << 20
"""The most bytes that are read in search of a closing quote."""
_BOM = b"\xef\xbb\xbf"
_WHITE = " \t\r\n"
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


def chunks_of(file: RecordFile) -> Iterator[Chunk]:
    """Cut one file into chunks."""
    with open_file(file) as (stream, format_):
        try:
            cut = {"jsonl": _lines, "csv": _csv, "json": _array, "parquet": _parquet}[format_]
            yield from cut(file, stream)
        except UNREADABLE as error:
            raise InputError([f"{file.path}: cannot be read to its end: {error}."]) from error


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Turn every error of Polars on a broken Parquet file into InputError."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = str(error).partition("\n")[0]
        raise InputError([f"{path}: not a readable Parquet file: {reason}."]) from error


def _pieces(stream: IO[bytes], *, quoted: bool = False) -> Iterator[bytes]:
    """Read pieces of about `CHUNK` bytes that end with a line; `quoted` line ends do not count."""
    while data := b"".join((stream.read(CHUNK), stream.readline())):
        if quoted and data.count(b'"') % 2:
            data += b"".join(_to_closed_quote(stream))
        if not data.isspace():
            yield data


def _to_closed_quote(stream: IO[bytes]) -> Iterator[bytes]:
    """Read up to the line that closes a quote, within LOOK_AHEAD."""
    size = 0
    while size < LOOK_AHEAD and (line := stream.readline()):
        yield line
        size += len(line)
        if line.count(b'"') % 2:
            return


def _lines(file: RecordFile, stream: IO[bytes]) -> Iterator[Chunk]:
    line = 1
    for piece in _pieces(stream):
        after = line + piece.count(b"\n")
        data = piece.removeprefix(_BOM) if line == 1 else piece
        if data and not data.isspace():
            numbers = range(line, after + (not piece.endswith(b"\n")))
            yield partial(parse_json_lines, file.path, data, numbers)
        line = after


def _csv(file: RecordFile, stream: IO[bytes]) -> Iterator[Chunk]:
    header, separator, line = b"", ",", 1
    for piece in _pieces(stream, quoted=True):
        data = piece
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
            line += data.count(b"\n")


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
        frame = pl.scan_parquet(path, glob=False)
        height = frame.select(pl.len()).collect().item()
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
        self.path, self.stream, self.line = file.path, stream, 1
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
        raise InputError([f"{self.path}, line {line or self.line}: {why}"]) from None

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
                if not cut or not self.more():
                    self.refuse(f"not JSON: {error.msg}.", line)
                continue
            except RecursionError:
                self.refuse("not JSON that can be read: nested too deeply.")
            number, text = self.line, self.text[self.at : end]
            self.line += text.count("\n")
            self.at = end
            return number, text
