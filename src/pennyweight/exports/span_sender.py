"""Send the attempts of a run to an OpenTelemetry endpoint while it goes on."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from pennyweight import __version__
from pennyweight.exports.otlp import TIMEOUT, OtlpEndpoint, OtlpError
from pennyweight.exports.spans import TracedRun, Value, events_of, spans_of
from pennyweight.record import AttemptKey
from pennyweight.sources.otel import protobuf
from pennyweight.store.store import RECORD_COLUMNS
from pennyweight.text.format import plural

if TYPE_CHECKING:
    from pennyweight.store.store import Row, StoredRun

BATCH = 100
"""Attempts in a request."""
PAUSE = 0.5
"""Seconds between two requests, at least: an endpoint and the run share this machine."""
LONGEST_PAUSE = 10.0
PATIENCE = 60.0
"""Seconds to go on sending after the run has ended, while the endpoint takes something."""
TRIES = 2
"""Requests that may fail after the run has ended."""
MAX_WAITING = 200_000
"""Attempts that wait at most."""
_KEY = [RECORD_COLUMNS.index(name) for name in AttemptKey._fields]


@dataclass(slots=True)
class SpanSender:
    """Sends attempts in a thread of its own; the run neither waits for it nor fails with it."""

    endpoint: OtlpEndpoint
    run: StoredRun
    rows: Callable[[Sequence[AttemptKey]], Iterator[dict[str, Any]]]
    """Reads attempts, with what is decided about them."""
    tell: Callable[[str], None]
    later: bool
    """Whether the evaluation follows at the end, as log events."""
    sent: int = 0
    lost: int = 0
    refused: int = 0
    why: str = ""
    _waiting: deque[AttemptKey] = field(default_factory=deque)
    _made: list[AttemptKey] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._send_all, name="pennyweight-otel", daemon=True)
        self._thread.start()

    def add(self, rows: Sequence[Row]) -> None:
        """Have attempts sent that were just stored."""
        for row in rows:
            if len(self._waiting) < MAX_WAITING:
                self._waiting.append(AttemptKey(*(row[n] for n in _KEY)))
            else:
                self.lost += 1

    def finish(self) -> str:
        """Send the rest, as long as the endpoint takes it; return what came of it."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(PATIENCE + TRIES * TIMEOUT)
        unsent = self.lost + len(self._waiting)
        text = f"Sent {plural(self.sent, 'attempt')} as traces to {self.endpoint.address}"
        if unsent:
            text += f"; {unsent:,} could not be sent ({self.why or 'too slow'})"
        if self.refused:
            text += f"; it refused {plural(self.refused, 'span')}"
        return f"{text}."

    def _send_all(self) -> None:
        pause = PAUSE
        while not self._ended.wait(pause):
            began = time.monotonic()
            pause = self._send_some(pause)
            if len(self._waiting) >= BATCH and pause == PAUSE:
                pause = time.monotonic() - began  # half of the time, to leave the other to the run
        end, misses = time.monotonic() + PATIENCE, 0
        while self._waiting and misses < TRIES and time.monotonic() < end:
            if self._send_some(PAUSE) > PAUSE:
                misses += 1
                time.sleep(PAUSE)
        if self.later:
            self._send_results(end)

    def _send_some(self, pause: float) -> float:
        """Send some attempts; return how long to wait then."""
        keys = list(islice(self._waiting, BATCH))
        if not keys:
            return PAUSE
        try:
            traced = self._traced()
            rows = self.rows(keys)
            spans = [
                span for row in rows for span in spans_of(row, traced, evaluated=not self.later)
            ]
            self._send(traced.traces(spans), protobuf.TRACES)
        except OtlpError as error:
            self._told(str(error))
            if error.again:
                return min(LONGEST_PAUSE, pause * 2)
            self.lost += len(keys)
        except Exception as error:  # whatever it is, the run goes on
            self._told(f"{type(error).__name__}: {error}"[:200])
            self.lost += len(keys)
        else:
            self.sent += len(keys)
            self._made += keys if self.later else ()
        for _ in keys:
            self._waiting.popleft()
        return PAUSE

    def _send_results(self, end: float) -> None:
        """Send the evaluations of the attempts that were sent without."""
        traced, now = self._traced(), time.time()
        for start in range(0, len(self._made), BATCH):
            try:
                rows = self.rows(self._made[start : start + BATCH])
                events = [event for row in rows for event in events_of(row, traced, now)]
                if events and time.monotonic() < end:
                    self._send(traced.logs(events), protobuf.LOGS)
            except OtlpError as error:
                self._told(f"evaluations: {error}")
                return
            except Exception as error:
                self._told(f"evaluations: {type(error).__name__}: {error}"[:200])
                return

    def _send(self, request: Value, kind: str) -> None:
        self.refused += self.endpoint.send(request, kind)

    def _traced(self) -> TracedRun:
        return TracedRun(self.run.id, self.run.suite, self.run.created, __version__)

    def _told(self, why: str) -> None:
        """Say the first time that something went wrong."""
        if not self.why:
            with suppress(Exception):
                self.tell(f"--otel {self.endpoint.address}: {why}. The run goes on.")
        self.why = why
