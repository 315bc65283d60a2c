"""Who may look and who may change: tokens compared in constant time, attempts limited."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal

from pennyweight.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

Right = Literal["read", "write"]

WRONG, WINDOW = 10, 60.0
"""So many wrong tokens in so many seconds, from everywhere together, are told to be wrong."""
SHORTEST = 16
SESSIONS = 1_000


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class TooMany(Exception):  # noqa: N818
    """There were too many wrong tokens of late."""


@dataclass(slots=True)
class Access:
    """The tokens that open the page; without any, everyone who reaches it may do everything."""

    tokens: Mapping[bytes, Right] = field(default_factory=dict, repr=False)
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    """What a change made by a page has to bring along; other sites cannot read it."""
    _sessions: dict[str, Right] = field(default_factory=dict, repr=False)
    _wrong: deque[float] = field(default_factory=deque, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def of(cls, host: str, environment: Mapping[str, str]) -> Access:
        """Read the tokens; bound to anything but loopback, one is demanded.

        `PENNYWEIGHT_TOKEN` may read and write, `PENNYWEIGHT_READ_TOKEN` may read.
        Separate several by commas.
        """
        found: dict[bytes, Right] = {}
        rights: tuple[tuple[str, Right], ...] = (
            ("PENNYWEIGHT_READ_TOKEN", "read"),
            ("PENNYWEIGHT_TOKEN", "write"),
        )
        for variable, right in rights:
            for token in filter(None, map(str.strip, environment.get(variable, "").split(","))):
                if len(token) < SHORTEST:
                    raise UsageError(
                        f"{variable} holds a token of {len(token)} characters; "
                        f"use at least {SHORTEST}, such as from 'openssl rand -hex 16'."
                    )
                found[_hash(token)] = right
        if not found and not is_loopback(host):
            raise UsageError(
                f"--host {host} can be reached by others: set PENNYWEIGHT_TOKEN to a token that "
                "they must give (openssl rand -hex 16), or leave --host out."
            )
        return cls(found)

    @property
    def open(self) -> bool:
        """Whether no token is needed."""
        return not self.tokens

    def right_of(self, token: str) -> Right | None:
        """Say what a token allows; every known token is compared, whatever is found.

        Only wrong tokens are counted and refused: who has a right one is never locked out.
        """
        given, right = _hash(token), None
        for known, its in self.tokens.items():
            if hmac.compare_digest(given, known):
                right = its
        if right is None:
            self._count()
        return right

    def _count(self) -> None:
        """Count a wrong token; too many of them are not even told that they are wrong."""
        now = time.monotonic()
        with self._lock:
            while self._wrong and now - self._wrong[0] > WINDOW:
                self._wrong.popleft()
            if len(self._wrong) >= WRONG:
                raise TooMany
            self._wrong.append(now)

    def enter(self, token: str) -> tuple[str, Right] | None:
        """Begin a session for a token."""
        right = self.right_of(token)
        if right is None:
            return None
        session = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._sessions) >= SESSIONS:
                self._sessions.pop(next(iter(self._sessions)))
            self._sessions[session] = right
        return session, right

    def session(self, name: str) -> Right | None:
        """Say what a session allows."""
        with self._lock:
            return self._sessions.get(name)

    def leave(self, name: str) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(name, None)

    def is_csrf(self, given: str) -> bool:
        """Whether a change comes from a page of this server."""
        return hmac.compare_digest(given.encode(), self.csrf.encode())


def _hash(token: str) -> bytes:
    return sha256(token.encode()).digest()
