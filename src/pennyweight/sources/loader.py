"""Load records chunk by chunk, working on several chunks at the same time."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pennyweight.errors import SHOWN, UsageError
from pennyweight.sources.chunks import Chunk, JsonLines, Rows, chunks_of
from pennyweight.sources.files import File, find_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pennyweight.sources.conversion import Conform, Conformed
    from pennyweight.sources.parsing import Names, Parsed

    _Done = tuple[int, Parsed, Conformed, pl.DataFrame]
    Source = str | Path | pl.DataFrame | pl.LazyFrame | Iterable[Any]

FILE = "\0file"
"""The column that numbers the file a record came from."""

SKIP_HINT = "--skip-bad scores the records that are fine and says how many were left out."


@dataclass(slots=True)
class Loaded:
    """What came of each chunk, and what was left out."""

    frames: list[pl.DataFrame] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0
    bad_records: int = 0
    units: dict[int, str] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)
    """The columns seen, as far as that is known; for suggestions."""
    filled: set[str] = field(default_factory=set)
    """The columns that are there or hold something."""

    def place(self, file: int, number: int) -> str:
        """Say where a record stands: the file and its line or row."""
        return f"{self.files[file]}, {self.units[file]} {number}"


def load(
    source: Source | Sequence[str | Path],
    conform: Conform,
    work: Callable[[pl.DataFrame], pl.DataFrame],
    take: Callable[[pl.DataFrame], pl.DataFrame],
    progress: Callable[[int], None] | None = None,
) -> Loaded:
    """Read all records of a source; put each chunk's through `work`, several at the same time.

    `take` then gets the results one after the other, in order.
    A chunk with problems gives only its good records; it is for the caller to refuse them.
    """
    loaded = Loaded()
    names = conform.names

    def one(chunk: Chunk, number: int) -> _Done:
        parsed = chunk.parse(names)
        good = conform(parsed)
        numbered = good.frame.with_columns(pl.lit(number, dtype=pl.UInt32).alias(FILE))
        return number, parsed, good, work(numbered)

    done = 0
    seen: set[str] = set()
    found: list[tuple[int, str]] = []
    for number, parsed, good, frame in _in_order(_chunks(source, names, loaded, found), one):
        loaded.present |= parsed.present
        seen |= {*parsed.present, *parsed.frame.columns}
        loaded.frames.append(take(frame))
        loaded.bad_records += good.bad
        loaded.problem_count += len(good.problems)
        loaded.units[number] = parsed.unit
        found += [
            (number, f"{loaded.place(number, place)}: {text}")
            for place, text in good.problems[:SHOWN]
        ]
        done += frame.height
        if progress:
            progress(done)
    loaded.problems = [problem for _, problem in sorted(found, key=itemgetter(0))]
    loaded.filled = seen
    if seen:
        conform.mapped.check(conform.columns, seen)
    return loaded


def _chunks(
    source: Any, names: Names, loaded: Loaded, problems: list[tuple[int, str]]
) -> Iterator[tuple[Chunk, int]]:
    """Yield the chunks of a source with the number of their file."""
    source = _checked(source)
    if isinstance(source, pl.DataFrame):
        loaded.files.append("the frame")
        yield Rows("the frame", source.lazy(), range(1, source.height + 1)), 0
        return
    sources: list[Any] = [source] if isinstance(source, str | Path) else list(source)
    named = all(isinstance(one, str | Path) or hasattr(one, "chunks") for one in sources)
    if sources and not named:
        loaded.files.append("the records")
        lines = [json.dumps(record, default=str) for record in sources]
        numbers = range(1, len(lines) + 1)
        yield JsonLines("the records", "\n".join(lines).encode(), numbers), 0
        return
    for number, one in enumerate(_opened(sources)):
        loaded.files.append(one.path)
        empty = isinstance(one, File)
        for chunk in chunks_of(one) if isinstance(one, File) else one.chunks(names):
            empty = False
            yield chunk, number
        if empty:
            message = f"{one.path}: the file is empty; it needs at least one record."
            problems.append((number, message))
            loaded.problem_count += 1


def _opened(sources: list[Any]) -> list[Any]:
    """List files and runs in the order in which their sources were named."""
    files = iter(find_files([one for one in sources if isinstance(one, str | Path)]))
    found: list[Any] = []
    for one in sources:
        if hasattr(one, "chunks"):
            found.append(one)
        else:
            found += [next(files) for _ in find_files([one])]
    return found


def _checked(source: Any) -> Any:
    """Refuse what is no source, and say what is one."""
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if isinstance(source, Mapping) or not isinstance(source, Iterable | pl.DataFrame | Path):
        kind = type(source).__name__
        raise UsageError(f"A {kind} is no source: give a path, a frame or a list of dicts.")
    return source


def _in_order(
    chunks: Iterator[tuple[Chunk, int]],
    one: Callable[[Chunk, int], _Done],
) -> Iterator[_Done]:
    """Work on a few chunks at a time, giving results in their order; memory stays bounded."""
    workers = min(4, os.cpu_count() or 1)
    waiting: deque[Future[_Done]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for chunk, number in chunks:
                waiting.append(pool.submit(one, chunk, number))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
