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
from pennyweight.record import COLUMNS, AttemptKey
from pennyweight.sources.conversion import ColumnMapping, RecordConverter
from pennyweight.sources.json_array import loads
from pennyweight.sources.loader import load
from pennyweight.sources.log_source import LogSource
from pennyweight.sources.logs.otel import FORMAT
from pennyweight.sources.otel import protobuf
from pennyweight.sources.otel.attempts import Trace, row_of, trees
from pennyweight.sources.otel.spans import Raw, Span, SpanEvent, raws
from pennyweight.store.store import Store

MAX_SPANS = 200_000
"""The most spans whose roots have not ended that are held; the oldest traces make room."""
MAX_ENDED = 100_000
"""The most ended traces that are recognised when more of them arrives."""
MAX_KEPT = 50_000
"""The most spans and events of ended traces that are held, so that what arrives late is added."""
UNNAMED = "otel"
JSON, PROTOBUF = "application/json", "application/x-protobuf"
TRACES, LOGS = protobuf.TRACES, protobuf.LOGS

Place = tuple[str, str]
"""A run and the id of a trace."""


def requested(body: bytes, kind: str, what: str = TRACES) -> list[Raw]:
    """Read the spans, or the log events, of an OTLP request."""
    if kind == PROTOBUF:
        try:
            value: Any = protobuf.decode(body, what)
        except ValueError as error:
            raise UsageError(f"The request is no OTLP protobuf: {error}.") from error
    else:
        value = loads(body)
        if not isinstance(value, dict):
            raise UsageError("The request is no OTLP JSON.")
    return [raw for raw in raws(value) if raw.is_span == (what == TRACES) and raw.trace]


def _named(service: str | None) -> str:
    """Return the run of a service whose program names none."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", service or "").strip("-._")[:80]
    return name if is_run_name(name) else UNNAMED


@dataclass(slots=True)
class _Ended:
    """A trace that is stored: its spans, while they are held, and the attempts that it became."""

    trace: Trace
    keys: list[AttemptKey] = field(default_factory=list)


@dataclass(slots=True)
class TraceInbox:
    """Holds the spans of traces that go on, and stores those that have ended."""

    store: Store
    _waiting: OrderedDict[Place, Trace] = field(default_factory=OrderedDict)
    _ended: OrderedDict[Place, _Ended] = field(default_factory=OrderedDict)
    """The ended traces whose spans are held."""
    _stored: OrderedDict[Place, None] = field(default_factory=OrderedDict)
    _held: int = 0
    _kept: int = 0
    _keepers: dict[str, RunKeeper] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def receive(self, body: bytes, kind: str, run: str = "", what: str = TRACES) -> int:
        """Take spans or log events; return how many attempts were stored, new or completed.

        Without a run, the name of the service (`service.name`) is the run's.
        """
        if run and not is_run_name(run):
            raise UsageError(
                f"Run {run!r}: a name has up to 80 letters, digits, dots, dashes and underscores."
            )
        found = [(raw.read(), raw.service) for raw in requested(body, kind, what)]
        with self._lock:
            whole: dict[Place, None] = {}
            for one, service in found:
                place = (run or _named(service), one.trace)
                if self._add(place, one):
                    whole[place] = None
            made = 0
            for name in dict.fromkeys(place[0] for place in whole):
                made += self._keep(name, [place for place in whole if place[0] == name])
            self._make_room()
            return made

    def _add(self, place: Place, one: Span | SpanEvent) -> bool:
        """Hold a span or an event; return whether its trace is to be stored, maybe again."""
        if place in self._ended:
            late = self._ended[place].trace
            if isinstance(one, Span) and one.id in late.spans:  # sent again
                return False
            late.add(one)
            self._kept += 1
            return True
        if place in self._stored:
            return False
        self._waiting.setdefault(place, Trace()).add(one)
        self._held += 1
        return isinstance(one, Span) and not one.parent

    def _make_room(self) -> None:
        while self._held > MAX_SPANS and self._waiting:
            _, trace = self._waiting.popitem(last=False)
            self._held -= trace.size
        while self._kept > MAX_KEPT and self._ended:
            _, ended = self._ended.popitem(last=False)
            self._kept -= ended.trace.size
        while len(self._stored) > MAX_ENDED:
            self._stored.popitem(last=False)

    def _keep(self, name: str, places: list[Place]) -> int:
        """Store the attempts of traces that have ended; if that fails, they go on waiting."""
        rows: list[dict[str, Any]] = []
        made: dict[Place, _Ended] = {}
        for place in places:
            ended = self._ended.get(place) or _Ended(self._waiting[place])
            mine = [row_of(tree, None, None) for tree in trees(ended.trace, {})]
            keeper = self._keeper(name) if mine else None
            if keeper is not None:
                keys = [keeper.claim(row, ended.keys[n : n + 1]) for n, row in enumerate(mine)]
                made[place] = _Ended(ended.trace, keys)
            else:
                made[place] = ended
            rows += mine
        if rows:
            try:
                self._write(name, rows)
            except BaseException:
                self._keepers[name].claimed.clear()
                raise
        for place, ended in made.items():
            if self._waiting.pop(place, None) is not None:
                self._held -= ended.trace.size
                self._kept += ended.trace.size
            self._ended[place] = ended
            self._stored[place] = None
        return len(rows)

    def _write(self, name: str, rows: list[dict[str, Any]]) -> None:
        source = _source(name, rows)
        keeper = self._keeper(name)
        mapping = ColumnMapping.of({})
        converter = RecordConverter(mapping, [c.name for c in COLUMNS], (), everything=True)
        loaded = load([source], converter, lambda frame: frame, keeper.take)
        if loaded.problem_count:
            raise InputError(loaded.problems, loaded.problem_count)
        self.store.set_run(name, **keeper.finished())

    def _keeper(self, name: str) -> RunKeeper:
        known = {run.id: run for run in self.store.runs()}
        if name not in known:
            run = imported_run(name, [_source(name, [])])
            self.store.add_run(run)
            self._keepers[name] = RunKeeper(self.store, run)
        elif name not in self._keepers:
            if known[name].suite != FORMAT.name:
                raise UsageError(f"Run {name} is not one of traces; choose another name.")
            self._keepers[name] = RunKeeper.resumed(self.store, known[name])
        return self._keepers[name]


def _source(name: str, rows: list[dict[str, Any]]) -> LogSource:
    return LogSource(replace(FORMAT, read=lambda _: iter(rows)), Path(name), (), origin=name)
