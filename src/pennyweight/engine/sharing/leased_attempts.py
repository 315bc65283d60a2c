"""The attempts that a worker has taken from a shared run, portion by portion."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from pennyweight.engine.attempt_queues import AttemptQueue
from pennyweight.engine.limiter import Limiter
from pennyweight.engine.sharing.worker import Worker
from pennyweight.engine.writer import SMALL_GROUP
from pennyweight.store.shared_runs import Claim, LostLeaseError, made, places
from pennyweight.store.store import RECORD_COLUMNS, Row
from pennyweight.suite.plan import Attempt, SubjectPlan

SECONDS = 1.0
"""How long a portion should last, if calls are quick."""
AHEAD = 0.3
"""A portion is fetched when what is left lasts this many seconds."""
LARGEST = 1024
POLL = 0.5
"""Seconds between two questions whether another worker has given something back."""
_KEY = [RECORD_COLUMNS.index(name) for name in ("subject", "tier", "task_id", "attempt")]
_Key = tuple[str, str, str, int]


@dataclass(slots=True)
class _Held:
    """A portion that this worker holds."""

    id: int
    left: set[_Key]
    """The attempts that have no committed record yet."""
    failed: int = 0
    is_returned: bool = False
    """Whether some of them were not begun and are for others now."""


@dataclass(slots=True)
class LeasedAttempts:
    """Takes portions of a run as they are needed, and gives back what was not made."""

    worker: Worker
    plans: dict[str, SubjectPlan]
    """The plans of the subjects that this worker serves, by name."""
    _queues: list[_LeasedQueue] = field(default_factory=list)
    _held: dict[int, _Held] = field(default_factory=dict)
    _portions: dict[_Key, _Held] = field(default_factory=dict)
    _done: deque[int] = field(default_factory=deque)
    _back: deque[int] = field(default_factory=deque)
    _refused: set[int] = field(default_factory=set)
    """Portions that this worker could not complete, and does not take again."""
    _workers: int = 1
    """How many workers the run had when this one last asked."""
    _fixed: list[Limiter] = field(default_factory=list)
    """The accounts whose concurrency the workers share."""
    _sharing: threading.Lock = field(default_factory=threading.Lock)
    _is_idle: bool = False
    """Whether there is nothing to call until another worker gives something back."""

    def queues(
        self, limiters: dict[str, Limiter], account_of: Callable[[str], str]
    ) -> Sequence[AttemptQueue]:
        """Return a queue for each account that the worker's subjects use."""
        for account, limiter in limiters.items():
            names = [name for name in self.plans if account_of(name) == account]
            if names:
                self._queues.append(_LeasedQueue(self, limiter, names))
        return self._queues

    def begin(self, limiters: dict[str, Limiter], stop: Callable[[], None]) -> None:
        """Get this worker's share of a fixed concurrency, now and with each heartbeat."""
        loop = asyncio.get_running_loop()
        self._fixed = [limiter for limiter in limiters.values() if not limiter.adapts]
        self.worker.stop = stop
        if self._fixed:
            self.worker.store.patiently(lambda _: self._share(loop))
            self.worker.beats.append(lambda: self._share(loop))

    def _share(self, loop: asyncio.AbstractEventLoop) -> None:
        worker, fixed = self.worker, self._fixed
        with self._sharing:  # the answers arrive in the order of the questions
            mine = places(
                worker.store,
                worker.run_id,
                worker.id,
                fixed[0].total,
                max(limiter.in_flight for limiter in fixed),
                max(limiter.places for limiter in fixed),
                idle=self._is_idle,
            )
            with suppress(RuntimeError):  # the loop may have ended
                loop.call_soon_threadsafe(self._allow, mine)

    def _allow(self, mine: int) -> None:
        for limiter in self._fixed:
            limiter.allow(mine)
        if not mine:
            for queue in self._queues:
                queue.give_back()
        self.wake()

    async def rest(self) -> None:
        """Let others have what a worker without attempts or places cannot use; ask for places."""
        before, fixed = self._is_idle, self._fixed
        self._is_idle = all(queue.is_idle for queue in self._queues)
        if fixed and self._is_idle:
            for limiter in fixed:
                limiter.allow(0)  # before others get its places
        has_places = not fixed or int(fixed[0].limit) > 0
        if self._is_idle or not has_places:
            await self.worker.give_back()
        if fixed and (self._is_idle != before or not (self._is_idle or has_places)):
            loop, store = asyncio.get_running_loop(), self.worker.store
            await asyncio.to_thread(store.patiently, lambda _: self._share(loop))

    def companions(self) -> int:
        """Half of the store's work is beginning and ending transactions of a few records."""
        if self._workers == 1:
            return 0
        return min(SMALL_GROUP, sum(int(queue.limiter.limit) for queue in self._queues))

    def wake(self) -> None:
        """Let those who wait look whether the run stops."""
        for queue in self._queues:
            queue.wake(all_of_them=True)

    def committed(self, rows: Iterable[Row]) -> None:
        """Note records that are committed, which may complete portions."""
        for row in rows:
            subject, tier, task, number = (row[i] for i in _KEY)
            self._settle((subject, tier, task, number))

    def failed(self, attempt: Attempt) -> None:
        """Note an attempt that cannot be made here: another worker may try it."""
        key = _key(attempt)
        if held := self._portions.get(key):
            held.failed += 1
            self._settle(key)

    def returned(self, attempts: Iterable[Attempt]) -> None:
        """Note attempts that are not begun here: others may make them."""
        for key in map(_key, attempts):
            if held := self._portions.get(key):
                held.is_returned = True
                self._settle(key)

    def _settle(self, key: _Key) -> None:
        held = self._portions.pop(key, None)
        if held is None:
            return
        held.left.discard(key)
        if held.left or self._held.pop(held.id, None) is None:
            return
        if held.failed and not held.is_returned:
            self._refused.add(held.id)
        if held.failed or held.is_returned:
            self._back.append(held.id)
        else:
            self._done.append(held.id)

    async def claim(self, subjects: Sequence[str], size: int) -> tuple[list[Attempt], Claim]:
        """Take a portion; return its attempts, and what the store says. A size of 0 takes none."""
        ids = [*self._held]  # what is given back from now on is not given again by this question
        done, back = _drained(self._done), _drained(self._back)
        try:
            got, attempts = await asyncio.to_thread(self._claim, subjects, size, ids, done, back)
        except BaseException:
            self._done.extend(done)
            self._back.extend(back)
            raise
        if got.portion is None:
            return [], got
        held = _Held(got.portion.id, {_key(attempt) for attempt in attempts})
        if attempts:
            self._held[held.id] = held
            self._portions.update(dict.fromkeys(held.left, held))
        else:
            self._done.append(held.id)
        return attempts, got

    def _claim(
        self,
        subjects: Sequence[str],
        size: int,
        held: Sequence[int],
        done: Sequence[int],
        back: Sequence[int],
    ) -> tuple[Claim, list[Attempt]]:
        got = self.worker.claim(
            subjects, size, held=held, done=done, back=back, without=[*self._refused]
        )
        portion, self._workers = got.portion, got.workers
        if portion is None:
            return got, []
        plan = self.plans[portion.subject]
        attempts = [plan[i] for i in range(portion.first, min(portion.last, len(plan)))]
        if portion.is_new:
            return got, attempts
        tasks = {attempt.task.id for attempt in attempts}
        store, run_id, began = self.worker.store, self.worker.run_id, self.worker.began
        has = store.patiently(lambda _: made(store, run_id, portion.subject, tasks, began))
        return got, [a for a in attempts if (a.tier.name, a.task.id, a.number) not in has]

    async def close(self) -> None:
        """Give back what was not made."""
        for queue in self._queues:
            await queue.close()
        await asyncio.to_thread(self.worker.leave, _drained(self._done))
        if self.worker.error:
            raise self.worker.error


