"""Find the sources at a path: files of records, and logs of other tools, told by their content."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath

from pennyweight.errors import InputError
from pennyweight.sources.files import STDIN, RecordFile, find_files
from pennyweight.sources.log_format import USUAL, LogFormat, LogOptions
from pennyweight.sources.log_source import LogSource, refusal
from pennyweight.sources.logs.registry import format_of
from pennyweight.sources.objects import OBJECT_STORES, object_sources
from pennyweight.sources.partitions import is_pattern, matching, partition_columns, table_root
from pennyweight.sources.peek import Peek
from pennyweight.sources.source import FileSource, Source

LOG_SUFFIXES = frozenset((".eval", ".yaml", ".yml", ".xml", ".html", ".pb", ".binpb"))
"""Endings of logs, beside those of record files."""
_YAML = (".yaml", ".yml")
_SUITE = re.compile(r"^tasks\s*:", re.MULTILINE)


def file_sources(path: str | Path, options: LogOptions = USUAL) -> list[Source]:
    """Return the sources at a path: a file, a log, or all of them in a folder.

    In a folder with logs, files that belong to no log are left out. The path may be a pattern of
    files or folders, such as `runs/**/*.parquet`, or the address of an object store.
    """
    if str(path) == STDIN:
        return [FileSource(RecordFile(STDIN, None), STDIN)]
    if str(path).startswith(OBJECT_STORES):
        return object_sources(str(path))
    root = table_root(path)
    if is_pattern(path):
        found = [_at(match, options, root) for match in matching(path)]
        sources = [_of_origin(source, str(path)) for sources in found for source in sources]
    else:
        sources = _at(Path(path), options, root)
    return [_part(one) for one in sources] if len(sources) > 1 else sources


def _at(place: Path, options: LogOptions, root: PurePath) -> list[Source]:
    """Return the sources at a path; the folders below `root` name columns."""
    path = str(place)
    if not place.is_dir():
        return _at_file(place, options, root)
    recognised = _recognised(place)
    if not recognised:
        return [_file(file, path, root) for file in find_files([path])]
    logs = _grouped(recognised)
    unread = [refusal(f, home) for f, home in logs if f.read is None]
    if unread:
        raise InputError(unread)
    readable = [
        LogSource(format_, _name(home, files), tuple(files), options, path)
        for (format_, home), files in logs.items()
    ]
    others = tuple(str(p.relative_to(place)) for p in _left_out(place, readable))
    return [replace(readable[0], unread=others), *readable[1:]]


def _file(file: RecordFile, origin: str, root: PurePath) -> FileSource:
    return FileSource(file, origin, columns=partition_columns(file.path, root))


def _part(source: Source) -> Source:
    """Have a Parquet file be a part of a table: such a file says that it has no rows."""
    if not isinstance(source, FileSource) or source.file.format != "parquet":
        return source
    return replace(source, may_be_empty=True)


def _of_origin(source: Source, origin: str) -> Source:
    """Have a source come from what the user named: a pattern is one side of a comparison."""
    return replace(source, origin=origin) if isinstance(source, FileSource | LogSource) else source


def _name(home: Path, files: Sequence[Path]) -> Path:
    """Return the path under which people know a log: its home, unless that is only an id."""
    known = home.exists() or (len(files) > 1 and all(f.name.startswith(home.name) for f in files))
    return home if known else files[0]


def _at_file(place: Path, options: LogOptions, root: PurePath) -> list[Source]:
    files = find_files([place])
    format_ = format_of(Peek.of(place)) if place.is_file() else None
    if format_ is None:
        if place.suffix.lower() in _YAML and _SUITE.search(Peek.of(place).text):
            raise InputError([f"{place}: this is a suite. 'pennyweight run {place}' runs it."])
        return [_file(file, str(place), root) for file in files]
    if format_.read is None:
        raise InputError([refusal(format_, place)])
    return [LogSource(format_, place, (place,), options, str(place))]


def _recognised(folder: Path) -> dict[Path, LogFormat]:
    """Recognise the logs among the files of a folder."""
    known = {file.path for file in _record_files(folder)}
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        if str(path) in known or path.suffix.lower() in LOG_SUFFIXES:
            format_ = format_of(Peek.of(path))
            if format_ is not None:
                found[path] = format_
    return found


def _record_files(folder: Path) -> list[RecordFile]:
    try:
        return find_files([folder])
    except InputError:  # there are none
        return []


def _grouped(found: dict[Path, LogFormat]) -> dict[tuple[LogFormat, Path], list[Path]]:
    """Put the files together that belong to one log; what lies inside of a log is part of it.

    A form that is not read is left out beside one that is.
    """
    logs: dict[tuple[LogFormat, Path], list[Path]] = {}
    for path, format_ in found.items():
        logs.setdefault((format_, format_.home(path)), []).append(path)
    folders = {home: format_ for format_, home in logs if home.is_dir()}
    read = {(format_.name, home.parent) for format_, home in logs if format_.read}
    return {
        (format_, home): files
        for (format_, home), files in logs.items()
        if not any(folders.get(above, format_) != format_ for above in home.parents)
        and (format_.read or (format_.name, home.parent) not in read)
    }


def _left_out(folder: Path, logs: Sequence[LogSource]) -> list[Path]:
    """List the record files of a folder that belong to none of its logs."""
    mine = {file for log in logs for file in log.files}
    homes = [log.path for log in logs if log.path.is_dir()]
    paths = (Path(file.path) for file in _record_files(folder))
    return [p for p in paths if p not in mine and not any(h in p.parents for h in homes)]
