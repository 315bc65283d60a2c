"""Read logs as tests look at them."""

from pathlib import Path
from typing import Any

from pennyweight.record import COLUMNS
from pennyweight.sources.conversion import ColumnMapping, RecordConverter
from pennyweight.sources.discovery import file_sources
from pennyweight.sources.loader import load
from pennyweight.sources.log_format import LogOptions
from pennyweight.sources.source import Source


def read(sources: list[Source]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return all records with all their columns, and the problems."""
    converter = RecordConverter(
        ColumnMapping.of({}), [c.name for c in COLUMNS], (), everything=True
    )
    loaded = load(sources, converter, lambda frame: frame, lambda frame: frame)
    rows = [row for frame in loaded.frames for row in frame.to_dicts()]
    return rows, loaded.problems


def records(path: Path, *, skip_bad: bool = False, **options: Any) -> list[dict[str, Any]]:
    """Return the records of a log, or of all logs in a folder."""
    rows, problems = read(file_sources(path, LogOptions(**options)))
    assert skip_bad or not problems
    return rows


def notes_of(path: Path, scorer: str | None = None) -> list[str]:
    """Return what is said after a log was read."""
    sources = file_sources(path, LogOptions(scorer))
    read(sources)
    told = (note for source in sources for note in source.notes())
    return [note for note in told if "expected.json was not read" not in note]
