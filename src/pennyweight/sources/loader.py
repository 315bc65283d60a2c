"""Load records chunk by chunk, several chunks at the same time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

import polars as pl

from pennyweight.errors import SHOWN

if TYPE_CHECKING:
    from pennyweight.sources.chunks import Chunk
    from pennyweight.sources.conversion import Converted, RecordConverter
    from pennyweight.sources.parsing import Names, Parsed
    from pennyweight.sources.source import Source

    _Done = tuple[int, Parsed, Converted, pl.DataFrame, bool]

FILE = "\0file"
"""The column that numbers the source a record came from."""

SMALL = 1 << 18
"""Chunks of fewer bytes are worked on together: each of them has a fixed cost."""
TOGETHER = 100

SKIP_HINT = "--skip-bad scores the valid records and reports how many were left out."


@dataclass(slots=True)
class Loaded:
    """The frames of all chunks, and the problems of the records that were left out."""

    frames: list[pl.DataFrame] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0
    bad_records: int = 0
    units: dict[int, str] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)
    """The columns of the sources, as far as they are known; for suggestions."""
    filled: set[str] = field(default_factory=set)
    """The columns that the sources have, or that were read with a value."""
    meanings: set[bool] = field(default_factory=set)
    """Whether `expected` is a count, or the target, or one in some records and one in others."""

    def place(self, file: int, number: int) -> str:
        """Return the place of a record: its file, and the line or row."""
        return f"{self.files[file]}, {self.units[file]} {number}"


def load(
    sources: Sequence[Source],
    converter: RecordConverter,
    work: Callable[[pl.DataFrame], pl.DataFrame],
    take: Callable[[pl.DataFrame], pl.DataFrame],
    progress: Callable[[int], None] | None = None,
    *,
    check: bool = True,
) -> Loaded:
    """Read all records of the sources.

    `work` processes the records of each chunk, several chunks at the same time; `take` receives the
    results one by one, in order. A chunk with problems yields its good records only; the caller
    decides whether to reject it. Without `check`, mapped columns may be missing: other sources may
    have them.
    """
    loaded = Loaded()
    names = converter.names

    def one(chunk: Chunk, number: int) -> _Done:
        parsed = chunk(names)
        good = converter(parsed)
        numbered = good.frame.with_columns(pl.lit(number, dtype=pl.UInt32).alias(FILE))
        small = numbered.estimated_size() < SMALL
        return number, parsed, good, numbered if small else work(numbered), small

    done = 0
    few = _SmallChunks(work)
    seen: set[str] = set()
    found: list[tuple[int, str]] = []
    for number, parsed, good, frame, small in _in_order(
        _chunks(sources, names, loaded, found), one
    ):
        loaded.present |= parsed.present
        seen |= {*parsed.present, *parsed.frame.columns}
        for ready in few.add(frame) if small else (*few.rest(), frame):
            loaded.frames.append(take(ready))
            done += ready.height
        loaded.bad_records += good.bad
        loaded.problem_count += len(good.problems)
        loaded.units[number] = parsed.unit
        found += [
            (number, f"{loaded.place(number, place)}: {text}")
            for place, text in good.problems[:SHOWN]
        ]
        if progress:
            progress(done)
    for ready in few.rest():
        loaded.frames.append(take(ready))
        if progress:
            progress(done + ready.height)
    for source in sources:
        source.check()
    loaded.problems = [problem for _, problem in sorted(found, key=itemgetter(0))]
    loaded.filled, loaded.meanings = seen, converter.meanings
    if check:
        converter.check(seen, loaded.meanings)
    return loaded


@dataclass(slots=True)
class _SmallChunks:
    """Small chunks that wait until several of them are worked on together."""

    work: Callable[[pl.DataFrame], pl.DataFrame]
    frames: list[pl.DataFrame] = field(default_factory=list)

    def add(self, frame: pl.DataFrame) -> list[pl.DataFrame]:
        """Add a chunk; return what is done."""
        other = any(one.schema != frame.schema for one in self.frames[-1:])
        done = self.rest() if other or len(self.frames) == TOGETHER else []
        self.frames.append(frame)
        return done

    def rest(self) -> list[pl.DataFrame]:
        """Work on those that wait; return the result, if there are any."""
        frames, self.frames = self.frames, []
        if len(frames) > 1:
            return [self.work(pl.concat(frames, rechunk=True))]
        return [self.work(frame) for frame in frames]


def _chunks(
    sources: Sequence[Source], names: Names, loaded: Loaded, problems: list[tuple[int, str]]
) -> Iterator[tuple[Chunk, int]]:
    for number, source in enumerate(sources):
        loaded.files.append(source.name)
        empty = not source.may_be_empty
        for chunk in source.chunks(names):
            empty = False
            yield chunk, number
        if empty:
            message = f"{source.name}: the file is empty; it needs at least one record."
            problems.append((number, message))
            loaded.problem_count += 1


def _in_order(
    chunks: Iterator[tuple[Chunk, int]], one: Callable[[Chunk, int], _Done]
) -> Iterator[_Done]:
    """Work on a few chunks at a time and yield the results in order, within bounded memory."""
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
