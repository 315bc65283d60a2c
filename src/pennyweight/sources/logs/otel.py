"""OpenTelemetry: GenAI spans and log events, as exporters and collectors write them to files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Any

from pennyweight.errors import InputError
from pennyweight.sources.files import MAX_LINE, UNREADABLE, RecordFile, open_file, too_long
from pennyweight.sources.json_array import JsonArray, loads
from pennyweight.sources.log_format import PROBLEM, Log, LogFormat, Row
from pennyweight.sources.otel import protobuf
from pennyweight.sources.otel.attempts import EVALUATION, RESPONSE_ID, Trace, row_of, trees
from pennyweight.sources.otel.spans import Raw, SpanEvent, id_of, raws
from pennyweight.sources.peek import Peek
from pennyweight.text.format import plural

_KIND = re.compile(r"(?:^|(?<=[._-]))(traces|spans|console|logs|events)(?=\.|$)")
"""What a file holds, in its name: `chat.traces.jsonl`, `logs.json`."""
_SPANS, _EVENTS = ("traces", "spans", "console"), ("logs", "events")
_TRACE_ID = re.compile(rb'"traceId"\s*:\s*"([0-9A-Za-z+/=]{1,64})"')
_PREFIX = 4
"""Bytes with the size of each message, in files of the OpenTelemetry Collector."""


def recognise(peek: Peek) -> bool:
    """Whether a file is OTLP (JSON or protobuf), or what the console exporters print."""
    row = next(iter(peek.rows), {})
    if isinstance(row.get("resourceSpans") or row.get("resourceLogs"), list):
        return True
    if peek.has("attributes", "context") and peek.inside("context", "trace_id") is not None:
        return True
    return peek.has("body", "severity_number", "trace_id") or bool(_wire(peek.head))


def home(path: Path) -> Path:
    """Return the file with the spans that a file belongs to: itself, or one beside it."""
    return next((p for p in _beside(path, (*_SPANS, *_EVENTS)) if p.is_file()), path)


def _beside(path: Path, kinds: Sequence[str]) -> list[Path]:
    """Return the paths with the same name but for what the file holds."""
    found = _KIND.search(path.name)
    if found is None:
        return []
    before, after = path.name[: found.start()], path.name[found.end() :]
    return [path.with_name(f"{before}{kind}{after}") for kind in kinds]


def read(log: Log) -> Iterator[Row]:
    """Yield the attempts of each trace once all of its spans and events are read.

    The files are read twice. The first time counts what each trace has, so that only the traces
    that are not complete yet are held the second time. Links count too: a trace that has some is
    complete when all is read.
    """
    files = _files(log)
    sizes: Counter[str] = Counter()
    totals: Counter[Path] = Counter()
    spans: set[str] = set()
    results: list[SpanEvent] = []
    for path in files:
        for _, text in _texts(path):
            if ids := _trace_ids(text):
                sizes.update(ids)
                totals[path] += len(ids)
                spans.update(ids)
                continue
            for raw in raws(loads(text) if isinstance(text, bytes) else text):
                sizes[raw.trace] += 1
                totals[path] += 1
                if raw.is_span:
                    spans.add(raw.trace)
                elif isinstance(event := raw.read(), SpanEvent) and event.name == EVALUATION:
                    results.append(event)
    late: dict[str, list[SpanEvent]] = {}
    for event in results:
        if event.trace not in spans and (reply := event.attributes.get(RESPONSE_ID)):
            late.setdefault(str(reply), []).append(event)
    yield from _attempts(log, files, sizes, totals, late)


def _trace_ids(text: Any) -> list[str]:
    """Return the trace of each span of a request without parsing it; empty if that is not sure."""
    if not isinstance(text, bytes) or b'"resourceSpans"' not in text or b"resourceLogs" in text:
        return []
    found = _TRACE_ID.findall(text)
    sure = len(found) == text.count(b'"spanId"') and b"trace_id" not in text
    return [id_of(one.decode()) for one in found] if sure else []


def _attempts(
    log: Log,
    files: list[Path],
    sizes: Counter[str],
    totals: Counter[Path],
    late: dict[str, list[SpanEvent]],
) -> Iterator[Row]:
    run = _KIND.sub("", log.path.name.partition(".")[0]).strip("._-") or log.path.parent.name
    others = 0
    for trace in _complete(files, sizes, totals):
        if isinstance(trace, str):
            yield {PROBLEM: trace}
            continue
        found = list(trees(trace, late))
        others += not found
        for tree in found:
            yield {"run": run, **row_of(tree, log.options.scorer, log.wanted)}
    if others:
        log.note(f"{plural(others, 'trace')} without a call to a model or an agent left out.")


def _complete(
    files: list[Path], sizes: Counter[str], totals: Counter[Path]
) -> Iterator[Trace | str]:
    """Yield each trace when all of it is read, and problems as text."""
    waiting: dict[str, Trace] = {}
    for raw in _together(files, totals):
        if isinstance(raw, str):
            yield raw
        elif raw.trace:
            trace = waiting.setdefault(raw.trace, Trace())
            trace.add(raw.read())
            if trace.size == sizes[raw.trace]:
                yield waiting.pop(raw.trace)
    yield from waiting.values()


def _files(log: Log) -> list[Path]:
    """Return the files to read: with a single file of spans, also the log events beside it."""
    if log.files != (log.path,):
        return list(log.files)
    events = [p for p in _beside(log.path, _EVENTS) if p.is_file()]
    spans = home(log.path)
    if log.path in events and spans not in events:
        text = f"{log.path}: these log events belong to {spans.name}; name that file to read both."
        raise InputError([text])
    return [log.path, *(p for p in events if p != log.path and recognise(Peek.of(p)))]


def _together(files: list[Path], totals: Counter[Path]) -> Iterator[Raw | str]:
    """Yield spans and events of all files, each as far as the others, and problems as text.

    What belongs together was written at about the same time.
    """
    streams = [(0.0, n, _raws(path), path) for n, path in enumerate(files)]
    heapify(streams)
    while streams:
        done, number, stream, path = heappop(streams)
        one = next(stream, None)
        if one is not None:
            yield one
            heappush(streams, (done + 1 / max(1, totals[path]), number, stream, path))


def _raws(path: Path) -> Iterator[Raw | str]:
    for line, value in _values(path):
        if not isinstance(value, dict):
            yield f"{path.name}, line {line}: not JSON, or no spans."
        for raw in raws(value):
            yield raw if raw.trace or not raw.is_span else f"line {line}: a span without a trace."


def _values(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the line and the value of each request or object; None for what cannot be read."""
    for number, text in _texts(path):
        yield number, loads(text) if isinstance(text, bytes) else text


