"""Groups of processes (cgroups, version 2), for which the kernel limits memory and threads.

They need a group in which this user may create others, as systemd gives to each session. Where
there is none, the limits of each process and a look now and then remain.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CONTROLLERS = {"memory", "pids"}


@dataclass(frozen=True, slots=True)
class Groups:
    """Where this process is, and where it may create groups."""

    own: Path
    parent: Path

    @classmethod
    def found(
        cls, top: Path = Path("/sys/fs/cgroup"), process: Path = Path("/proc/self/cgroup")
    ) -> Groups | None:
        """Return the nearest group in which limited groups can be created; None without one."""
        with contextlib.suppress(OSError):
            for line in process.read_text().splitlines():
                if line.startswith("0::"):
                    own = top / line[3:].lstrip("/")
                    return next((cls(own, g) for g in _above(own, top) if _usable(g)), None)
        return None

    def create(self, name: str, memory: int, threads: int) -> Path | None:
        """Create a group with limits; None if the kernel refuses it."""
        group = self.parent / name
        limits = {"memory.max": memory, "memory.oom.group": 1, "pids.max": threads}
        try:
            group.mkdir(exist_ok=True)
            for file, limit in limits.items():
                (group / file).write_text(str(limit))
        except OSError:
            with contextlib.suppress(OSError):
                group.rmdir()
            return None
        with contextlib.suppress(OSError):  # there is no such file without swap
            (group / "memory.swap.max").write_text("0")
        return group


def _above(own: Path, top: Path) -> Iterator[Path]:
    for group in (own, *own.parents):
        yield group
        if group == top:
            return


def _usable(group: Path) -> bool:
    try:
        enabled = set((group / "cgroup.subtree_control").read_text().split())
    except OSError:
        return False
    paths = (group, group / "cgroup.procs")
    return enabled >= CONTROLLERS and all(os.access(path, os.W_OK) for path in paths)
