"""Write records down in groups, in a thread of its own, before they count."""

from __future__ import annotations

import asyncio
import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from assay.store.connect import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.store.store import Row, Store

    Item = tuple[Row | None, list[Row], asyncio.Future[None]]

GATHER = 0.002
"""Seconds to wait for company: a group costs little more to commit than one record."""


class Writer:
    """Commits records with their calls, those that come in while it is busy as one group."""

    def __init__(self, store: Store, committed: Callable[[list[Row]], None]) -> None:
        self._store, self._committed = store, committed
        self._queue: SimpleQueue[Item | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._lost = 0
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="assay-writer", daemon=True)
        self._thread.start()

    async def put(self, record: Row | None, calls: list[Row]) -> None:
        """Hand over a record and its calls; returns when they are committed."""
        if self.error:
            self._lost += record is not None
            raise self.error
        done: asyncio.Future[None] = self._loop.create_future()
        self._queue.put((record, calls, done))
        await done
        if self.error:
            raise self.error

    async def close(self) -> None:
        """Write what is left and end; raises what went wrong while writing."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        self._give_up()
        if isinstance(self.error, StoreError) and self._lost:
            text = f"{self.error} Not kept, and made again then: {self._lost:,} responses."
            raise StoreError(text) from self.error
        if self.error:
            raise self.error

    def _run(self) -> None:
        group: list[Item] = []
        try:
            ended = False
            while not ended:
                group, ended = self._next()
                if group:
                    records = [record for record, _, _ in group if record is not None]
                    self._store.write(records, [call for _, calls, _ in group for call in calls])
                    self._loop.call_soon_threadsafe(_wake, group)
                    self._committed(records)
        except BaseException as error:
            for item in group:
                self._queue.put(item)
            self.error = error
            self._loop.call_soon_threadsafe(self._give_up)

    def _next(self) -> tuple[list[Item], bool]:
        """Wait for what is to be written, and say whether it is the last."""
        items = [self._queue.get()]
        if items[0] is not None:
            time.sleep(GATHER)
        try:
            while True:
                items.append(self._queue.get_nowait())
        except Empty:
            return [item for item in items if item is not None], None in items

    def _give_up(self) -> None:
        """Let go of those that wait for a commit that will not come; `put` tells them why."""
        left: list[Item] = []
        while not self._queue.empty():
            if (item := self._queue.get()) is not None:
                left.append(item)
        self._lost += sum(record is not None for record, _, _ in left)
        _wake(left)


def _wake(group: list[Item]) -> None:
    for _, _, done in group:
        if not done.done():
            done.set_result(None)
