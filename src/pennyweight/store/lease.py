"""The lease of a run: which process is making it, and whether that process still exists."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

STALE = 30.0
"""Seconds without a heartbeat after which a lease expires."""
FRESH = STALE / 3
"""Seconds after a heartbeat in which no other process can have taken the run."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that makes a run."""

    machine: str
    """Its host and, on Linux, the boot id and the PID namespace."""
    host: str
    pid: int
    started: str
    """When the process started, as its machine reports it, because process ids are reused."""
    since: float
    token: str
    """Distinguishes two owners in one process."""

    @classmethod
    def here(cls) -> Owner:
        """Describe this process as the owner of a run, from now on."""
        pid = os.getpid()
        host = socket.gethostname()
        return cls(_machine(), host, pid, _started(pid) or "", time.time(), secrets.token_hex(4))

    @classmethod
    def of(cls, text: str) -> Owner:
        """Read an owner from its JSON text; unknown fields are ignored."""
        values = json.loads(text)
        return cls(**{f.name: values[f.name] for f in fields(cls)})

    @property
    def text(self) -> str:
        """The owner as JSON text."""
        return json.dumps(asdict(self))

    @property
    def is_gone(self) -> bool:
        """Whether the process has certainly ended. Known only for processes of this machine."""
        if self.machine != _machine():
            return False
        now = _started(self.pid)
        return now is not None and now != self.started

    @property
    def is_here(self) -> bool:
        """Whether it is certainly a living process of this machine."""
        return self.machine == _machine() and bool(self.started) and not self.is_gone


class Lease:
    """A run that this process has taken, and whether it still holds it.

    A process can be silent for a long time without noticing: it was stopped, or its machine slept.
    So it checks before it writes, unless its last heartbeat was just now.
    """

    def __init__(self, owner: str, lost: Callable[[], None] = lambda: None) -> None:
        self.owner, self.lost = owner, False
        self._tell = lost
        self._heard = clock()

    @property
    def is_fresh(self) -> bool:
        """Whether the last heartbeat is so recent that no other process can have the run."""
        return not self.lost and clock() - self._heard < FRESH

    def heard(self, when: float) -> None:
        """Note a heartbeat at a given time."""
        self._heard = max(self._heard, when)

    def lose(self) -> None:
        """Note that another process has the run now. The callback is called once."""
        if not self.lost:
            self.lost = True
            self._tell()


def clock() -> float:
    """Return seconds that also count while the machine sleeps, where available."""
    boot: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.time() if boot is None else time.clock_gettime(boot)


@cache
def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        names = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        boot = names = ""
    return f"{socket.gethostname()} {boot} {names}"


def _started(pid: int) -> str | None:
    """Return when a process started; empty if it does not exist, None if unknown."""
    if not Path("/proc/self/stat").exists():
        return _lives(pid)
    try:
        told = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    state, *rest = told[told.rindex(")") + 2 :].split()
    return "" if state in {"Z", "X"} else rest[18]


def _lives(pid: int) -> str | None:
    """Return "alive" for a living process, where its start time is not available."""
    if sys.platform == "win32":
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "alive"
