"""The writer: commits records in groups, in a separate thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic

from pennyweight.errors import StoreError
from pennyweight.store.store import CALL_COLUMNS, RESERVED, Row

Item = tuple[Row | None, list[Row], "asyncio.Future[None] | None", Callable[[], None]]
WriteRows = Callable[[Sequence[Row], Sequence[Row]], None]
"""Writes records, or judgments, and their calls in one transaction."""

_KIND = CALL_COLUMNS.index("kind")
SMALL_GROUP, LARGE_GROUP = 16, 256
"""How many records are handed over while the thread is idle, and at the latest."""
LONGEST_HOLD = 0.02
"""Seconds that records wait at most for others, and not longer than the last write took."""


class Writer:
    """Commits records with their calls in groups, which take little longer than one record.

    A group is complete when the loop has nothing else to do, or when the thread is idle and a few
    records wait: no record waits for others that may never come. Only where other processes can use
    the time, it waits about as long as a write takes for `companions`: the number of records that
    are worth it.
    """

    def __init__(
        self,
        write: WriteRows,
        committed: Callable[[list[Row]], None],
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        self._write, self._committed, self._failed = write, committed, failed
        self._queue: SimpleQueue[list[Item] | None] = SimpleQueue()
        self._gathered: list[Item] = []
        self._unwritten = 0
        self._busy = False
        self.companions: Callable[[], int] = lambda: 0
        self._took = 0.0
        self._holding: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._lost = 0
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="pennyweight-writer", daemon=True)
        self._thread.start()

    async def put(
        self,
        record: Row | None,
        calls: list[Row],
        meanwhile: Callable[[], None] | None = None,
        spare: int = 0,
        then: Callable[[], None] = lambda: None,
    ) -> None:
        """Pass on a record and its calls; return when they are committed.

        `meanwhile` is called while they are being written, `then` when they are committed. With at
        most `spare` records unwritten, return at once.
        """
        if self.error:
            self._lost += _responses(record, calls)
            raise self.error
        self._unwritten += 1
        done = self._loop.create_future() if self._unwritten > spare else None
        self._gathered.append((record, calls, done, then))
        if self._holding:
            if len(self._gathered) >= self.companions():
                self._hand_over()
        elif len(self._gathered) == 1:
            self._loop.call_soon(self._look, 1)
        if done is None:
            return
        if meanwhile:
            self._loop.call_soon(meanwhile)
        await done
        if self.error:
            raise self.error

    def _look(self, before: int) -> None:
        """Hand over the group, or wait while it grows."""
        size = len(self._gathered)
        if before < size < (LARGE_GROUP if self._busy else SMALL_GROUP):
            self._loop.call_soon(self._look, size)
        elif size < self.companions():
            self._holding = self._loop.call_later(min(self._took, LONGEST_HOLD), self._hand_over)
        else:
            self._hand_over()

    def _hand_over(self) -> None:
        if self._holding:
            self._holding.cancel()
            self._holding = None
        group, self._gathered = self._gathered, []
        if group:
            self._queue.put(group)

    async def close(self, in_flight: int = 0) -> None:
        """Write the rest and end; raise the error that stopped the writing.

        `in_flight` is the number of calls that were cancelled because of it.
        """
        self._hand_over()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        self._give_up()
        if isinstance(self.error, StoreError) and (lost := self._lost + in_flight):
            text = f"{self.error} Not stored, and repeated on resume: {lost:,} response"
            text += "s" if lost > 1 else ""
            text += f", {in_flight:,} of them still in flight." if in_flight else "."
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
                    records = [record for record, *_ in group if record is not None]
                    began = monotonic()
                    self._write(records, [call for _, calls, *_ in group for call in calls])
                    self._took = monotonic() - began
                    self._loop.call_soon_threadsafe(self._wake, group)
                    group = []
                    self._committed(records)
        except BaseException as error:
            self._queue.put(group)
            self.error = error
            self._loop.call_soon_threadsafe(self._give_up)

    def _next(self) -> tuple[list[Item], bool]:
        """Wait for the next items to write; return them and whether they are the last."""
        self._busy = False
        groups = [self._queue.get()]
        self._busy = True
        with suppress(Empty):
            while True:
                groups.append(self._queue.get_nowait())
        return [item for group in groups for item in group or ()], None in groups

    def _give_up(self) -> None:
        """Release the callers that wait for a commit that will not come; `put` raises the error.

        After an error, `failed` cancels the calls in flight: their results could not be stored.
        """
        left, self._gathered = self._gathered, []
        while not self._queue.empty():
            left += self._queue.get() or ()
        self._lost += sum(_responses(record, calls) for record, calls, *_ in left)
        self._wake(left)
        if self.error:
            self._failed()

    def _wake(self, group: list[Item]) -> None:
        self._unwritten -= len(group)
        for _, _, done, then in group:
            then()
            if done is not None and not done.done():
                done.set_result(None)


def _responses(record: Row | None, calls: Sequence[Row]) -> int:
    """Count the calls of a record: a conversation, or an attempt with retries, has several."""
    made = [row for row in calls if row[_KIND] != RESERVED]
    return max(record is not None, len(made))
