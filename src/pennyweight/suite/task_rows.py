"""The rows of a table of tasks, from a file or a dataset hub, each with its line or row."""

from __future__ import annotations

import ast
import csv
import importlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO, Any, Literal

import polars as pl

from pennyweight.errors import InputError
from pennyweight.schema.audit import note_file
from pennyweight.schema.problems import Problems
from pennyweight.schema.tree import Node, TreeError, Written, parse, plain, refuse_constant
from pennyweight.sources.files import MAX_LINE, STDIN, RecordFile, find_files, open_file, too_long
from pennyweight.suite.templates import TemplateError, render

HUB = "hf:"
MAX_BYTES = 256 << 20
"""The most bytes of a file of tasks that is read as a whole: JSON, CSV or Parquet."""
YAML = frozenset({".yaml", ".yml"})
Row = tuple[int, Any]
"""The number of a line or row, and its content."""


@dataclass(frozen=True, slots=True)
class TaskSource:
    """Where a table is: a file next to the suite, or a dataset on the hub."""

    name: str
    folder: Path
    split: str | None = None
    config: str | None = None
    make: Mapping[str, str] | None = None
    """Columns that are made from the others, as templates."""

    @property
    def path(self) -> str:
        """The path of the file, or the address on the hub."""
        return self.name if self.name.startswith(HUB) else str(self.folder / self.name)


def inline_rows(node: Node) -> Iterator[Row]:
    """Yield the rows of a list in the suite itself."""
    for below in node.value:
        yield below.line, plain(below)


def read_rows(
    source: TaskSource, problems: Problems, header: dict[str, None]
) -> tuple[Problems, Iterable[Row]]:
    """Return the rows of a table without their empty cells, and a collector of their problems.

    `header` receives the names of all columns if the file states them before its rows.
    """
    own, rows = _read(source, problems, header)
    if not source.make:
        return own, rows
    header |= dict.fromkeys(source.make) if header else {}
    return own, _with_made(rows, source.make, own)


def _read(
    source: TaskSource, problems: Problems, header: dict[str, None]
) -> tuple[Problems, Iterable[Row]]:
    if not note_file(f"read {source.path}", source.path):
        return problems, ()
    if source.name.startswith(HUB):
        return problems.within(source.name, "row"), _hub(source)
    if STDIN in (source.name, source.path):
        raise InputError(["Tasks cannot be read from standard input ('-'); name a file of tasks."])
    if Path(source.path).is_dir():
        raise InputError([f"{source.path}: is a folder; name a single file of tasks."])
    if Path(source.path).suffix.lower() in YAML and Path(source.path).is_file():
        own = problems.within(source.path)
        return own, _yaml(Path(source.path), own)
    file = find_files([source.path])[0]
    with open_file(file) as (_, format_):
        pass
    own = problems.within(source.path, "row" if format_ == "parquet" else "line")
    return own, _file_rows(file, own, header)


def _with_made(rows: Iterable[Row], make: Mapping[str, str], problems: Problems) -> Iterator[Row]:
    """Add the columns that are made from others."""
    for place, row in rows:
        if not isinstance(row, dict):
            yield place, row
            continue
        made = {}
        for name, template in make.items():
            try:
                text = render(template, row)
            except TemplateError as error:
                problems.add(place, f"make: {name}: {error}")
                if error.exceeded:
                    return
                continue
            made[name] = listed_choices(text) if name == "choices" else text
        yield place, {**row, **made}


def listed_choices(text: str) -> Any:
    """Read a list that a template wrote, as JSON or as Python writes it; else return the text.

    >>> listed_choices("['a', 'b']"), listed_choices("a")
    (['a', 'b'], 'a')
    """
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, list | tuple):
            return list(value)
    return text


def _file_rows(file: RecordFile, problems: Problems, header: dict[str, None]) -> Iterator[Row]:
    with open_file(file) as (stream, format_):
        yield from _READERS[format_](_Limited(stream, file), problems, header)


