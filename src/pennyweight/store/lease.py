"""Who makes a run: a process of some machine, and whether it is still there."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import time
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

STALE = 30.0
"""Seconds after which a process that says nothing is taken to be gone."""
FRESH = STALE / 3
"""Seconds after a sign of life in which nobody else can have the run."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that makes a run."""

    machine: str
    """Its host and, where there is such a thing, the boot and the process names it lives in."""
    host: str
    pid: int
    started: str
    """When the process began, as its machine says it: numbers of processes are used again."""
    since: float
    token: str
    """What tells two owners in one process apart."""

    @classmethod
    def here(cls) -> Owner:
        """Describe this process as the owner of one run, from now."""
        pid = os.getpid()
        host = socket.gethostname()
        return cls(_machine(), host, pid, _started(pid) or "", time.time(), secrets.token_hex(4))

    @classmethod
    def of(cls, text: str) -> Owner:
        """Read what `text` gave; what a later Pennyweight added is left out."""
        values = json.loads(text)
        return cls(**{f.name: values[f.name] for f in fields(cls)})

    @property
    def text(self) -> str:
        """Write it as a store keeps it."""
        return json.dumps(asdict(self))

    @property
    def is_gone(self) -> bool:
        """Whether it surely ended: only said of a process of this machine."""
        if self.machine != _machine():
            return False
        now = _started(self.pid)
        return now is not None and now != self.started

    @property
    def is_here(self) -> bool:
        """Whether it is surely a living process of this machine."""
        return self.machine == _machine() and bool(self.started) and not self.is_gone


class Lease:
    """A run that this process took, and whether it still has it.

    A process may be silent for long without knowing: it was stopped, or its machine slept. So it
    asks before it writes, unless it was heard of just now.
    """

    def __init__(self, owner: str, lost: Callable[[], None] = lambda: None) -> None:
        self.owner, self.lost = owner, False
        self._tell = lost
        self._heard = clock()

    @property
    def is_fresh(self) -> bool:
        """Whether it is so short since it was heard of that nobody else can have the run."""
        return not self.lost and clock() - self._heard < FRESH

    def heard(self, when: float) -> None:
        """Note a sign of life, by the time it was given."""
        self._heard = max(self._heard, when)

    def lose(self) -> None:
        """Note that another process has the run now; it is told once."""
        if not self.lost:
            self.lost = True
            self._tell()


def clock() -> float:
    """Give seconds that go on while the machine sleeps, where there are such."""
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
    """Say when a process began; empty if there is none, null where that cannot be known."""
    if not Path("/proc/self/stat").exists():
        return _lives(pid)
    try:
        told = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    state, *rest = told[told.rindex(")") + 2 :].split()
    return "" if state in {"Z", "X"} else rest[18]


def _lives(pid: int) -> str | None:
    """Tell a living process from none, where nobody says when it began."""
    if sys.platform == "win32":
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "alive"
