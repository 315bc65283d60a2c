"""Runs that are scored several times, read from their store only once."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pennyweight.record import COLUMNS
from pennyweight.sources.chunks import ROWS, Rows
from pennyweight.sources.conversion import Conform, Mapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pennyweight.sources.parsing import Names


@dataclass(frozen=True, slots=True)
class Copied:
    """The records of one run as files: all columns that a measure may read."""

    of: Any
    parts: tuple[tuple[Path, range], ...]

    @property
    def run(self) -> Any:
        """The run it is a copy of."""
        return self.of.run

    @property
    def path(self) -> str:
        """What messages call it."""
        return str(self.of.path)

    def chunks(self, names: Names) -> Iterator[Rows]:  # noqa: ARG002
        """Give the parts, each to be read when it is parsed."""
        for part, numbers in self.parts:
            yield Rows(self.path, pl.scan_parquet(part), numbers)

    def options(self) -> dict[str, Any]:
        """Give the options with which its suite wants it scored."""
        options: dict[str, Any] = self.of.options()
        return options


@contextmanager
def copied(
    sources: Sequence[Any], progress: Callable[[int], None] | None = None
) -> Iterator[list[Any]]:
    """Put copies in the place of runs; files stay what they are. `progress` counts records."""
    names = Conform(Mapped.of({}), [c.name for c in COLUMNS]).names
    done = 0
    with tempfile.TemporaryDirectory(prefix="pennyweight-copy-") as name:
        found: list[Any] = []
        for source in sources:
            if not hasattr(source, "chunks"):
                found.append(source)
                continue
            parts: list[tuple[Path, range]] = []
            for frame in _large(source.chunks(names)):
                path = Path(name, f"{len(found):04}-{len(parts):06}.parquet")
                frame.write_parquet(path, compression="lz4")
                first = parts[-1][1].stop if parts else 1
                parts.append((path, range(first, first + frame.height)))
                done += frame.height
                if progress:
                    progress(done)
            found.append(Copied(source, tuple(parts)))
        yield found


def _large(chunks: Iterator[Rows]) -> Iterator[pl.DataFrame]:
    """Join chunks to few large parts: a part costs the same whatever its size."""
    held: list[pl.DataFrame] = []
    for chunk in chunks:
        held.append(chunk.frame.collect())
        if sum(frame.height for frame in held) >= ROWS:
            yield pl.concat(held)
            held = []
    if held:
        yield pl.concat(held)
