"""Memory for large replies: a limit for each, and a cap on all of them in this process."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar

MAX_BODY = 32 * 1024 * 1024
"""The largest reply of all, in bytes."""
BASE, PER_TOKEN, PER_LOGPROB = 1024 * 1024, 256, 1024
"""Bytes of a reply besides its tokens, of a token, and of a token with its log-probability."""
USUAL_TOKENS = 32 * 1024
"""Output tokens assumed for a request without `max_tokens`."""
SMALL = 256 * 1024
"""Replies up to this size need no share of the cap."""
CAP = 64 * 1024 * 1024
"""Bytes of larger replies in this process, from their arrival until they are stored."""


def max_bytes(tokens: int | None, *, logprobs: bool = False) -> int:
    """Return the size limit of a reply with at most `tokens` output tokens.

    >>> max_bytes(100) / 2**20, max_bytes(None) / 2**20, max_bytes(10**9) / 2**20
    (1.0244140625, 9.0, 32.0)
    """
    each = PER_LOGPROB if logprobs else PER_TOKEN
    return min(MAX_BODY, BASE + each * (USUAL_TOKENS if tokens is None else tokens))


class Share:
    """A part of the cap that one reply uses; it may have to wait for it."""

    __slots__ = ("_granted", "_loop", "is_granted", "size")

    def __init__(self, size: int, granted: Callable[[], None] = lambda: None) -> None:
        self.size, self._granted = size, granted
        self._loop = asyncio.get_running_loop()
        self.is_granted = False

    def grant(self) -> None:
        """Tell the loop of the reply that it may continue."""
        self.is_granted = True
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._granted)


class ReplyMemory:
    """Shares of a cap, granted in the order in which they were requested."""

    def __init__(self, cap: int = CAP) -> None:
        self._cap = self._left = cap
        self._waiting: deque[Share] = deque()
        self._lock = threading.Lock()

    @property
    def is_free(self) -> bool:
        """Whether no reply uses or waits for a share."""
        return self._left == self._cap and not self._waiting

    def request(self, share: Share) -> bool:
        """Grant a share at once if there is room; else later, when others are returned."""
        with self._lock:
            if self._waiting or share.size > self._left:
                self._waiting.append(share)
                return False
            self._left -= share.size
            share.is_granted = True
            return True

    def give_back(self, share: Share) -> None:
        """Return a share, or stop waiting for it."""
        with self._lock:
            if share.is_granted:
                self._left += share.size
            elif share in self._waiting:
                self._waiting.remove(share)
            while self._waiting and self._waiting[0].size <= self._left:
                following = self._waiting.popleft()
                self._left -= following.size
                following.grant()


MEMORY = ReplyMemory()
_SHARES: ContextVar[list[Share] | None] = ContextVar("shares", default=None)


class ReplyScope:
    """A block at whose end the replies that arrived in it are stored."""

    __slots__ = ("_shares", "_token")

    def __enter__(self) -> None:
        self._shares: list[Share] = []
        self._token = _SHARES.set(self._shares)

    def __exit__(self, *error: object) -> None:
        _SHARES.reset(self._token)
        if self._shares:
            _return_all(self._shares)


def begin_reply() -> None:
    """Return the shares of earlier replies in this block: a call that waits holds none."""
    if shares := _SHARES.get():
        _return_all(shares)


def keep(share: Share) -> None:
    """Hold a share until its reply is stored, or return it if nobody says when that is."""
    shares = _SHARES.get()
    if shares is None:
        MEMORY.give_back(share)
    else:
        shares.append(share)


def _return_all(shares: list[Share]) -> None:
    while shares:
        MEMORY.give_back(shares.pop())
