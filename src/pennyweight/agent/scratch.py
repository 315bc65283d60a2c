"""The folder of a run, with a fresh workspace for each attempt in it.

The folder holds a lock for as long as its process lives. A folder whose lock is free belongs to a
run that was killed: the next run ends its processes and removes it. The same happens if there is no
lock and the process no longer exists.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import subprocess
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pennyweight.agent.diff import Snapshot
from pennyweight.agent.folders import Cell, end_container, usage
from pennyweight.agent.process import end_marked
from pennyweight.agent.workspace import copy, make, remove
from pennyweight.models.failure import CallError

if TYPE_CHECKING:
    from pennyweight.suite.values import Workspace

VARIABLE = "PENNYWEIGHT_WORKSPACES"
LOCK = "lock"
NAME = re.compile(r"\d+-[0-9a-f]+")
"""The name of a run's folder: its process id and a random suffix."""


def home() -> Path:
    """Return the folder of all workspaces."""
    if named := os.environ.get(VARIABLE):
        return Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "pennyweight", "workspaces").absolute()


class Scratch:
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

    def cell(self, work: Workspace) -> Cell:
        """Create a fresh workspace with its files."""
        self._count += 1
        root = self.root / f"{self._count}-{secrets.token_hex(3)}"
        try:
            with self._making:
                begun = self._template(work)
            root.mkdir(mode=0o700)
            copy(begun, root / "work")
            for name in ("home", "tmp"):
                (root / name).mkdir()
        except (OSError, shutil.Error, subprocess.SubprocessError) as error:
            remove(root)
            raise CallError(
                "workspace", f"The workspace cannot be created: {_reason(error)}"
            ) from error
        size, count = usage(root)
        return Cell(root, begun, Snapshot.of(root / "work"), size, count)

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
            for cell in folder.iterdir():
                end_container(cell)
            _remove(folder)
            found += 1
    return found


def _alive(name: str) -> bool:
    """Whether the process in the name of a folder still runs."""
    owner = name.partition("-")[0]
    if not owner.isdigit():
        return True
    try:
        os.kill(int(owner), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
