"""The folders of one attempt, and how full they are."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay.agent.workspace import place, remove

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.agent.diff import Snapshot
    from assay.suite.values import Caps

CONTAINER = "container"
"""The file that names the container of an attempt."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The folders of one attempt: its workspace, its home and its temporary files."""

    root: Path
    begun: Path
    """The workspace as it was, to compare with."""
    snapshot: Snapshot
    size: int
    count: int

    @property
    def work(self) -> Path:
        """The workspace."""
        return self.root / "work"

    @property
    def home(self) -> Path:
        """The home of the agent."""
        return self.root / "home"

    @property
    def tmp(self) -> Path:
        """Its temporary files."""
        return self.root / "tmp"

    def too_much(self, caps: Caps) -> str | None:
        """Say what the attempt has too much of, if anything."""
        most = self.size + caps.disk_mb * 1_000_000
        size, count = usage(self.root, most, self.count + caps.files)
        if size - self.size > caps.disk_mb * 1_000_000:
            return f"it wrote more than {caps.disk_mb:,} MB"
        if count - self.count > caps.files:
            return f"it made more than {caps.files:,} files"
        return None

    def lay(self, files: Mapping[str, bytes]) -> None:
        """Place files for the checks, whatever the agent put in their way."""
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
        """Take away what the agent left outside its workspace, so that no check meets it."""
        for folder in (self.home, self.tmp):
            remove(folder)
            folder.mkdir()

    def remove(self) -> None:
        """Take the attempt away."""
        end_container(self.root)
        remove(self.root)


def usage(folder: Path, largest: int = sys.maxsize, most: int = sys.maxsize) -> tuple[int, int]:
    """Count the bytes and entries of a folder, until there are more than matter."""
    size = count = 0
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    count += 1
                    if size > largest or count > most:
                        return size, count
                    kind = entry.stat(follow_symlinks=False)
                    size += kind.st_blocks * 512
                    if stat.S_ISDIR(kind.st_mode):
                        waiting.append(entry.path)
        except OSError:
            continue
    return size, count


def end_container(cell: Path) -> None:
    """End the container of an attempt, if it had one."""
    note = cell / CONTAINER
    with contextlib.suppress(OSError):
        engine, name = note.read_text().split()
        subprocess.run([engine, "rm", "--force", name], capture_output=True, check=False)  # noqa: S603
