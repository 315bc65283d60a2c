"""Runs that are scored several times, read from their store only once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pennyweight.record import COLUMNS
from pennyweight.sources.chunks import ROWS, Chunk, Rows
from pennyweight.sources.conversion import Conform, Mapped
from pennyweight.sources.parsing import Names
from pennyweight.sources.source import Source


@dataclass(frozen=True, slots=True)
class CopiedRun(Source):
    """The records of a run as files: all columns that a measure may read."""

    original: Source
    parts: tuple[tuple[Path, range], ...]

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.original.name

    @property
    def origin(self) -> str:
        """The id of the run."""
        return self.original.origin

    @property
    def run_id(self) -> str | None:
        """The id of the run."""
        return self.original.run_id

    def options(self) -> Mapping[str, Any]:
        """Return the options of the run."""
        return self.original.options()

    def chunks(self, names: Names) -> Iterator[Rows]:  # noqa: ARG002
        """Yield the parts, each to be read when it is parsed."""
        for part, numbers in self.parts:
            yield Rows(self.name, pl.scan_parquet(part), numbers)


@contextmanager
def copied(
    sources: Sequence[Source], progress: Callable[[int], None] | None = None
) -> Iterator[list[Source]]:
    """Replace runs by copies that are quick to read; files stay as they are."""
    names = Conform(Mapped.of({}), [c.name for c in COLUMNS]).names
    done = 0
    with tempfile.TemporaryDirectory(prefix="pennyweight-copy-") as name:
        found: list[Source] = []
        for source in sources:
            if source.run_id is None:
                found.append(source)
                continue
            parts: list[tuple[Path, range]] = []
            for frame in _large(source.chunks(names), names):
                path = Path(name, f"{len(found):04}-{len(parts):06}.parquet")
                frame.write_parquet(path, compression="lz4")
                first = parts[-1][1].stop if parts else 1
                parts.append((path, range(first, first + frame.height)))
                done += frame.height
                if progress:
                    progress(done)
            found.append(CopiedRun(source, tuple(parts)))
        yield found


def _large(chunks: Iterator[Chunk], names: Names) -> Iterator[pl.DataFrame]:
    """Join chunks to few large parts: a part costs the same whatever its size."""
    waiting: list[pl.DataFrame] = []
    for chunk in chunks:
        waiting.append(chunk.parse(names).frame)
        if sum(frame.height for frame in waiting) >= ROWS:
            yield pl.concat(waiting)
            waiting = []
    if waiting:
        yield pl.concat(waiting)
