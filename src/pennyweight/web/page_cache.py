"""Pages as they were sent: what does not change for a run that has ended is written once."""

from __future__ import annotations

import gzip
import re
import struct
import threading
import zlib
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.types import Receive, Scope, Send

MAX_BYTES = 8_000_000
"""How much all compressed pages take with their places; the oldest ones are dropped."""
MAX_PLACE = 3_000
"""A page with a longer place (no address that the pages link to has one) is not remembered."""
ACCEPTED = b"accept-encoding"
_QUALITY = re.compile(r"\s*(?:q\s*=\s*([01](?:\.[0-9]{0,3})?)\s*)?")
LEVEL = 1
"""How hard pages are compressed: a page that is seen once must not wait for it."""
MIN_PART, MAX_PART_BYTES = 20_000, 8_000_000
"""The length from which a part of a page is compressed once, and how much such parts take."""
_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_LAST_BLOCK = b"\x03\x00"


@dataclass(slots=True)
class PageCache:
    """Compressed pages by address and reader, each with the state of what it shows.

    A page is sent again only while that state, which is read for every request, is equal. The
    place is the whole address and everything that a page has of its reader, so that
    nobody gets the page of somebody with other rights.
    """

    _pages: OrderedDict[Hashable, tuple[Any, bytes]] = field(default_factory=OrderedDict)
    _bytes: int = 0
    _parts: OrderedDict[bytes, bytes] = field(default_factory=OrderedDict)
    """Large parts, compressed: charts and a grid are the same below each order of a leaderboard."""
    _part_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pack(self, parts: Iterable[str]) -> bytes:
        """Compress the parts of a page to one page in the format of gzip."""
        packed, crc, size = [_HEAD], 0, 0
        for data, alone in _joined(parts):
            packed.append(self._deflated_once(data) if alone else deflated(data))
            crc, size = zlib.crc32(data, crc), size + len(data)
        return b"".join([*packed, _LAST_BLOCK, struct.pack("<II", crc, size)])

    def _deflated_once(self, data: bytes) -> bytes:
        with self._lock:
            if known := self._parts.get(data):
                self._parts.move_to_end(data)
        found = known or deflated(data)
        with self._lock:
            if data not in self._parts:
                self._part_bytes += len(data) + len(found)
            self._parts[data] = found
            while self._part_bytes > MAX_PART_BYTES:
                self._part_bytes -= sum(map(len, self._parts.popitem(last=False)))
        return found

    def find(self, place: Hashable, state: Any) -> bytes | None:
        """Return the page at a place, if it shows this state."""
        with self._lock:
            known = self._pages.get(place)
            if known is None or known[0] != state:
                return None
            self._pages.move_to_end(place)
            return known[1]

    def keep(self, place: Hashable, state: Any, page: bytes) -> None:
        """Remember a compressed page, in place of an older one."""
        if _size(place) > MAX_PLACE:
            return
        with self._lock:
            if old := self._pages.pop(place, None):
                self._bytes -= _size(place, old[1])
            self._bytes += _size(place, page)
            self._pages[place] = (state, page)
            while self._bytes > MAX_BYTES:
                oldest, (_, gone) = self._pages.popitem(last=False)
                self._bytes -= _size(oldest, gone)


def _size(place: Hashable, page: bytes = b"") -> int:
    return len(repr(place)) + len(page)


def _joined(parts: Iterable[str]) -> Iterator[tuple[bytes, bool]]:
    """Join the small parts between large ones; also say which are large."""
    for large, some in groupby(parts, lambda part: len(part) >= MIN_PART):
        yield from ((part.encode(), large) for part in (some if large else ["".join(some)]))


def deflated(data: bytes) -> bytes:
    """Compress data to whole blocks that refer to nothing before them."""
    made = zlib.compressobj(LEVEL, wbits=-zlib.MAX_WBITS)
    return made.compress(data) + made.flush(zlib.Z_FULL_FLUSH)


def answer(request: Request, page: bytes) -> HTMLResponse:
    """Send a compressed page, as it is to readers who accept that."""
    if request.headers.get("accept-encoding") != "gzip":  # as `AcceptedGzip` writes it
        return HTMLResponse(gzip.decompress(page))
    headers = {"vary": "Accept-Encoding", "content-encoding": "gzip"}
    return HTMLResponse(page, headers=headers)


def accepts_gzip(headers: Iterable[str]) -> bool:
    """Whether headers `Accept-Encoding` allow gzip, by its name or by the star.

    >>> accepts_gzip(["br, gzip;q=0.5"]), accepts_gzip(["gzip;q=0, *"]), accepts_gzip([])
    (True, False, False)
    """
    allowed: dict[str, bool] = {}
    for entry in ",".join(headers).lower().split(","):
        name, _, more = entry.partition(";")
        quality = _QUALITY.fullmatch(more)
        allowed[name.strip()] = quality is not None and float(quality[1] or 1) > 0
    return allowed.get("gzip", allowed.get("*", False))


class AcceptedGzip(GZipMiddleware):
    """Compresses what readers accept compressed; the parent looks for the word alone."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with a header that says whether gzip is accepted."""
        headers = scope.get("headers", ())
        accepted = [value.decode("latin-1") for name, value in headers if name == ACCEPTED]
        if accepted:
            plain = b"gzip" if accepts_gzip(accepted) else b"identity"
            others = [pair for pair in headers if pair[0] != ACCEPTED]
            scope = {**scope, "headers": [*others, (ACCEPTED, plain)]}
        await super().__call__(scope, receive, send)