def _texts(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the line and the text of each JSON object; of protobuf the value."""
    head = Peek.of(path).head
    if kind := _wire(head):
        yield from _messages(path, kind, prefixed=head[:1] != b"\n")
    elif head.lstrip().startswith(b"["):
        yield from enumerate(JsonArray(path), 1)
    else:
        yield from _objects(path)


def _objects(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """Yield JSON objects: one a line, or each over several lines from `{` to `}`."""
    file = RecordFile(str(path), "jsonl")
    held: list[bytes] = []
    began = number = size = 0
    try:
        with open_file(file) as (stream, _):
            while line := stream.readline(MAX_LINE):
                number += 1
                size = size + len(line) if held else len(line)
                if size >= MAX_LINE:
                    raise too_long(file, number)
                text = line.removeprefix(b"\xef\xbb\xbf").rstrip()
                if held or text == b"{":
                    began = began if held else number
                    held.append(line.removeprefix(b"\xef\xbb\xbf"))
                    if text == b"}":
                        yield began, b"".join(held)
                        held = []
                elif text:
                    yield number, text
    except UNREADABLE as error:
        raise InputError([f"{path}: cannot be read to its end: {error}."]) from error
    if held:
        yield began, None


def _wire(head: bytes) -> str | None:
    """Return what kind of protobuf a file is, plain or with a size before each message."""
    if head[:1] == b"\n":
        return protobuf.kind_of(head)
    return protobuf.kind_of(head[_PREFIX:]) if head[_PREFIX : _PREFIX + 1] == b"\n" else None


def _messages(path: Path, kind: str, *, prefixed: bool) -> Iterator[tuple[int, Any]]:
    file = RecordFile(str(path), "jsonl")
    try:
        with open_file(file) as (stream, _):
            number = 0
            while True:
                number += 1
                size = int.from_bytes(stream.read(_PREFIX), "big") if prefixed else MAX_LINE
                if prefixed and size >= MAX_LINE:
                    raise too_long(file, number)
                data = stream.read(size)
                if not data:
                    return
                if len(data) == MAX_LINE:
                    raise too_long(file, number)
                try:
                    yield number, protobuf.decode(data, kind)
                except ValueError:
                    yield number, None
    except UNREADABLE as error:
        raise InputError([f"{path}: cannot be read to its end: {error}."]) from error


FORMAT = LogFormat(
    "otel",
    "OpenTelemetry",
    recognise,
    read,
    home,
    scores=True,
    lost="spans that are no call, agent or tool, links, metrics, the parameters of calls",
)
