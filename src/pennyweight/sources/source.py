"""Sources: anything that yields records.

A file, a frame, rows given in Python and a run (`stored_runs/source.py`) are sources; a folder is
one source for each of its files.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeGuard

import polars as pl

from pennyweight.errors import InputError, UsageError
from pennyweight.metrics.scores import ScoreColumn
from pennyweight.record import COLUMNS
from pennyweight.sources.chunks import ROWS, Chunk, Rows, chunks_of, may_have
from pennyweight.sources.conversion import ColumnMapping, RecordConverter
from pennyweight.sources.files import STDIN, RecordFile
from pennyweight.sources.parsing import Names, parse_json_lines
from pennyweight.sources.partitions import PartitionColumns, with_partition_columns

VERDICTS = ("passed", "judge_passed")
"""The columns of verdicts that records come with."""


class Rerun(NamedTuple):
    """How changed tasks of a run are tried again."""

    created: float
    command: str


class Source(Protocol):
    """Yields records in chunks, with the options they are scored with.

    The defaults suit plain records; only a run has a plan, required scenarios and rules.
    """

    @property
    def name(self) -> str:
        """The name in messages: `records.jsonl`, `run a1b2c3`, `the frame`."""
        raise NotImplementedError

    @property
    def origin(self) -> str:
        """The path or run id that the user named; empty for values."""
        return self.run_id or ""

    @property
    def run_id(self) -> str | None:
        """The run whose records these are."""
        return None

    @property
    def planned(self) -> int | None:
        """How many attempts each subject was planned to have in each tier; None if unknown."""
        return None

    @property
    def narrowed(self) -> str:
        """What part of its suite a run has, in words; empty if it has all tasks and attempts."""
        return ""

    @property
    def required(self) -> tuple[str, ...]:
        """The scenarios that must pass, whether they have a record or not."""
        return ()

    @property
    def sides(self) -> Mapping[str, Sequence[str]]:
        """The subjects and tiers that it was planned to have, by column; none if unknown."""
        return {}

    @property
    def rerun(self) -> Rerun | None:
        """How its tasks are tried again once they changed; None if that is not known."""
        return None

    @property
    def may_be_empty(self) -> bool:
        """Whether a source without records is fine."""
        return True

    @property
    def rereadable(self) -> bool:
        """Whether it can be read more than once."""
        return True

    @property
    def decides(self) -> bool:
        """Whether it knows what decides each of its records, as a run of a suite does."""
        return False

    def options(self) -> Mapping[str, Any]:
        """Return the options it is scored with, such as its answer rule and match rule."""
        return {}

    def check(self) -> None:
        """Raise UsageError if what was asked for is nowhere in the records, once they were read."""
        return

    def notes(self) -> Sequence[str]:
        """Return what people should know about the records, once they were read."""
        return ()

    def score_columns(self) -> Sequence[ScoreColumn]:
        """Return the scores that its records have from scorers."""
        return ()

    def chunks(self, names: Names) -> Iterator[Chunk]:
        """Yield the records in chunks that can be parsed independently."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class FileSource(Source):
    """The records of one file, or of standard input."""

    file: RecordFile
    origin: str = ""
    may_be_empty: bool = False
    columns: PartitionColumns = ()
    """The columns that its folders name, such as `tier=T0`."""

    @property
    def name(self) -> str:
        """The path of the file."""
        return self.file.path

    @property
    def rereadable(self) -> bool:
        """Whether it is not standard input."""
        return self.file.path != STDIN

    def chunks(self, names: Names) -> Iterator[Chunk]:  # noqa: ARG002
        """Cut the file into chunks."""
        for chunk in chunks_of(self.file):
            yield with_partition_columns(chunk, self.columns)


@dataclass(frozen=True, slots=True)
class FrameSource(Source):
    """The records of a Polars frame."""

    frame: pl.DataFrame
    name: str = "the frame"

    def chunks(self, names: Names) -> Iterator[Chunk]:  # noqa: ARG002
        """Yield the frame as one chunk."""
        yield Rows(self.name, self.frame.lazy(), range(1, self.frame.height + 1))


