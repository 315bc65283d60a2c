"""Traces that programs send while they run: each becomes an attempt of a run when its root ends."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pennyweight.api.log_import import RunKeeper, imported_run, is_run_name
from pennyweight.errors import InputError, UsageError
from pennyweight.record import COLUMNS
from pennyweight.sources.conversion import ColumnMapping, RecordConverter
from pennyweight.sources.json_array import loads
from pennyweight.sources.loader import load
from pennyweight.sources.log_source import LogSource
from pennyweight.sources.logs.otel import FORMAT
from pennyweight.sources.otel import protobuf
from pennyweight.sources.otel.attempts import Trace, row_of, trees
from pennyweight.sources.otel.spans import Raw, Span, raws
from pennyweight.store.store import Store

MAX_SPANS = 200_000
"""The most spans whose roots have not ended that are held; the oldest traces make room."""
MAX_ENDED = 100_000
"""The most ended traces whose late spans are recognised."""
UNNAMED = "otel"
JSON, PROTOBUF = "application/json", "application/x-protobuf"

Place = tuple[str, str]
"""A run and the id of a trace."""


def requested(body: bytes, kind: str) -> list[Raw]:
    """Read the spans of an OTLP request."""
    if kind == PROTOBUF:
        try:
            value: Any = protobuf.decode(body, protobuf.TRACES)
        except ValueError as error:
            raise UsageError(f"The request is no OTLP protobuf: {error}.") from error
    else:
        value = loads(body)
        if not isinstance(value, dict):
            raise UsageError("The request is no OTLP JSON.")
    return [raw for raw in raws(value) if raw.is_span and raw.trace]


def _named(service: str | None) -> str:
    """Return the run of a service whose program names none."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", service or "").strip("-._")[:80]
    return name if is_run_name(name) else UNNAMED


@dataclass(slots=True)
class TraceInbox:
    """Holds the spans of traces that go on, and stores those that have ended."""

    store: Store
    _waiting: OrderedDict[Place, Trace] = field(default_factory=OrderedDict)
    _ended: OrderedDict[Place, None] = field(default_factory=OrderedDict)
    _held: int = 0
    _keepers: dict[str, RunKeeper] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def receive(self, body: bytes, kind: str, run: str = "") -> int:
        """Take the spans of a request; return how many attempts were stored.

        Without a run, the name of the service (`service.name`) is the run's.
        """
        if run and not is_run_name(run):
            raise UsageError(
                f"Run {run!r}: a name has up to 80 letters, digits, dots, dashes and underscores."
            )
        found = [raw.read() for raw in requested(body, kind)]
        with self._lock:
            whole: dict[Place, None] = {}
            for span in found:
                if isinstance(span, Span):
                    place = (run or _named(span.service), span.trace)
                    if self._add(place, span):
                        whole[place] = None
            made = 0
            for name in dict.fromkeys(place[0] for place in whole):
                ended = [place for place in whole if place[0] == name]
                made += self._keep(name, {place: self._end(place) for place in ended})
            self._make_room()
            return made

    def _add(self, place: Place, span: Span) -> bool:
        """Hold a span; return whether it is the root of its trace."""
        if place in self._ended:
            return False
        self._waiting.setdefault(place, Trace()).add(span)
        self._held += 1
        return not span.parent

    def _end(self, place: Place) -> Trace:
        trace = self._waiting.pop(place)
        self._held -= trace.size
        self._ended[place] = None
        if len(self._ended) > MAX_ENDED:
            self._ended.popitem(last=False)
        return trace

    def _make_room(self) -> None:
        while self._held > MAX_SPANS and self._waiting:
            _, trace = self._waiting.popitem(last=False)
            self._held -= trace.size

    def _keep(self, name: str, traces: dict[Place, Trace]) -> int:
        """Store the attempts of traces that have ended; if that fails, they go on waiting."""
        try:
            rows = [row_of(tree, None, None) for one in traces.values() for tree in trees(one, {})]
            if rows:
                self._write(name, rows)
            return len(rows)
        except BaseException:
            for place, trace in traces.items():
                self._waiting[place] = trace
                self._held += trace.size
                self._ended.pop(place, None)
            raise

    def _write(self, name: str, rows: list[dict[str, Any]]) -> None:
        source = LogSource(replace(FORMAT, read=lambda _: iter(rows)), Path(name), (), origin=name)
        keeper = self._keeper(name, source)
        mapping = ColumnMapping.of({})
        converter = RecordConverter(mapping, [c.name for c in COLUMNS], (), everything=True)
        loaded = load([source], converter, lambda frame: frame, keeper.take)
        if loaded.problem_count:
            raise InputError(loaded.problems, loaded.problem_count)
        self.store.set_run(name, **keeper.finished())

    def _keeper(self, name: str, source: LogSource) -> RunKeeper:
        known = {run.id: run for run in self.store.runs()}
        if name not in known:
            run = imported_run(name, [source])
            self.store.add_run(run)
            self._keepers[name] = RunKeeper(self.store, run)
        elif name not in self._keepers:
            if known[name].suite != FORMAT.name:
                raise UsageError(f"Run {name} is not one of traces; choose another name.")
            self._keepers[name] = RunKeeper.resumed(self.store, known[name])
        return self._keepers[name]
