"""A disk of limited size for one attempt: a file system in memory that the kernel keeps small.

Memory is the price of a limit that holds without privileges. So all disks of a process together
may take a quarter of the memory; what does not fit is put in a folder and looked at now and then.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

from pennyweight.agent.memory import available_memory, total_memory

HOLDER = str(Path(__file__).with_name("disk_holder.py"))
PAGE = 4096
SHORT_LINK = 128
"""Shorter links take no page."""
SPARE_BYTES, SPARE_FILES = 65_536, 16
"""What fits beyond a cap, so that reaching it can be told from exceeding it."""
LARGEST_SHARE = 4
"""The part of the memory that disks may take, as a divisor."""


class MemoryDisk:
    """A file system in memory, which other processes see only if they enter its namespace."""

    def __init__(self, folder: Path, size: int, files: int, environment: dict[str, str]) -> None:
        self.folder = folder
        """Where processes in the namespace see it."""
        self._size = size + SPARE_BYTES
        if not _MEMORY.reserve(self._size):
            raise OSError("there is not enough memory")
        words = [sys.executable, "-I", "-S", HOLDER]
        words += [str(folder), str(self._size), str(files + SPARE_FILES)]
        pipe = subprocess.PIPE
        try:
            self._holder = subprocess.Popen(  # noqa: S603
                words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment
            )
        except OSError:
            _MEMORY.release(self._size)
            raise
        assert self._holder.stdout
        said = self._holder.stdout.readline().decode("utf-8", "replace").strip()
        if said != "ready":
            self.close()
            raise OSError(said or "the process that holds it ended")

    @property
    def holder(self) -> int:
        """The process whose namespace has the file system."""
        return self._holder.pid

    @property
    def root(self) -> Path:
        """Where this process sees it."""
        return Path(f"/proc/{self.holder}/root{self.folder}")

    def used(self) -> tuple[int, int]:
        """Return the bytes and the number of files, including deleted files that are open."""
        found = os.statvfs(self.root)
        return (found.f_blocks - found.f_bfree) * found.f_frsize, found.f_files - found.f_ffree

    def close(self) -> None:
        """Release the memory. May be called twice."""
        self._holder.kill()
        with self._holder:
            _MEMORY.release(self._size)
        self._size = 0


class _Memory:
    """The memory that the disks of this process have reserved."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reserved = 0

    def reserve(self, size: int) -> bool:
        with self._lock:
            room = total_memory() // LARGEST_SHARE - self._reserved
            fits = size <= min(room, available_memory() // 2)
            self._reserved += size if fits else 0
            return fits

    def release(self, size: int) -> None:
        with self._lock:
            self._reserved -= size


_MEMORY = _Memory()


def needed(folder: Path) -> tuple[int, int]:
    """Return the bytes and the number of files that a copy of a folder takes on such a disk."""
    size = count = 0
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                kind = entry.stat(follow_symlinks=False)
                count += 1
                if stat.S_ISDIR(kind.st_mode):
                    waiting.append(entry.path)
                elif stat.S_ISREG(kind.st_mode) or kind.st_size >= SHORT_LINK:
                    size += -(-kind.st_size // PAGE) * PAGE
    return size, count
