"""The elements of one array inside of a JSON object, read without loading all of it.

Tools write logs of gigabytes as one object whose results stand in one array. Indented JSON is cut
at its line ends, which no text can contain; other JSON is scanned for brackets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from pennyweight.errors import InputError
from pennyweight.sources.files import UNREADABLE, RecordFile, open_file

BLOCK = 4 << 20
MAX_ELEMENT = 512 << 20
"""The most bytes of one element, and of all that stands around the array."""
_WORD = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]"]', re.DOTALL)


class JsonArray:
    """An array below some keys of the object in a file, or the file's own if there are none.

    Iterate once, then look at `rest`.
    """

    def __init__(self, path: Path, *keys: str) -> None:
        self.path, self.keys = path, keys
        self.before = b""
        """What precedes the elements, once the first one was read."""
        self.after = b""
        """What follows the elements, once the last one was read."""
        self.found = False

    def __iter__(self) -> Iterator[bytes]:
        try:
            with open_file(RecordFile(str(self.path), "json")) as (stream, _):
                blocks = iter(lambda: stream.read(BLOCK), b"")
                yield from self._elements(blocks)
        except UNREADABLE as error:
            raise InputError([f"{self.path}: cannot be read to its end: {error}."]) from error

    @property
    def head(self) -> dict[str, Any]:
        """The object up to the array, with the array empty."""
        opened = b"]" + b"}" * len(self.keys)
        return self._object(self.before + opened) if self.found else {}

    @property
    def rest(self) -> dict[str, Any]:
        """The object with the array empty."""
        return self._object(self.before + self.after)

    def _object(self, data: bytes) -> dict[str, Any]:
        value = loads(data)
        if not isinstance(value, dict):
            raise InputError([f"{self.path}: not a JSON object, or cut off."])
        return value

    def _elements(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        data = next(blocks, b"").removeprefix(b"\xef\xbb\xbf")
        start = _array_start(data, self.keys)
        while start is None:
            more = next(blocks, b"")
            if not more or len(data) > MAX_ELEMENT:
                self.before = data
                return
            data += more
            start = _array_start(data, self.keys)
        self.found, self.before, data = True, data[:start], data[start:]
        pad = _indent(data)
        yield from self._indented(data, blocks, pad) if pad else self._scanned(data, blocks)

    def _indented(self, data: bytes, blocks: Iterator[bytes], pad: bytes) -> Iterator[bytes]:
        """Cut between lines that close and open an element at the array's own indent."""
        close = pad + b"}"
        begin, at = 0, 0
        while True:
            stop = data.find(close, at) + len(close)
            if stop < len(close) or stop >= len(data):
                data, at = data[begin:], max(0, len(data) - begin - len(close))
                begin, data = 0, self._more(data, blocks)
                continue
            yield data[begin:stop]
            if data[stop : stop + 1] != b",":
                self._finish(data[stop:], blocks)
                return
            begin = at = stop + 1

    def _scanned(self, data: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Count brackets outside of texts."""
        begin, at, depth = 0, 0, 0
        while True:
            resume = at
            for token in _BRACKET.finditer(data, at):
                word = token[0]
                if word == b'"':  # a text that goes on in the next block
                    resume = token.start()
                    break
                resume = token.end()
                if word in {b"{", b"["}:
                    begin = token.start() if depth == 0 else begin
                    depth += 1
                elif word in {b"}", b"]"}:
                    depth -= 1
                    if depth == 0:
                        yield data[begin : token.end()]
                        begin = token.end()
                    elif depth < 0:
                        self._finish(data[token.start() :], blocks)
                        return
            data, at = data[begin:], resume - begin
            begin = 0
            data = self._more(data, blocks)

    def _more(self, data: bytes, blocks: Iterator[bytes]) -> bytes:
        more = next(blocks, b"")
        if not more:
            raise InputError([f"{self.path}: cut off: the list of results does not end."])
        if len(data) > MAX_ELEMENT:
            raise InputError([f"{self.path}: a result is longer than {MAX_ELEMENT >> 20} MB."])
        return data + more

    def _finish(self, data: bytes, blocks: Iterator[bytes]) -> None:
        parts, size = [data], len(data)
        for block in blocks:
            parts.append(block)
            size += len(block)
            if size > MAX_ELEMENT:
                raise InputError(
                    [f"{self.path}: longer than {MAX_ELEMENT >> 20} MB after results."]
                )
        self.after = b"".join(parts)


def loads(data: bytes) -> Any:
    """Parse JSON, also with NaN and Infinity; None if it is not JSON or nested too deeply."""
    try:
        return orjson.loads(data)
    except ValueError:
        pass
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _indent(data: bytes) -> bytes:
    """Return the line end and the spaces before the first element; empty if it is not indented."""
    found = re.match(rb"(\n +)\{\n", data)
    return found[1] if found else b""


def _array_start(data: bytes, keys: Sequence[str]) -> int | None:
    """Return where the elements of the array begin; None if it is not in this data."""
    if not keys:
        return data.find(b"[") + 1 or None
    depth, matched, before = 0, 0, b""
    key: bytes | None = None
    wanted = [json.dumps(one).encode() for one in keys]
    for token in _WORD.finditer(data):
        word = token[0]
        if word == b":":
            key = before if depth == matched + 1 else None
        elif word in {b"{", b"["}:
            if key is not None and matched < len(wanted) and key == wanted[matched]:
                matched += 1
                if matched == len(wanted) and word == b"[":
                    return token.end()
            depth += 1
            key = None
        elif word in {b"}", b"]"}:
            depth -= 1
        before = word
    return None