class _Limited:
    """A stream that refuses what a small compressed file should not unpack to."""

    def __init__(self, stream: IO[bytes], file: RecordFile) -> None:
        self.stream, self.file = stream, file

    def read(self) -> bytes:
        """Read all tasks."""
        data = self.stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InputError([f"{self.file.path}: more than {MAX_BYTES >> 20} MB of tasks."])
        return data

    def __iter__(self) -> Iterator[bytes]:
        for number in count(1):
            line = self.stream.readline(MAX_LINE)
            if len(line) == MAX_LINE:
                raise too_long(self.file, number)
            if not line:
                return
            yield line


def _json_lines(stream: _Limited, problems: Problems, _: dict[str, None]) -> Iterator[Row]:
    decode = json.JSONDecoder(parse_float=Written, parse_constant=refuse_constant).decode
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            yield number, decode(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError as error:
            problems.add(number, f"byte {error.start + 1} is not UTF-8.")
        except json.JSONDecodeError as error:
            problems.add(number, f"not JSON: {error.msg} (column {error.colno}).")
        except (ValueError, RecursionError) as error:
            problems.add(number, f"not JSON that can be read: {error}.")


def _json(stream: _Limited, problems: Problems, _: dict[str, None]) -> Iterator[Row]:
    return _listed(stream.read(), problems, "JSON")


def _listed(data: bytes, problems: Problems, kind: Literal["JSON", "YAML"]) -> Iterator[Row]:
    try:
        root, found = parse(data.decode("utf-8-sig"), is_json=kind == "JSON")
    except TreeError as error:
        problems.add(error.line, str(error))
        return
    except UnicodeDecodeError as error:
        problems.add(0, f"byte {error.start + 1} is not UTF-8.")
        return
    for line, message in found if kind == "YAML" else ():
        problems.add(line, message)
    if not isinstance(root.value, list):
        problems.add(root.line, f"a {kind} file of tasks must be a list.")
        return
    yield from inline_rows(root)


def _yaml(path: Path, problems: Problems) -> Iterator[Row]:
    if path.stat().st_size > MAX_BYTES:
        raise InputError([f"{path}: more than {MAX_BYTES >> 20} MB of tasks."])
    return _listed(path.read_bytes(), problems, "YAML")


def _csv(stream: _Limited, problems: Problems, header: dict[str, None]) -> Iterator[Row]:
    try:
        text = stream.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        problems.add(line, "bytes that are not UTF-8.")
        return
    head = text.split("\n", 1)[0]
    separator = max(",;\t", key=head.count)
    csv.field_size_limit(max(len(text), 131_072))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    columns = [name.strip() for name in next(reader, [])]
    header |= dict.fromkeys(columns)
    for name in dict.fromkeys(c for c in columns if c and columns.count(c) > 1):
        problems.add(1, f"the column {name!r} appears twice; rename one of them.")
    place = reader.line_num + 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            problems.add(place, "a quote is not closed, or text follows a closing quote.")
            return
        if not any(map(str.strip, cells)):
            pass
        elif len(cells) != len(columns):
            counted = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
            problems.add(place, f"{counted}, but the header has {len(columns)}.")
        else:
            yield place, {c: cell for c, cell in zip(columns, cells, strict=True) if cell}
        place = reader.line_num + 1


def _parquet(stream: _Limited, problems: Problems, header: dict[str, None]) -> Iterator[Row]:
    try:
        frame = pl.read_parquet(stream.read())
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        problems.add(0, f"not a readable Parquet file: {reason}.")
        return
    header |= dict.fromkeys(frame.columns)
    for number, row in enumerate(frame.iter_rows(named=True), 1):
        yield number, {name: value for name, value in row.items() if value is not None}


_READERS = {"jsonl": _json_lines, "json": _json, "csv": _csv, "parquet": _parquet}


def _hub(source: TaskSource) -> Iterator[Row]:
    try:
        hub = importlib.import_module("datasets")
    except ImportError:
        raise InputError(
            [f"{source.name} needs the package datasets: pip install 'pennyweight[datasets]'."]
        ) from None
    name = source.name.removeprefix(HUB)
    try:
        split = source.split
        if split is None:
            splits = hub.get_dataset_split_names(name, source.config)
            split = next((s for s in ("test", "validation", "train") if s in splits), splits[0])
        rows = hub.load_dataset(name, source.config, split=split)
    except Exception as error:  # every library below raises its own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError([f"{source.name}: cannot be loaded: {reason}"]) from error
    yield from enumerate(rows, 1)
