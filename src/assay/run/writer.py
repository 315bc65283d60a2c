"""Write records down in groups, in a thread of its own, before they count."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.store.store import Row, Store

EVERY = 0.2
"""Seconds between two commits at the most."""
MANY = 1000
"""How many records may wait before the attempts have to."""


class Writer:
    """Collects records and calls, and commits them together several times a second."""

    def __init__(self, store: Store, committed: Callable[[list[Row]], None]) -> None:
        self._store, self._committed = store, committed
        self._records: list[Row] = []
        self._calls: list[Row] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ended = False
        self._room = asyncio.Event()
        self._room.set()
        self._loop = asyncio.get_running_loop()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="assay-writer", daemon=True)
        self._thread.start()

    async def put(self, record: Row | None, calls: list[Row]) -> None:
        """Hand over a record and its calls; waits while too many are not yet written."""
        if self.error:
            raise self.error
        with self._lock:
            if record is not None:
                self._records.append(record)
            self._calls.extend(calls)
            full = len(self._records) >= MANY
        if full:
            self._wake.set()
            self._room.clear()
            await self._room.wait()
            if self.error:
                raise self.error

    async def close(self) -> None:
        """Write what is left and end; raises what went wrong while writing."""
        self._ended = True
        self._wake.set()
        await asyncio.to_thread(self._thread.join)
        if self.error:
            raise self.error

    def _run(self) -> None:
        try:
            while not self._ended:
                self._wake.wait(EVERY)
                self._wake.clear()
                self._flush()
            self._flush()
        except BaseException as error:
            self.error = error
        self._loop.call_soon_threadsafe(self._room.set)

    def _flush(self) -> None:
        with self._lock:
            records, calls = self._records, self._calls
            self._records, self._calls = [], []
        if records or calls:
            self._store.write(records, calls)
            self._committed(records)
            self._loop.call_soon_threadsafe(self._room.set)
