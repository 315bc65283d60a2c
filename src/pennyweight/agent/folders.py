"""The folders of one attempt and their size."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pennyweight.agent.supervisor import below
from pennyweight.agent.workspace import place, remove

if TYPE_CHECKING:
    from pennyweight.agent.diff import Snapshot
    from pennyweight.suite.values import Caps

CONTAINER = "container"
"""The file that names the container of an attempt."""
MAX_PATH_CHARACTERS = 900
"""Longer paths are opened relative to a folder. Linux allows 4,096 bytes, 255 of them a name."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The folders of one attempt: its workspace, its home and its temporary files."""

    root: Path
    begun: Path
    """The initial state of the workspace, for comparison."""
    snapshot: Snapshot
    size: int
    count: int

    @property
    def work(self) -> Path:
        """The workspace."""
        return self.root / "work"

    @property
    def home(self) -> Path:
        """The agent's home folder."""
        return self.root / "home"

    @property
    def tmp(self) -> Path:
        """The agent's temporary files."""
        return self.root / "tmp"

    def too_much(self, caps: Caps, watcher: int) -> str | None:
        """Return which limit the attempt exceeds, if any; `watcher` is its parent process."""
        most = self.size + caps.disk_mb * 1_000_000
        size, count = usage(self.root, most, self.count + caps.files)
        if sys.platform == "linux":
            size += unlinked(below(watcher), self.root.stat().st_dev)
        if size - self.size > caps.disk_mb * 1_000_000:
            return f"it wrote more than {caps.disk_mb:,} MB"
        if count - self.count > caps.files:
            return f"it created more than {caps.files:,} files"
        return None

    def lay(self, files: Mapping[str, bytes]) -> None:
        """Write the files of the checks, replacing anything that the agent put in their place."""
        for name, held in files.items():
            path = self.work
            for part in Path(name).parts:
                path = path / part
                if path.is_symlink() or (path.exists() and not path.is_dir()):
                    path.unlink()
            if path.is_dir():
                remove(path)
            place(self.work, name, held)

    def renew_home(self) -> None:
        """Empty the home and temporary folders, so that no check finds the agent's files there."""
        for folder in (self.home, self.tmp):
            remove(folder)
            folder.mkdir()

    def remove(self) -> None:
        """Remove the attempt's container and folders."""
        end_container(self.root)
        remove(self.root)


def usage(folder: Path, largest: int = sys.maxsize, most: int = sys.maxsize) -> tuple[int, int]:
    """Count the bytes and entries of a folder, stopping when a limit is exceeded."""
    size = count = 0
    waiting: list[tuple[_OpenFolder | None, str]] = (
        [] if folder.is_symlink() else [(None, str(folder))]
    )
    while waiting:
        held, path = waiting.pop()
        try:
            held, path = _reached(held, path)
            entries = os.scandir(path)
        except OSError:
            continue  # not readable, or deleted
        with entries:
            for entry in entries:
                count += 1
                if size > largest or count > most:
                    return size, count
                with contextlib.suppress(OSError):
                    kind = entry.stat(follow_symlinks=False)
                    size += kind.st_blocks * 512
                    if stat.S_ISDIR(kind.st_mode):
                        waiting.append((held, entry.path))
    return size, count


class _OpenFolder:
    """An open folder, relative to which longer paths are opened."""

    def __init__(self, path: str) -> None:
        self.number = -1
        self.number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)

    def __del__(self) -> None:
        if self.number >= 0:
            os.close(self.number)


def _reached(held: _OpenFolder | None, path: str) -> tuple[_OpenFolder | None, str]:
    """Shorten a path that may be too long for the system, so that deep folders are counted too."""
    if len(path) < MAX_PATH_CHARACTERS or sys.platform != "linux":
        return held, path
    held = _OpenFolder(path)
    return held, f"/proc/self/fd/{held.number}"


def unlinked(pids: Iterable[int], device: int) -> int:
    """Count the bytes of deleted files that processes still hold open."""
    found: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    kind = entry.stat()
                    if kind.st_nlink == 0 and kind.st_dev == device and stat.S_ISREG(kind.st_mode):
                        found[kind.st_ino] = kind.st_blocks * 512
    return sum(found.values())


def end_container(cell: Path) -> None:
    """Remove the container of an attempt, if it had one."""
    note = cell / CONTAINER
    with contextlib.suppress(OSError):
        engine, name = note.read_text().split()
        subprocess.run([engine, "rm", "--force", name], capture_output=True, check=False)  # noqa: S603