@dataclass(frozen=True, slots=True)
class RowsSource(Source):
    """Records as mappings."""

    rows: Sequence[Any]
    name: str = "the records"

    def chunks(self, names: Names) -> Iterator[Chunk]:  # noqa: ARG002
        """Yield the rows as one chunk of JSON."""
        if self.rows:
            data = "\n".join(json.dumps(row, default=str) for row in self.rows).encode()
            yield partial(parse_json_lines, self.name, data, range(1, len(self.rows) + 1))


@dataclass(frozen=True, slots=True)
class HeldSource(Source):
    """A source that can be read only once, held in memory."""

    held: tuple[Chunk, ...]
    name: str = ""
    may_be_empty: bool = False

    def chunks(self, names: Names) -> Iterator[Chunk]:  # noqa: ARG002
        """Yield the chunks."""
        yield from self.held


def has_verdicts(source: Source, mapping: ColumnMapping) -> bool:
    """Whether a record comes with a verdict; what cannot be read is reported where it is scored."""
    converter = RecordConverter(mapping, VERDICTS)
    columns = list(converter.names.types)
    with suppress(InputError, UsageError):
        for chunk in source.chunks(converter.names):
            if not may_have(chunk, columns):
                continue
            frame = converter(chunk(converter.names)).frame
            if any(frame[name].count() for name in VERDICTS):
                return True
    return False


def is_source(value: object) -> TypeGuard[Source]:
    """Whether a value is a source. Does not read its properties."""
    return Source in type(value).__mro__


@dataclass(frozen=True, slots=True)
class CopiedRun(Source):
    """A copy of the records of a run, with all columns that a measure can read."""

    parts: tuple[tuple[Path, range], ...]
    settings: Mapping[str, Any]
    name: str = ""
    run_id: str | None = None
    columns: tuple[ScoreColumn, ...] = ()
    decides: bool = True

    def score_columns(self) -> Sequence[ScoreColumn]:
        """Return the scores of the run's records."""
        return self.columns

    def options(self) -> Mapping[str, Any]:
        """Return the options of the run."""
        return self.settings

    def chunks(self, names: Names) -> Iterator[Rows]:  # noqa: ARG002
        """Yield the parts, each read when it is parsed."""
        for part, numbers in self.parts:
            yield Rows(self.name, pl.scan_parquet(part), numbers)


@contextmanager
def copied(
    sources: Sequence[Source],
    progress: Callable[[int], None] | None = None,
    also: Sequence[str] = (),
) -> Iterator[list[Source]]:
    """Replace runs by temporary copies that are fast to read; other sources stay as they are.

    `also` names columns of tasks that the copies keep.
    """
    names = RecordConverter(ColumnMapping.of({}), [c.name for c in COLUMNS], also).names
    done = 0
    with tempfile.TemporaryDirectory(prefix="pennyweight-copy-") as name:
        copies: list[Source] = []
        for source in sources:
            if source.run_id is None:
                copies.append(source)
                continue
            parts: list[tuple[Path, range]] = []
            for frame in _large(source.chunks(names), names):
                path = Path(name, f"{len(copies):04}-{len(parts):06}.parquet")
                frame.write_parquet(path, compression="lz4")
                first = parts[-1][1].stop if parts else 1
                parts.append((path, range(first, first + frame.height)))
                done += frame.height
                if progress:
                    progress(done)
            copies.append(
                CopiedRun(
                    tuple(parts),
                    source.options(),
                    source.name,
                    source.run_id,
                    tuple(source.score_columns()),
                    source.decides,
                )
            )
        yield copies


def _large(chunks: Iterator[Chunk], names: Names) -> Iterator[pl.DataFrame]:
    """Join chunks into a few large parts, because each part has a fixed cost."""
    waiting: list[pl.DataFrame] = []
    for chunk in chunks:
        waiting.append(chunk(names).frame)
        if sum(frame.height for frame in waiting) >= ROWS:
            yield pl.concat(waiting, how="diagonal")
            waiting = []
    if waiting:
        yield pl.concat(waiting, how="diagonal")
