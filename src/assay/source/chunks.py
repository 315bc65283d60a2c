"""Cut files into chunks that can be parsed apart from each other.

Reading is sequential and cheap, parsing is neither: so a chunk holds bytes (or a slice of a
Parquet file) and knows how to become a frame, and several can be parsed at the same time.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import polars as pl

from assay.errors import InputError
from assay.source.files import File, open_file
from assay.source.parse import Parsed, parse_csv, parse_json_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assay.source.parse import Names

CHUNK = 16 << 20
ROWS = 50_000
_BOM = b"\xef\xbb\xbf"
_WHITE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class JsonLines:
    """Lines of JSON objects, with their line numbers (blank lines have one too)."""

    file: str
    data: bytes
    numbers: Sequence[int]

    def parse(self, names: Names) -> Parsed:
        """Parse into a frame."""
        return parse_json_lines(self.file, self.data, self.numbers, names)


@dataclass(frozen=True, slots=True)
class Csv:
    """Whole records of a CSV file, without its header."""

    file: str
    data: bytes
    first: int
    header: bytes
    separator: str

    def parse(self, names: Names) -> Parsed:
        """Parse into a frame."""
        return parse_csv(self.file, self.data, self.first, self.header, self.separator, names)


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a table that Polars reads itself."""

    file: str
    frame: pl.LazyFrame
    first: int

    def parse(self, names: Names) -> Parsed:
        """Parse into a frame."""
        present = self.frame.collect_schema().names()
        columns = present if names.all else [n for n in present if n in names]
        frame = self.frame.select(columns, pl.len().alias("_rows")).collect()
        numbers = pl.Series(range(self.first, self.first + frame.height), dtype=pl.UInt32)
        return Parsed(self.file, "row", frame.drop("_rows"), numbers, frozenset(present))


Chunk = JsonLines | Csv | Rows


def chunks_of(file: File) -> Iterator[Chunk]:
    """Cut one file into chunks."""
    stream, format_ = open_file(file)
    with stream:
        try:
            cut = {"jsonl": _lines, "csv": _csv, "json": _array, "parquet": _parquet}[format_]
            yield from cut(file, stream)
        except (OSError, EOFError) as error:
            raise InputError([f"{file.path}: cannot be read to its end: {error}."]) from error
        except pl.exceptions.PolarsError as error:
            reason = str(error).splitlines()[0]
            raise InputError([f"{file.path}: not a readable {format_} file: {reason}."]) from error


def _pieces(stream: IO[bytes], *, quoted: bool = False) -> Iterator[bytes]:
    """Read pieces of about `CHUNK` bytes that end with a line; `quoted` line ends do not count."""
    while data := stream.read(CHUNK):
        data += stream.readline()
        while quoted and data.count(b'"') % 2 and (line := stream.readline()):
            data += line
        if data.strip():
            yield data


def _lines(file: File, stream: IO[bytes]) -> Iterator[Chunk]:
    line = 1
    for piece in _pieces(stream):
        after = line + piece.count(b"\n")
        data = piece.removeprefix(_BOM) if line == 1 else piece
        yield JsonLines(file.path, data, range(line, after + (not piece.endswith(b"\n"))))
        line = after


def _csv(file: File, stream: IO[bytes]) -> Iterator[Chunk]:
    header, separator, line = b"", ",", 1
    for piece in _pieces(stream, quoted=True):
        data = piece
        if not header:
            blank = len(data) - len(data.removeprefix(_BOM).lstrip(b"\r\n"))
            end = data.find(b"\n", blank) + 1 or len(data)
            while end < len(data) and data.count(b'"', blank, end) % 2:
                end = data.find(b"\n", end) + 1 or len(data)
            line += data.count(b"\n", 0, end)
            header, data = data[blank:end].rstrip(b"\r\n"), data[end:]
            separator = max(",;\t", key=lambda s: header.count(s.encode()))
        if data:
            yield Csv(file.path, data, line, header, separator)
            line += data.count(b"\n")


def _parquet(file: File, stream: IO[bytes]) -> Iterator[Chunk]:
    plain = file.path != "-" and file.path.lower().endswith(".parquet")
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        path = Path(file.path) if plain else Path(folder, "records.parquet")
        if not plain:
            with path.open("wb") as copy:
                shutil.copyfileobj(stream, copy)
        frame = pl.scan_parquet(path, glob=False)
        height = frame.select(pl.len()).collect().item()
        for start in range(0, height, ROWS):
            yield Rows(file.path, frame.slice(start, ROWS), start + 1)


def _array(file: File, stream: IO[bytes]) -> Iterator[Chunk]:
    """Cut a JSON array (or objects one after the other) at its objects, without holding it all."""
    objects = _objects(file, stream)
    texts: list[bytes] = []
    numbers: list[int] = []
    size = 0
    for number, text in objects:
        texts.append(text.replace("\r", " ").replace("\n", " ").encode())
        numbers.append(number)
        size += len(text)
        if size > CHUNK:
            yield JsonLines(file.path, b"\n".join(texts), numbers)
            texts, numbers, size = [], [], 0
    if texts:
        yield JsonLines(file.path, b"\n".join(texts), numbers)


def _objects(file: File, stream: IO[bytes]) -> Iterator[tuple[int, str]]:
    """Yield each object's line number and text."""
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    reader = _Text(file, stream)
    opened = reader.take("[")
    while (start := reader.skip(_WHITE + ",")) is not None:
        if opened and start == "]":
            return
        yield reader.value(decoder)
    if opened:
        raise InputError([f"{file.path}, line {reader.line}: the array is not closed with ']'."])


class _Text:
    """A buffer over UTF-8 bytes that counts lines."""

    def __init__(self, file: File, stream: IO[bytes]) -> None:
        self.path, self.stream, self.line = file.path, stream, 1
        self.text, self.at, self.tail, self.ended = "", 0, b"", False
        self.more()
        self.text = self.text.removeprefix("\ufeff")

    def more(self) -> bool:
        """Read on; False at the end."""
        data = self.stream.read(CHUNK)
        self.ended = not data
        whole = self.tail + data
        try:
            text = whole.decode()
            self.tail = b""
        except UnicodeDecodeError as error:
            if self.ended or len(whole) - error.start > 3:
                line = (
                    self.line + self.text.count("\n", self.at) + whole[: error.start].count(b"\n")
                )
                raise InputError([f"{self.path}, line {line}: bytes that are not UTF-8."]) from None
            text, self.tail = whole[: error.start].decode(), whole[error.start :]
        self.text, self.at = self.text[self.at :] + text, 0
        return not self.ended

    def skip(self, what: str) -> str | None:
        """Skip some characters; give the next one, or None at the end."""
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
        """Take one JSON value as text, with the number of its first line."""
        while True:
            try:
                _, end = decoder.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                if self.ended or len(self.text) - self.at > 8 * CHUNK or not self.more():
                    line = self.line + self.text.count("\n", self.at, error.pos)
                    raise InputError(
                        [f"{self.path}, line {line}: not JSON: {error.msg}."]
                    ) from None
                continue
            number, text = self.line, self.text[self.at : end]
            self.line += text.count("\n")
            self.at = end
            return number, text
