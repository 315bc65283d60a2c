"""The folders of runs and attempts: a fresh workspace, home and temporary folder for each attempt.

The folder of a run holds a lock for as long as its process lives. A folder whose lock is free
belongs to a run that was killed: the next run ends its processes and removes it. The same happens
if there is no lock and the process no longer exists.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pennyweight.agent.diff import Diff, Snapshot, compare
from pennyweight.agent.disk import MemoryDisk, needed
from pennyweight.agent.process import VARIABLE as MARK
from pennyweight.agent.process import cpu_exceeded, end_marked, memory_exceeded, processes_exceeded
from pennyweight.agent.supervisor import below, process_stat
from pennyweight.agent.workspace import copy, make, place, remove
from pennyweight.models.failure import CallError
from pennyweight.suite.values import Caps, Workspace

VARIABLE = "PENNYWEIGHT_WORKSPACES"
LOCK = "lock"
NAME = re.compile(r"\d+-[0-9a-f]+")
"""The name of a run's folder: its process id and a random suffix."""
CONTAINER = "container"
"""The file that names the container of an attempt."""
MAX_PATH_CHARACTERS = 900
"""Longer paths are opened relative to a folder. Linux allows 4,096 bytes, 255 of them a name."""


@dataclass(frozen=True, slots=True)
class AttemptFolders:
    """The folders of one attempt: its workspace, its home and its temporary files."""

    root: Path
    initial: Path
    """The initial state of the workspace, for comparison."""
    snapshot: Snapshot
    size: int
    count: int
    disk: MemoryDisk | None = None
    """The disk of limited size that holds all of it; None for a folder that is looked at."""

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

    def mounted(self, path: Path) -> str:
        """Return where a sandbox finds a path of this attempt."""
        return str(self.disk.folder / path.relative_to(self.root) if self.disk else path)

    def exceeded(self, caps: Caps, watcher: int) -> str | None:
        """Return which limit the attempt exceeds, if any; `watcher` is its parent process."""
        running = below(watcher) if sys.platform == "linux" else []
        if len(running) > caps.processes:
            return processes_exceeded(caps.processes)
        most = caps.memory_mb * 1_000_000
        if memory_of(running) + memory_files(running) > most:
            return memory_exceeded(most)
        if caps.cpu_seconds and cpu_of([watcher, *running]) > caps.cpu_seconds:
            return cpu_exceeded(caps.cpu_seconds)
        if self.disk:
            size, count = self.disk.used()
        else:
            most = self.size + caps.disk_mb * 1_000_000
            size, count = usage(self.root, most, self.count + caps.files)
            size += unlinked(running, self.root.stat().st_dev)
        if size - self.size > caps.disk_mb * 1_000_000:
            return f"it wrote more than {caps.disk_mb:,} MB"
        if count - self.count > caps.files:
            return f"it created more than {caps.files:,} files"
        return None

    def changes(self) -> Diff:
        """Compare the workspace with its initial state."""
        return compare(self.initial, self.snapshot, self.work)

    def place_files(self, files: Mapping[str, bytes]) -> None:
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
        if self.disk:
            self.disk.close()
        remove(self.disk.folder if self.disk else self.root)


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


def memory_of(pids: Iterable[int]) -> int:
    """Add up the memory of processes in bytes; what several of them share counts once for each."""
    pages = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError):
            pages += int(process_stat(pid)[21])
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory_files(pids: Iterable[int]) -> int:
    """Count the bytes of files in memory (memfd) that processes hold open."""
    found: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if os.readlink(entry).startswith("/memfd:"):  # noqa: PTH115
                        kind = entry.stat()
                        found[kind.st_ino] = kind.st_blocks * 512
    return sum(found.values())


