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

STALE = 30.0
"""Seconds after which a process that says nothing is taken to be gone."""


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
        """Read what `text` gave; what a later Assay added is left out."""
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
