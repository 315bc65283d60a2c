"""Replies that arrive piece by piece, as server-sent events.

The pieces are put together to the body that the server would have sent without streaming, so that
text, usage and cost do not depend on it. Only the time of the first piece is new.
"""

from __future__ import annotations

import re
from time import perf_counter
from typing import Any, Protocol

from pennyweight.models.failure import CallError, malformed, shorten, total
from pennyweight.models.json_values import PIECE
from pennyweight.models.model import Usage
from pennyweight.models.transport import read_json

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_DONE = b"[DONE]"


class StreamedBody(Protocol):
    """The body of a reply that grows with each event of a wire format."""

    complete: bool
    """Whether the event that ends a reply has come."""

    def add(self, event: Any) -> tuple[bool, int]:
        """Add an event: whether it has output of the model, and how many bytes are kept of it.

        Raise CallError if the event is an error.
        """

    def body(self) -> dict[str, Any]:
        """Return the body as it would have come without streaming."""


class EventStream:
    """Reads the events of one response as they arrive."""

    __slots__ = (
        "_body",
        "_data",
        "_done",
        "_events",
        "_exact",
        "_kept",
        "_rest",
        "_start",
        "first",
    )

    def __init__(self, body: StreamedBody, *, exact: bool = False) -> None:
        self._body, self._exact = body, exact
        self._rest, self._data, self._start = bytearray(), list[bytes](), b""
        self._events = self._kept = 0
        self._done = False
        self.first: float | None = None
        """When the first output of the model came, as `perf_counter` says it."""

    @property
    def held(self) -> int:
        """How many bytes of memory it uses."""
        return len(self._rest) + self._kept

    def feed(self, data: bytes) -> None:
        """Read a part of the response. Raise CallError if it is not as documented."""
        if not self._start:
            self._start = data[:80]
            data = data.removeprefix(_BOM)
        if not _LINE_END.search(data):
            self._rest += data
            return
        lines = _LINE_END.split(bytes(self._rest) + data)
        rest = lines.pop()
        if data.endswith(b"\r"):  # the rest of this end may be in the next part
            rest = lines.pop() + b"\r"
        self._rest = bytearray(rest)
        for line in lines:
            self._take(line)

    def finish(self, content_type: str) -> dict[str, Any]:
        """Return the body of the reply, now that the response is over."""
        self._take(bytes(self._rest).removesuffix(b"\r"))
        self._take(b"")
        if not self._events:
            start = self._start.decode("utf-8", "replace")
            kind = shorten(content_type or "no content type")
            raise malformed(f"it is not a stream of events but {kind}, starting with {start!r}.")
        if not (self._done or self._body.complete):
            raise CallError("connection", "The stream ended before the reply did.")
        return self._body.body()

    def _take(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
            self._kept += len(line) + PIECE
        elif not line and self._data:
            whole = b"\n".join(self._data)
            self._kept -= sum(len(part) + PIECE for part in self._data)
            self._data = []
            self._event(whole)

    def _event(self, data: bytes) -> None:
        if self._done or not data.strip():
            return
        self._events += 1
        if data.strip() == _DONE:
            self._done = True
            return
        event = read_json(data, exact=self._exact)
        if not isinstance(event, dict):
            start = data[:80].decode("utf-8", "replace")
            what = f"event {self._events} of its stream is no JSON object but {start!r}."
            raise malformed(what)
        is_output, kept = self._added(event)
        self._kept += kept
        if is_output and self.first is None:
            self.first = perf_counter()

    def _added(self, event: Any) -> tuple[bool, int]:
        try:
            return _guarded(event, self._body)
        except CallError as wrong:
            if self.first is None or not wrong.retryable:
                raise
            failed = CallError("connection", f"The stream broke off: {wrong}")
        raise failed  # what has come already may have been charged


@total(lambda _: Usage())
def _guarded(event: Any, body: StreamedBody) -> tuple[bool, int]:
    return body.add(event)