def cpu_of(pids: Iterable[int]) -> float:
    """Add up the CPU time of processes and of their children that have ended, in seconds."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError):
            ticks += sum(map(int, process_stat(pid)[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


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


def end_container(folders: Path) -> None:
    """Remove the container of an attempt, if it had one."""
    note = folders / CONTAINER
    with contextlib.suppress(OSError):
        engine, name = note.read_text().split()
        subprocess.run([engine, "rm", "--force", name], capture_output=True, check=False)  # noqa: S603


def home() -> Path:
    """Return the folder of all workspaces."""
    if named := os.environ.get(VARIABLE):
        return Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "pennyweight", "workspaces").absolute()


class RunFolder:
    """The folder of one run."""

    def __init__(self) -> None:
        above = home()
        above.mkdir(parents=True, exist_ok=True)
        clean(above)
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        making = above / f".{name}"
        making.mkdir(mode=0o700)
        (making / LOCK).touch()
        self._lock = _locked(making / LOCK)
        self.root = making.rename(above / name)
        self._making = threading.Lock()
        self._templates: dict[str, Path] = {}
        self._count = 0

    def attempt(self, work: Workspace, caps: Caps | None = None) -> AttemptFolders:
        """Create a fresh workspace with its files, if possible on a disk that holds its caps."""
        self._count += 1
        root = self.root / f"{self._count}-{secrets.token_hex(3)}"
        try:
            with self._making:
                initial = self._template(work)
            root.mkdir(mode=0o700)
            disk = self._disk(root, initial, caps) if caps else None
            if disk is None:
                _fill(root, initial)
        except (OSError, shutil.Error, subprocess.SubprocessError) as error:
            remove(root)
            raise CallError(
                "workspace", f"The workspace cannot be created: {_reason(error)}"
            ) from error
        seen = disk.root if disk else root
        size, count = disk.used() if disk else usage(root)
        return AttemptFolders(seen, initial, Snapshot.of(seen / "work"), size, count, disk)

    def _disk(self, root: Path, initial: Path, caps: Caps) -> MemoryDisk | None:
        """Create a disk with a fresh workspace; None if memory or the system does not allow it."""
        size, count = needed(initial)
        mark = {MARK: f"{self.root.name}/disk"}
        try:
            disk = MemoryDisk(root, size + caps.disk_mb * 1_000_000, count + caps.files, mark)
        except OSError:
            return None
        try:
            _fill(disk.root, initial)
        except (OSError, shutil.Error):
            disk.close()
            return None
        return disk

    def _template(self, work: Workspace) -> Path:
        """Create the initial state of a workspace once: a folder or commit, with files added."""
        key = repr((work.copy, work.git, work.identity()[:2]))
        found = self._templates.get(key)
        if found is None:
            found = self.root / f"begin-{len(self._templates)}"
            remove(found)
            make(work, found)
            self._templates[key] = found
        return found

    def close(self) -> None:
        """Remove the folder."""
        _remove(self.root)
        self._lock.close()


def _fill(root: Path, initial: Path) -> None:
    copy(initial, root / "work")
    for name in ("home", "tmp"):
        (root / name).mkdir()


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        text = (error.stderr or b"").decode("utf-8", "replace").strip().splitlines()
        return text[-1] if text else str(error)
    return str(error)


def _locked(path: Path) -> IO[bytes]:
    """Lock a file for as long as it is open. Raise OSError if another process holds the lock."""
    file = path.open("rb+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    return file


def _remove(folder: Path) -> None:
    """Remove the folder of a run. Its lock goes last, so that remains can be recognised."""
    with contextlib.suppress(FileNotFoundError):
        for one in folder.iterdir():
            if one.name != LOCK:
                remove(one)
    remove(folder)


def clean(above: Path) -> int:
    """Remove the folders that killed runs left behind; return how many there were."""
    found = 0
    for folder in above.iterdir():
        if folder.name.startswith("."):
            if not _alive(folder.name[1:]):
                remove(folder)
            continue
        lock: contextlib.AbstractContextManager[object]
        try:
            lock = _locked(folder / LOCK)
        except FileNotFoundError:
            if not NAME.fullmatch(folder.name) or _alive(folder.name):
                continue
            lock = contextlib.nullcontext()
        except OSError:
            continue  # in use, or not the folder of a run
        with lock, contextlib.suppress(FileNotFoundError):
            end_marked(folder.name)
            for folders in folder.iterdir():
                end_container(folders)
            _remove(folder)
            found += 1
    return found


def _alive(name: str) -> bool:
    """Whether the process in the name of a folder still runs."""
    owner = name.partition("-")[0]
    if not owner.isdigit():
        return True
    with contextlib.suppress(PermissionError):
        try:
            os.kill(int(owner), 0)
        except ProcessLookupError:
            return False
    return True
