"""The memory of this machine, or of the group of processes to which it belongs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

MEMORY_INFO, OWN_GROUPS, GROUPS = "/proc/meminfo", "/proc/self/cgroup", "/sys/fs/cgroup"


def total_memory() -> int:
    """Return the bytes of memory that this process could use."""
    return min([_info("MemTotal"), *(most for most, _ in _limits())])


def available_memory() -> int:
    """Return the bytes of memory that this process can use without slowing others down."""
    return min([_info("MemAvailable"), *(max(0, most - used) for most, used in _limits())])


def _info(name: str) -> int:
    if sys.platform != "linux":
        return 0
    found = re.search(rf"^{name}:\s+(\d+) kB$", Path(MEMORY_INFO).read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def _limits() -> Iterator[tuple[int, int]]:
    """Yield the limits of the groups above this process, and what each of them uses."""
    for group, most, used in _groups():
        try:
            limit = (group / most).read_text().strip()
            if limit != "max":
                yield int(limit), int((group / used).read_text())
        except (OSError, ValueError):
            continue  # this group has no limit


def _groups() -> Iterator[tuple[Path, str, str]]:
    """Yield the groups above this process, of both versions, with the names of their files."""
    for line in Path(OWN_GROUPS).read_text().splitlines() if sys.platform == "linux" else ():
        _, controllers, path = line.split(":", 2)
        top, most, used = Path(GROUPS), "memory.max", "memory.current"
        if "memory" in controllers.split(","):
            top, most, used = top / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        elif controllers:
            continue
        own = top / path.lstrip("/")
        for group in (own, *own.parents):
            yield group, most, used
            if group == top:
                break
