"""Turn what people name into sources: paths, `-`, run ids, unique prefixes, `latest`, values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from pennyweight.catalogue import declare_scores
from pennyweight.errors import InputError, UsageError
from pennyweight.sources.discovery import file_sources
from pennyweight.sources.files import STDIN, refuse_repeats
from pennyweight.sources.frames import frame_of
from pennyweight.sources.log_format import LogOptions
from pennyweight.sources.log_source import LogSource
from pennyweight.sources.objects import OBJECT_STORES
from pennyweight.sources.partitions import is_pattern
from pennyweight.sources.source import (
    FileSource,
    FrameSource,
    RowsSource,
    Source,
    is_source,
)
from pennyweight.stored_runs.imported import is_imported
from pennyweight.stored_runs.source import RunSource

if TYPE_CHECKING:
    from pennyweight.store.store import Store


_LISTED = 5


class LoadedRun(Protocol):
    """A run as Python has it: a `pennyweight.Run`."""

    @property
    def source(self) -> RunSource:
        """The records of the run."""
        raise NotImplementedError


class PandasFrame(Protocol):
    """A pandas frame, without importing pandas."""

    @property
    def iloc(self) -> Any:
        """What every pandas frame has."""


Named = str | Path | Source | LoadedRun
Frame = pl.DataFrame | pl.LazyFrame | PandasFrame
Given = Named | Frame | Sequence[Named] | Iterable[Mapping[str, Any]]
"""What the functions of this package take as a source."""


def resolve(
    source: Given,
    store: str | Store | None = None,
    *,
    scorer: str | None = None,
    filter: str | None = None,  # noqa: A002
) -> list[Source]:
    """Return the sources that are meant.

    `scorer` and `filter` choose what is read from the log of another tool.

    A name that exists as a path is a file or a folder, one with `*`, `?` or `[` a pattern of them;
    any other is a run of the store: its id, a unique prefix of it, or `latest`. A Polars or pandas
    frame and an iterable of mappings are sources too.
    """
    logs = LogOptions(scorer, filter)
    sources: list[Source] = []
    problems: list[str] = []
    hints: dict[str, None] = {}
    for item in _items(source):
        try:
            sources += _named(item, store, logs) if isinstance(item, str | Path) else [item]
        except InputError as error:
            problems += error.problems
            hints |= {error.hint: None} if error.hint else {}
    if problems:
        raise InputError(problems, hint="\n".join(hints))
    _refuse_choices(sources, logs)
    if sum(isinstance(one, LogSource) for one in sources) > 1:
        sources = [_prefixed(one) for one in sources]
    refuse_repeats(one.name for one in sources if isinstance(one, FileSource | LogSource))
    declare_scores(column for source in sources for column in source.score_columns())
    return sources


def _refuse_choices(sources: Sequence[Source], options: LogOptions) -> None:
    """Refuse a score or a filter if none of the sources has any to choose from."""
    formats = [one.format for one in sources if isinstance(one, LogSource)]
    names = ", ".join(one.name for one in sources[:_LISTED])
    if options.scorer is not None and not any(one.scores for one in formats):
        raise UsageError(f"--scorer: there are no scores to choose from in {names}.")
    if options.filter is not None and not any(one.filters for one in formats):
        raise UsageError(f"--filter: there are no filters to choose from in {names}.")


def _prefixed(source: Source) -> Source:
    """Have the tasks of a log named after its suite too, beside other logs."""
    if not isinstance(source, LogSource):
        return source
    return replace(source, log_options=replace(source.log_options, prefix=True))


def _items(source: Given) -> list[str | Path | Source]:
    """Make a source of each value that is neither a name nor a source."""
    source = _unwrapped(source)
    if isinstance(source, str | Path) or is_source(source):
        return [source]
    frame = frame_of(source)
    if frame is not None:
        return [FrameSource(frame)]
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        kind = type(source).__name__
        raise UsageError(f"A {kind} is not a source: pass a path, a frame or a list of dicts.")
    items = [_unwrapped(item) for item in source]
    names: list[str | Path | Source] = [
        item for item in items if isinstance(item, str | Path) or is_source(item)
    ]
    return names if len(names) == len(items) else [RowsSource(items)]


def _unwrapped(item: Any) -> Any:
    """Return the records of a run that Python has as a value; other values stay as they are."""
    return item.source if LoadedRun in type(item).__mro__ else item


def _named(name: str | Path, store: str | Store | None, logs: LogOptions) -> Sequence[Source]:
    if isinstance(name, Path) or name == STDIN or name.startswith(OBJECT_STORES):
        return file_sources(name, logs)
    if Path(name).exists() or is_pattern(name):
        return file_sources(name, logs)
    try:
        return [run_source(name, store)]
    except UsageError as error:
        is_path = any(mark in name for mark in (".", "/", "\\"))
        text = f"{name}: no such file or folder." if is_path else f"{name}: no such file. {error}"
        raise InputError([text]) from error


def rematched(sources: Sequence[Source], options: Mapping[str, Any]) -> list[Source]:
    """Have answers compared with targets, in place of the verdicts of logs, if a rule says how."""
    if not options.get("match_verified"):
        return list(sources)
    found: list[Source] = []
    for one in sources:
        if isinstance(one, LogSource):
            found.append(replace(one, log_options=replace(one.log_options, rematch=True)))
        elif isinstance(one, RunSource) and is_imported(one.run.settings):
            found.append(replace(one, rematch=True))
        else:
            found.append(one)
    return found


def is_rematched(source: Source) -> bool:
    """Whether the verdicts of another tool give way to a comparison of answers with targets."""
    if isinstance(source, LogSource):
        return source.log_options.rematch
    return isinstance(source, RunSource) and source.rematch


def run_source(name: str, store: str | Store | None = None) -> RunSource:
    """Find a run by its id, a unique prefix of it, or `latest`."""
    opened = open_store(store)
    return RunSource(opened.find(name), opened)


def runs_of(sources: Iterable[Source]) -> list[RunSource]:
    """Return the sources that are runs."""
    return [source for source in sources if isinstance(source, RunSource)]


def unmixed(sources: list[Source]) -> list[Source]:
    """Refuse runs together with files: gates decide on one kind of records."""
    if 0 < len(runs_of(sources)) < len(sources):
        raise UsageError(
            "Runs and files cannot be taken together; 'pennyweight export' writes a file."
        )
    return sources


def open_store(store: str | Store | None) -> Store:
    """Return the store at an address; a store is returned as it is."""
    from pennyweight.store.store import Store  # noqa: PLC0415

    return store if isinstance(store, Store) else Store(store)
