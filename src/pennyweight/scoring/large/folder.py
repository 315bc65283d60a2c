"""A temporary folder that does not stay on disk, however its process ends."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from platform import node

PREFIX = f"pennyweight-columns-{node()}-"
"""Each machine looks after its own folders: locks of a shared disk may not be known to others."""
_ENDING = ("SIGTERM", "SIGHUP")


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder that is removed at the end; remove those that killed processes left behind."""
    with (
        _ending_orderly(),
        tempfile.TemporaryDirectory(prefix=PREFIX) as name,
        ExitStack() as held,
    ):
        folder = Path(name)
        with suppress(OSError, ImportError):  # a disk or a system without locks
            held.enter_context(_locked(folder, wait=True))
            _clean(folder.parent)
        yield folder


def _clean(above: Path) -> None:
    """Remove the folders that nobody holds; an empty one may not be held yet."""
    for folder in above.glob(f"{PREFIX}*"):
        with suppress(OSError), _locked(folder):
            if folder.stat().st_uid == os.getuid() and any(folder.iterdir()):
                shutil.rmtree(folder)


@contextmanager
def _locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock of a folder. Raise OSError if another process does, unless told to wait."""
    import fcntl  # noqa: PLC0415 - Windows has none

    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(opened)


@contextmanager
def _ending_orderly() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end this process as an error does, which removes files."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    here = threading.current_thread() is threading.main_thread()
    known = [getattr(signal, name) for name in _ENDING if here and hasattr(signal, name)]
    changed = [number for number in known if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in changed:
            signal.signal(number, end)
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)