class _LeasedQueue:
    """The attempts of one account, no more of them than its limiter lets through."""

    def __init__(self, attempts: LeasedAttempts, limiter: Limiter, subjects: Sequence[str]) -> None:
        self.limiter, self._all = limiter, attempts
        self._buffers: dict[str, deque[Attempt]] = {name: deque() for name in subjects}
        self._taken = dict.fromkeys(subjects, 0)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._fetching: asyncio.Task[None] | None = None
        self._out = 0
        self._ended = False
        self._found = True
        """Whether there were attempts to take, when the store was last asked."""
        self._finished, self._since, self._rate = 0, time.monotonic(), 0.0

    @property
    def is_idle(self) -> bool:
        """Whether nothing is begun, and nothing can be."""
        ended = self._ended or self.limiter.is_closed
        return not (self._out or any(self._buffers.values()) or (self._found and not ended))

    def take(self, *, ahead: bool = False) -> Attempt | None:
        places = int(self.limiter.limit)
        if not places or (self._out >= places and not ahead):
            return None
        ready = [name for name, buffer in self._buffers.items() if buffer]
        if not ready:
            return None
        name = min(ready, key=self._taken.__getitem__) if len(ready) > 1 else ready[0]
        self._taken[name] += 1
        self._out += 1
        attempt = self._buffers[name].popleft()
        if len(self._buffers[name]) < self._rate * AHEAD and len(ready) == 1:
            self._fetch()
        return attempt

    async def more(self) -> bool:
        while not self._ended and not self.limiter.is_closed:
            filled = any(self._buffers.values())
            if filled and self._out < int(self.limiter.limit):
                return True
            if not filled:
                self._fetch()
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        return False

    def made(self, attempt: Attempt) -> None:
        del attempt
        self._finished += 1
        self._free()

    def failed(self, attempt: Attempt, *, all_of_it: bool = False) -> None:
        self._all.failed(attempt)
        if all_of_it:
            for left in self._buffers.pop(attempt.subject.name, ()):
                self._all.failed(left)
            if not self._buffers:
                self._end()
        self._free()

    def give_back(self) -> None:
        """Let others make what is not begun: this worker has no places now."""
        for buffer in self._buffers.values():
            self._all.returned(buffer)
            buffer.clear()
        self._fetch()

    def _free(self) -> None:
        self._out -= 1
        self.wake()

    def wake(self, *, all_of_them: bool = False) -> None:
        """Wake as many as there are places for."""
        free = len(self._waiting) if all_of_them else int(self.limiter.limit) - self._out
        while free > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1

    def _end(self) -> None:
        self._ended = True
        self.wake(all_of_them=True)

    def _fetch(self) -> None:
        if self._fetching is None and not self._ended and not self.limiter.is_closed:
            self._fetching = asyncio.create_task(self._fetched())

    def _size(self) -> int:
        """Return how many attempts last a while; none without places."""
        now, limit = time.monotonic(), int(self.limiter.limit)
        if self._finished:
            self._rate = self._finished / max(now - self._since, 1e-3)
        self._finished, self._since = 0, now
        size = max(limit - self._out, int(self._rate * SECONDS))
        return max(1, min(LARGEST, size)) if limit else 0

    def _fill(self, attempts: Iterable[Attempt]) -> None:
        for attempt in attempts:
            if (buffer := self._buffers.get(attempt.subject.name)) is not None:
                buffer.append(attempt)
        if not int(self.limiter.limit):  # maybe since the question
            self.give_back()

    async def _fetched(self) -> None:
        """Fetch a portion; wait for places, or where other workers hold the rest."""
        try:
            self._found = True
            attempts, got = await self._all.claim([*self._buffers], self._size())
            self._fill(attempts)
            self._found = got.waiting or got.portion is not None
            if got.portion or self.limiter.is_closed:
                return
            if got.left or (self._out and not int(self.limiter.limit)):
                await self._all.rest()
                if not (got.waiting and int(self.limiter.limit)):
                    await self.limiter.rest(POLL)
            elif not any(self._buffers.values()):
                self._end()
        except LostLeaseError:
            self._all.worker.lose()
            self._end()
        except BaseException as error:
            self._all.worker.fail(error)
            self._end()
        finally:
            self._fetching = None
            self.wake(all_of_them=True)
            if not int(self.limiter.limit):  # those who wait for a place do not ask
                self._fetch()

    async def close(self) -> None:
        """Wait for a question that is under way; ask no more."""
        self._ended = True
        if self._fetching:
            await asyncio.wait([self._fetching])


def _key(attempt: Attempt) -> _Key:
    return attempt.subject.name, attempt.tier.name, attempt.task.id, attempt.number


def _drained(ids: deque[int]) -> list[int]:
    found = []
    while ids:
        found.append(ids.popleft())
    return found
