"""Where the workers of an engine get their attempts from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from pennyweight.engine.limiter import Limiter
from pennyweight.store.store import Row
from pennyweight.suite.plan import Attempt


class AttemptQueue(Protocol):
    """The attempts of one account."""

    limiter: Limiter

    def take(self, *, ahead: bool = False) -> Attempt | None:
        """Return the next attempt, if there is one now; `ahead` of its turn to prepare it."""

    async def more(self) -> bool:
        """Wait until there may be another attempt; false if there will be none."""

    def made(self, attempt: Attempt) -> None:
        """Note that an attempt was made: its record is with the writer."""

    def failed(self, attempt: Attempt, *, all_of_it: bool = False) -> None:
        """Note an attempt that could not be made, or a subject whose attempts all cannot."""


class AttemptQueues(Protocol):
    """The attempts of a run, or of a worker's part of it."""

    def queues(
        self, limiters: dict[str, Limiter], account_of: Callable[[str], str]
    ) -> Iterable[AttemptQueue]:
        """Return a queue for each account."""

    def begin(self, limiters: dict[str, Limiter], stop: Callable[[], None]) -> None:
        """Prepare for the first attempt; `stop` ends the run."""

    def companions(self) -> int:
        """How many records are worth a short wait, to be committed together."""

    def wake(self) -> None:
        """Let those who wait for attempts look whether the run stops."""

    def committed(self, rows: list[Row]) -> None:
        """Note records that are committed; called from the writer's thread."""

    async def close(self) -> None:
        """Give back what was not made, after the last record is written."""


class OwnAttempts:
    """Attempts that this process makes alone."""

    def __init__(self, attempts: Iterable[Attempt]) -> None:
        self._attempts = iter(attempts)

    def queues(
        self, limiters: dict[str, Limiter], account_of: Callable[[str], str]
    ) -> Iterator[AttemptQueue]:
        """Distribute attempts over their accounts, so that a paused account delays no other."""
        waiting: dict[str, deque[Attempt]] = {account: deque() for account in limiters}

        def queue(account: str) -> Iterator[Attempt]:
            own = waiting[account]
            while True:
                while not own:
                    attempt = next(self._attempts, None)
                    if attempt is None:
                        return
                    waiting[account_of(attempt.subject.name)].append(attempt)
                yield own.popleft()

        for account, limiter in limiters.items():
            yield _OwnQueue(limiter, queue(account))

    def begin(self, limiters: dict[str, Limiter], stop: Callable[[], None]) -> None:
        """There is nothing to prepare."""

    def companions(self) -> int:
        """Nobody else could use the time."""
        return 0

    def wake(self) -> None:
        """Nobody waits."""

    def committed(self, rows: list[Row]) -> None:
        """Nobody else needs to know."""

    async def close(self) -> None:
        """There is nobody to give attempts to."""


class _OwnQueue:
    def __init__(self, limiter: Limiter, attempts: Iterator[Attempt]) -> None:
        self.limiter, self._attempts = limiter, attempts

    def take(self, *, ahead: bool = False) -> Attempt | None:
        del ahead
        return next(self._attempts, None)

    async def more(self) -> bool:
        return False

    def made(self, attempt: Attempt) -> None:
        pass

    def failed(self, attempt: Attempt, *, all_of_it: bool = False) -> None:
        pass
