"""Lines of JSON, read one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pennyweight.errors import InputError
from pennyweight.sources.files import MAX_LINE, UNREADABLE, RecordFile, open_file, too_long
from pennyweight.sources.json_array import loads


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each line that is not blank; None for what is not JSON.

    NaN and Infinity are read.
    """
    file = RecordFile(str(path), "jsonl")
    try:
        with open_file(file) as (stream, _):
            number = 0
            while line := stream.readline(MAX_LINE):
                number += 1
                if len(line) == MAX_LINE:
                    raise too_long(file, number)
                text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if not text.isspace():
                    yield number, loads(text)
    except UNREADABLE as error:
        raise InputError([f"{path}: cannot be read to its end: {error}."]) from error
