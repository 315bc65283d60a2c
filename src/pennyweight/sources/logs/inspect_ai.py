"""Inspect AI: `.eval` archives and JSON logs.

An archive has one member for each sample, or since 2026 a folder of them for each (chunked). A log
whose eval crashed has no header, only the journal. Samples carry events, several times as much as
all else, which are skipped without being parsed.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from pennyweight.errors import InputError
from pennyweight.sources.json_array import JsonArray, loads
from pennyweight.sources.log_format import PROBLEM, Log, LogFormat, LogPart, Row
from pennyweight.sources.log_values import items, mapping
from pennyweight.sources.logs.inspect_samples import Header, row_of
from pennyweight.sources.peek import Peek
from pennyweight.sources.zip_members import (
    MAX_MEMBER,
    MemberError,
    ZipMembers,
    decompressed,
    pieces,
)

_HEADER, _START = "header.json", "_journal/start.json"
_PART_BYTES, _PART_SAMPLES = 8 << 20, 4_000
_SHARDS = ".shards"
_PLAIN = re.compile(r"[\w-]{1,100}")
_EVENTS = (
    (b',"events":[', b'],"model_usage":{'),
    (b',\n  "events": [', b'],\n  "model_usage": {'),
    (b',\n      "events": [', b'],\n      "model_usage": {'),
)
"""Where the events of a sample begin and end: compact, indented, and in one indented log."""
_MESSAGES = (b',"messages":[', b'],"output":{')
_AROUND = {"id", "output", "metadata", "store", "model_usage"}
"""The same for the messages of a compact sample, which are skipped unless somebody wants them, and
what stands around both."""


def recognise(peek: Peek) -> bool:
    """Whether a file is an archive of samples with a header or a journal, or one JSON object."""
    if peek.is_zip:
        if _START.encode() in peek.head[:100]:  # as Inspect writes it, without reading all names
            return True
        named = {_HEADER, _START} & peek.members
        return bool(named) or (peek.path.suffix == ".eval" and not peek.members)
    task, model = peek.inside("eval", "task"), peek.inside("eval", "model")
    return peek.has("version", "eval") and task is not None and model is not None


def home(path: Path) -> Path:
    """Return a path that names the eval: its merged log, its shards and copies have the same."""
    name = _eval_id(path)
    return _beside_shards(path).with_name(name) if name else path


def _beside_shards(path: Path) -> Path:
    """Return the folder of shards that a file is in, else the file itself."""
    return next((one for one in path.parents[:2] if one.name.endswith(_SHARDS)), path)


def _eval_id(path: Path) -> str:
    peek = Peek.of(path)
    head: Any = peek.inside()
    if peek.is_zip:
        try:
            head = _head(ZipMembers.of(path))
        except InputError:  # whoever reads the file says what is wrong with it
            return ""
    found = mapping(mapping(head).get("eval")).get("eval_id")
    return found if isinstance(found, str) and _PLAIN.fullmatch(found) else ""


def read(log: Log) -> Iterator[Row | LogPart]:
    """Yield the samples of one file of the eval; of its shards only if nothing else is there."""
    whole = sorted(
        (path for path in log.files if _beside_shards(path) == path),
        key=lambda path: (path.suffix != ".eval", path),
    )
    if others := [path.name for path in whole[1:]]:
        log.note(f"not read: {', '.join(others)}, the same eval as {whole[0].name}.")
    for path in whole[:1] or log.files:
        if zipfile.is_zipfile(path) or path.suffix == ".eval":
            yield from _archive(log, path)
        else:
            yield from _object(log, path)


def _object(log: Log, path: Path) -> Iterator[Row | LogPart]:
    array = JsonArray(path, "samples")
    header: Header | None = None
    texts: list[bytes] = []
    size = 0
    for text in array:
        header = header or Header.of(array.head, log)
        texts.append(text)
        size += len(text)
        if size > _PART_BYTES:
            yield LogPart(len(texts), partial(_samples, log, header, texts))
            texts, size = [], 0
    header = header or Header.of(array.rest, log)
    if texts:
        yield LogPart(len(texts), partial(_samples, log, header, texts))
    if not array.found:
        _refuse_empty(log, path, array.rest)


def _samples(log: Log, header: Header, texts: Sequence[bytes]) -> list[Row]:
    return [_row(log, header, f"sample {n}", sample_of(text)) for n, text in enumerate(texts, 1)]


def _row(log: Log, header: Header, place: str, sample: Any) -> Row:
    if not isinstance(sample, dict) or "id" not in sample:
        return {PROBLEM: f"{place}: not JSON, or no sample."}
    return row_of(sample, header, log)


def _archive(log: Log, path: Path) -> Iterator[LogPart]:
    archive = ZipMembers.of(path)
    head = _head(archive)
    header = Header.of(head, log)
    if not any(name.startswith("samples/") for name in archive.members):
        _refuse_empty(log, path, head)
    single: list[zipfile.ZipInfo] = []
    size = 0
    chunked: list[str] = []
    for name, info in archive.members.items():
        if not name.startswith("samples/") or not name.endswith(".json"):
            continue
        if name.endswith("/sample.json"):
            chunked.append(name)
        elif not _is_chunk(name, archive.members):
            single.append(info)
            size += info.compress_size
            if size > _PART_BYTES or len(single) >= _PART_SAMPLES:
                yield LogPart(len(single), partial(_members, log, header, path, single))
                single, size = [], 0
    if single:
        yield LogPart(len(single), partial(_members, log, header, path, single))
    for start in range(0, len(chunked), _PART_SAMPLES):
        names = chunked[start : start + _PART_SAMPLES]
        yield LogPart(len(names), partial(_chunked, log, header, archive, names))


def _refuse_empty(log: Log, path: Path, head: Mapping[str, Any]) -> None:
    """Refuse a finished eval without samples; of an unfinished one, only say that it has none."""
    if head.get("status") == "success":
        why = "it was run with log_samples off, or only its header was kept"
        raise InputError([f"{path}: the log of this eval has no samples: {why}."])
    log.note("the log has no samples.")


def _is_chunk(name: str, members: Mapping[str, Any]) -> bool:
    """Whether a member belongs to a chunked sample. Ids may contain slashes too."""
    folder = name
    while "/" in (folder := folder.rpartition("/")[0]):
        if f"{folder}/sample.json" in members:
            return True
    return False


def _head(archive: ZipMembers) -> dict[str, Any]:
    name = _HEADER if _HEADER in archive.members else _START
    try:
        head = loads(archive.read(name)) if name in archive.members else None
    except MemberError as error:
        raise InputError([f"{archive.path}, {name}: {error}."]) from error
    if not isinstance(head, dict):
        raise InputError([f"{archive.path}: neither {_HEADER} nor {_START} can be read."])
    return head


def _members(log: Log, header: Header, path: Path, several: Sequence[zipfile.ZipInfo]) -> list[Row]:
    with path.open("rb") as file:
        return [_member(log, header, file, info) for info in several]


def _member(log: Log, header: Header, file: IO[bytes], info: zipfile.ZipInfo) -> Row:
    try:
        large = info.file_size > MAX_MEMBER
        messages = log.wants("messages", "tool_calls")
        if large:
            sample = large_sample(pieces(file, info))
        else:
            sample = sample_of(decompressed(file, info), messages=messages)
    except MemberError as error:
        return {PROBLEM: f"{info.filename}: {error}."}
    return _row(log, header, info.filename, sample)


def sample_of(data: bytes, *, messages: bool = True) -> Any:
    """Parse a sample without its events, which are most of it, and without messages if asked.

    The first list called events and the last one before a model_usage are taken for its two ends:
    in texts quotes are escaped, so both marks are keys. If they are keys of something else, what is
    left is no JSON or has no model_usage, and all is parsed.
    """
    for first, last in _EVENTS:
        start = data.find(first)
        end = data.rfind(last, start) if start >= 0 else -1
        if end >= 0:
            begin = data[:start]
            if not messages and (shorter := _without_messages(begin)) is not begin:
                rest = loads(shorter + data[end + 1 :])
                if isinstance(rest, dict) and rest.keys() >= _AROUND:
                    return rest
            rest = loads(begin + data[end + 1 :])
            if isinstance(rest, dict) and {"id", "model_usage"} <= rest.keys() - {"events"}:
                return rest
    return loads(data)


def _without_messages(begin: bytes) -> bytes:
    """Cut the messages out of the beginning of a sample, where they stand before the output."""
    start = begin.find(_MESSAGES[0])
    end = begin.find(_MESSAGES[1], start) if start >= 0 else -1
    if end < 0 or not isinstance(loads(begin[:start] + b"}"), dict):  # inside of something else
        return begin
    return begin[:start] + begin[end + 1 :]


def large_sample(parts: Iterable[bytes]) -> Any:
    """Parse a sample that does not fit into memory, unless what stands around its events does not.

    It keeps what precedes the events, and what follows the last mark that may be their end.
    """
    head, tail, overlap = b"", b"", max(len(mark) for pair in _EVENTS for mark in pair)
    last = b""
    for part in parts:
        if not last:
            head += part
            found = [(at, end) for first, end in _EVENTS if (at := head.find(first)) >= 0]
            if found:
                start, last = min(found)
                head, tail = head[:start], head[start:]
        else:
            tail += part
        if last:
            at = tail.rfind(last)
            tail = tail[at:] if at >= 0 else tail if tail.startswith(last) else tail[-overlap:]
        if len(head) + len(tail) > MAX_MEMBER:
            raise MemberError(f"more than {MAX_MEMBER >> 20} MB without its events")
    sample = loads(head + tail[1:]) if tail.startswith(last) and last else None
    if not isinstance(sample, dict) or not {"id", "model_usage"} <= sample.keys():
        raise MemberError(f"larger than {MAX_MEMBER >> 20} MB, and not as Inspect writes it")
    return sample


def _chunked(log: Log, header: Header, archive: ZipMembers, names: Sequence[str]) -> list[Row]:
    return [_chunked_row(log, header, archive, name) for name in names]


def _chunked_row(log: Log, header: Header, archive: ZipMembers, name: str) -> Row:
    try:
        sample = loads(archive.read(name))
        if isinstance(sample, dict):
            folder = name.removesuffix("/sample.json")
            refs = items(sample.get("message_refs"))
            if log.wants("messages", "tool_calls") and refs:
                listed = _listed(archive, f"{folder}/messages/")
                sample["messages"] = [one for a, b in refs for one in listed[a:b]]
            attached = _listed(archive, f"{folder}/attachments/")
            sample["attachments"] = {str(n): one for n, one in enumerate(attached)}
    except (MemberError, TypeError, ValueError) as error:
        return {PROBLEM: f"{name}: {error}."}
    return _row(log, header, name, sample)


def _listed(archive: ZipMembers, folder: str) -> list[Any]:
    """Join the lists of numbered members: each is named after the position of its first item."""
    numbers = {}
    for name in archive.members:
        if name.startswith(folder) and (n := name[len(folder) :].removesuffix(".json")).isdigit():
            numbers[int(n)] = name
    joined: list[Any] = []
    for start in sorted(numbers):
        joined += [None] * (min(start, 1 << 20) - len(joined))
        joined += items(loads(archive.read(numbers[start])))
    return joined


FORMAT = LogFormat(
    "inspect",
    "Inspect AI",
    recognise,
    read,
    home,
    scores=True,
    lost="events, store, sub-agents, reducers other than the mean",
)
