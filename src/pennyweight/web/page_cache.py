"""Pages as they were sent: what does not change for a run that has ended is written once."""

from __future__ import annotations

import gzip
import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

MAX_BYTES = 8_000_000
"""How much all compressed pages take; the oldest ones are dropped."""
LEVEL = 3
"""How hard pages are compressed: a page that is seen once must not wait for it."""


@dataclass(slots=True)
class PageCache:
    """Compressed pages by address and reader, each with the state of what it shows.

    A page is sent again only while that state, which is read for every request, is equal. The
    place is the whole address and everything that a page has of its reader, so that
    nobody gets the page of somebody with other rights.
    """

    _pages: OrderedDict[Hashable, tuple[Any, bytes]] = field(default_factory=OrderedDict)
    _bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

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
        with self._lock:
            old = self._pages.pop(place, None)
            self._bytes += len(page) - (len(old[1]) if old else 0)
            self._pages[place] = (state, page)
            while self._bytes > MAX_BYTES:
                _, (_, gone) = self._pages.popitem(last=False)
                self._bytes -= len(gone)


def packed(text: str) -> bytes:
    """Compress a page."""
    return gzip.compress(text.encode(), LEVEL, mtime=0)


def answer(request: Request, page: bytes) -> HTMLResponse:
    """Send a compressed page, as it is to readers who accept that."""
    vary = {"vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return HTMLResponse(gzip.decompress(page), headers=vary)
    return HTMLResponse(page, headers={**vary, "content-encoding": "gzip"})
