"""Tokens and sessions: compared in constant time, with a limit of wrong attempts."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_address
from typing import Literal

from pennyweight.errors import UsageError

Right = Literal["read", "write"]

MAX_WRONG_TOKENS, WRONG_TOKEN_SECONDS = 10, 60.0
"""Wrong tokens, from all clients together, that are answered within this time."""
MIN_TOKEN_LENGTH = 16
MAX_SESSIONS = 1_000


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only.

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
    """There were too many wrong tokens recently."""


@dataclass(slots=True)
class Access:
    """The tokens of a server; without any, everybody who reaches it has all rights."""

    tokens: Mapping[bytes, Right] = field(default_factory=dict, repr=False)
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    """A secret that pages send with every change; other sites cannot read it."""
    _codes: set[bytes] = field(default_factory=set, repr=False)
    """Hashes of codes that sign in once."""
    _sessions: dict[str, Right] = field(default_factory=dict, repr=False)
    _wrong: deque[float] = field(default_factory=deque, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def of(cls, host: str, environment: Mapping[str, str], generated: str = "") -> Access:
        """Read the tokens; a non-loopback address requires one. `generated` is one more.

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
                if len(token) < MIN_TOKEN_LENGTH:
                    raise UsageError(
                        f"{variable} holds a token of {len(token)} characters; "
                        f"use at least {MIN_TOKEN_LENGTH}, for example from 'openssl rand -hex 16'."
                    )
                found[_hash(token)] = right
        if generated:
            found[_hash(generated)] = "write"
        if not found and not is_loopback(host):
            raise UsageError(
                f"--host {host} can be reached by others. Set PENNYWEIGHT_TOKEN to a secret token "
                "(openssl rand -hex 16), or leave out --host."
            )
        return cls(found)

    @property
    def open(self) -> bool:
        """Whether no token is needed."""
        return not self.tokens

    def right_of(self, token: str) -> Right | None:
        """Return the right of a token. All tokens are compared, to take the same time.

        Only wrong tokens are counted: a right one is never locked out.
        """
        given, right = _hash(token), None
        for known, its in self.tokens.items():
            if hmac.compare_digest(given, known):
                right = its
        if right is None:
            self._count()
        return right

    def _count(self) -> None:
        """Count a wrong token; raise an error when there are too many."""
        now = time.monotonic()
        with self._lock:
            while self._wrong and now - self._wrong[0] > WRONG_TOKEN_SECONDS:
                self._wrong.popleft()
            if len(self._wrong) >= MAX_WRONG_TOKENS:
                raise TooMany
            self._wrong.append(now)

    def enter(self, token: str) -> tuple[str, Right] | None:
        """Start a session for a token."""
        right = self.right_of(token)
        return None if right is None else (self._session(right), right)

    def link_code(self) -> str:
        """Make a code that signs in once, for a link."""
        code = secrets.token_urlsafe(24)
        with self._lock:
            self._codes.add(_hash(code))
        return code

    def enter_once(self, code: str) -> str | None:
        """Start a session for the code of a link, which is void from then on."""
        with self._lock:
            known = _hash(code) in self._codes
            self._codes.discard(_hash(code))
        if not known:
            self._count()
            return None
        return self._session("write")

    def _session(self, right: Right) -> str:
        session = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._sessions) >= MAX_SESSIONS:
                self._sessions.pop(next(iter(self._sessions)))
            self._sessions[session] = right
        return session

    def session(self, name: str) -> Right | None:
        """Return the right of a session."""
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
