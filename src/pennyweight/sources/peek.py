"""What the beginning of a file shows: enough to tell which tool wrote it."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from pennyweight.errors import InputError
from pennyweight.sources.files import PARQUET, UNREADABLE, RecordFile, open_file

HEAD = 1 << 16
"""The bytes of a file that are looked at."""
_LINES = 20
"""The lines of a JSONL file that are looked at."""
_DEEPEST = 200
_BOM = b"\xef\xbb\xbf"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},:"]|[^\s\[\]{},:"]+', re.DOTALL)


@dataclass(frozen=True)
class Peek:
    """The beginning of a file. Everything is read when it is asked for, and nothing raises."""

    path: Path
    head: bytes
    """The first bytes, decompressed and without a byte order mark."""

    @classmethod
    def of(cls, path: Path) -> Peek:
        """Read the beginning of a file."""
        try:
            with open_file(RecordFile(str(path), "jsonl")) as (stream, _):
                return cls(path, stream.read(HEAD).removeprefix(_BOM))
        except (InputError, *UNREADABLE):  # whoever reads the file says what is wrong with it
            return cls(path, b"")

    @cached_property
    def text(self) -> str:
        """The first bytes as text."""
        return self.head.decode("utf-8", "replace")

    @cached_property
    def value(self) -> Any:
        """The JSON value that begins here, up to where it is cut off; None if there is none.

        >>> Peek(Path("a.json"), b'{"version": 2, "eval": {"task": "sums", "mod').value
        {'version': 2, 'eval': {'task': 'sums'}}
        """
        return partial_json(self.head)

    @cached_property
    def rows(self) -> tuple[Mapping[str, Any], ...]:
        """The objects on the first lines, or at the beginning of an array, or the one object."""
        lines = self.head.lstrip().split(b"\n")[:_LINES]
        if isinstance(_whole(lines[0]), dict):
            found = [_whole(line) for line in lines]
        else:
            found = self.value if isinstance(self.value, list) else [self.value]
        return tuple(one for one in found[:_LINES] if isinstance(one, dict))

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of the first object, or the columns of a table."""
        return frozenset(self.rows[0] if self.rows else self.columns)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of a Parquet or CSV file."""
        if self.head.startswith(PARQUET):
            import polars as pl  # noqa: PLC0415

            try:
                return tuple(pl.read_parquet_schema(self.path))
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
                return ()
        if self.rows or self.head[:1] in {b"{", b"[", b"<", b""}:
            return ()
        try:
            return tuple(next(csv.reader(io.StringIO(self.text, newline="")), ()))
        except csv.Error:
            return ()

    @cached_property
    def members(self) -> frozenset[str]:
        """The names in a ZIP file."""
        if not self.head.startswith(_ZIP):
            return frozenset()
        try:
            with zipfile.ZipFile(self.path) as archive:
                return frozenset(archive.namelist())
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            return frozenset()

    @property
    def is_zip(self) -> bool:
        """Whether it is a ZIP file, readable or not."""
        return self.head.startswith(_ZIP)

    def has(self, *keys: str) -> bool:
        """Whether the first object, or the table, has all of these keys."""
        return self.keys.issuperset(keys)

    def inside(self, *path: str | int) -> Any:
        """Return what is below keys and positions of the first value; None if it is not there."""
        value = self.value if isinstance(self.value, list) else next(iter(self.rows), None)
        for step in path:
            if isinstance(value, dict) and isinstance(step, str):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                return None
        return value


def partial_json(data: bytes) -> Any:
    """Parse JSON that may be cut off; what is incomplete at its end is left out."""
    whole = _whole(data)
    if whole is not None or not data.strip().startswith((b"{", b"[")):
        return whole
    closers: list[bytes] = []
    cut, closing = 0, b""
    before = b""
    for token in _TOKEN.finditer(data):
        word = token[0]
        if word == b'"':  # a text that is cut off
            break
        if word in {b"{", b"["}:
            closers.append(b"}" if word == b"{" else b"]")
            if len(closers) > _DEEPEST:
                break
            cut, closing = token.end(), b"".join(reversed(closers))
        elif word in {b"}", b"]"}:
            if not closers or closers.pop() != word:
                return None
            cut, closing = token.end(), b"".join(reversed(closers))
            if not closers:
                break
        elif word == b"," and before != b":":
            cut, closing = token.start(), b"".join(reversed(closers))
        before = word
    return _whole(data[:cut] + closing)


def _whole(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except ValueError:
        pass
    try:
        return json.loads(data) if b"NaN" in data or b"Infinity" in data else None
    except (ValueError, RecursionError):
        return None
