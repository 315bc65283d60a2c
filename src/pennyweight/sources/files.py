"""Find the files of a source, open them, and detect their format."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from pennyweight.errors import InputError, UsageError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Format = Literal["jsonl", "json", "csv", "parquet"]

SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
}
COMPRESSED = (".gz", ".zst")
_SETTINGS = frozenset({"config.json", "package.json"})
"""Files of a folder that have settings and no records."""
STDIN = "-"

_GZIP, _ZSTD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
_BUFFER = 1 << 16
_PART = 1 << 12
"""Bytes that are decompressed at a time; Zstandard makes up to 32,768 times as many of them."""
MAX_LINE = 64 << 20
"""The most bytes of one line or one JSON value: a small compressed file can hold a huge one."""

UNREADABLE = (OSError, EOFError, zlib.error)


@dataclass(frozen=True, slots=True)
class RecordFile:
    """One file of a source; `-` is standard input."""

    path: str
    format: Format | None
    """By the name; None if only the content tells."""


def find_files(sources: Sequence[str | Path]) -> list[RecordFile]:
    """List the files that sources name: files, folders (all record files below), or `-`."""
    problems, files = [], []
    for source in sources:
        path = Path(source)
        if str(source) == STDIN:
            files.append(RecordFile(STDIN, None))
        elif path.is_dir():
            inside = sorted(
                p
                for p in path.rglob("*")
                if p.is_file()
                and format_of(p)
                and p.name not in _SETTINGS
                and not _is_set_aside(p.relative_to(path))
            )
            if not inside:
                problems.append(
                    f"{path}: no record files in this folder; "
                    f"they end in {', '.join(SUFFIXES)}, plain or with .gz or .zst."
                )
            files.extend(RecordFile(str(p), format_of(p)) for p in inside)
        elif not path.exists():
            problems.append(f"{path}: no such file or folder.")
        else:
            files.append(RecordFile(str(path), format_of(path)))
    if problems:
        raise InputError(problems)
    refuse_repeats(file.path for file in files)
    return files


def _is_set_aside(path: Path) -> bool:
    """Whether a file is hidden, or in a folder such as `_temporary` that writers of tables use."""
    return path.name.startswith(".") or any(name[0] in "._" for name in path.parts[:-1])


def refuse_repeats(paths: Iterable[str]) -> None:
    """Raise UsageError if the same file is named twice: its records would count twice."""
    seen: set[str] = set()
    for path in paths:
        place = path if path == STDIN else str(Path(path).resolve())
        if place in seen:
            raise UsageError(f"{path} is named twice; each file can be read only once.")
        seen.add(place)


@contextmanager
def open_file(file: RecordFile) -> Iterator[tuple[io.BufferedReader, Format]]:
    """Open and decompress a file; return its format by its name, or else its content."""
    with ExitStack() as stack:
        try:
            raw = sys.stdin.buffer if file.path == STDIN else Path(file.path).open("rb")  # noqa: SIM115
            stack.enter_context(raw)
            stream = _decompressed(io.BufferedReader(cast("io.RawIOBase", raw), _BUFFER))
            head = stack.enter_context(stream).peek(4096)
        except UNREADABLE as error:
            why = getattr(error, "strerror", None) or error
            raise InputError([f"{file.path}: cannot be read: {why}."]) from error
        yield stream, file.format or _sniff(head)


def _decompressed(stream: io.BufferedReader) -> io.BufferedReader:
    head = stream.peek(4)
    if head.startswith(_GZIP):
        return io.BufferedReader(cast("io.RawIOBase", gzip.GzipFile(fileobj=stream)))
    if head.startswith(_ZSTD):
        return io.BufferedReader(_Zstandard(stream))
    return stream


class _Zstandard(io.RawIOBase):
    """Decompresses all frames of a file; unlike zstandard's reader, it detects a truncated one."""

    def __init__(self, stream: io.BufferedReader) -> None:
        import zstandard  # noqa: PLC0415

        self._stream, self._ready = stream, memoryview(b"")
        self._new, self._error = zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError
        self._frame = self._new()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._ready:
            data = self._frame.unused_data or self._stream.read(_PART)
            if self._frame.eof:
                if not data:
                    return 0
                self._frame = self._new()
            elif not data:
                raise EOFError("Compressed file ended before the end of its last frame")
            try:
                self._ready = memoryview(self._frame.decompress(data))
            except self._error as error:
                raise OSError(str(error)) from error
        room = memoryview(buffer).cast("B")
        size = min(len(room), len(self._ready))
        room[:size], self._ready = self._ready[:size], self._ready[size:]
        return size


def too_long(file: RecordFile, line: int) -> InputError:
    """Return the error about a line, or a JSON value, of MAX_LINE bytes or more."""
    return InputError([f"{file.path}, line {line}: longer than {MAX_LINE >> 20} MB."])


def format_of(path: Path) -> Format | None:
    """Return the format of a file by the ending of its name; None for any other ending."""
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


def _sniff(head: bytes) -> Format:
    if head.startswith(PARQUET):
        return "parquet"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "json" if text.startswith(b"[") else "jsonl" if text.startswith(b"{") else "csv"
