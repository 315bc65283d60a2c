"""Collect what a suite uses while it is read: its files, and functions, which are not loaded.

A suite of unknown origin is read in this way before a person decides whether to trust it: first
without its files, and with them once a person has confirmed that they may be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from pennyweight.errors import InputError

_USES: ContextVar[list[str] | None] = ContextVar("uses", default=None)
_READS: ContextVar[bool] = ContextVar("reads", default=True)


@contextmanager
def audited(*, reads: bool) -> Iterator[list[str]]:
    """Collect what a suite uses while the block reads it; with `reads`, its files are opened."""
    uses: list[str] = []
    tokens = _USES.set(uses), _READS.set(reads)
    try:
        yield uses
    finally:
        _USES.reset(tokens[0])
        _READS.reset(tokens[1])


def is_audited() -> bool:
    """Whether a suite is only read, so that no code of it may be loaded."""
    return _USES.get() is not None


def note_use(what: str) -> None:
    """Note what a suite uses, such as "read the file tasks.jsonl", if it is audited."""
    uses = _USES.get()
    if uses is not None and what not in uses:
        uses.append(what)


def note_file(what: str, path: str | Path) -> bool:
    """Note that a suite uses a file or folder; return whether it may be read now.

    An audit does not read pipes, which could make it wait.
    """
    note_use(what)
    if not _READS.get():
        return False
    at = Path(path)
    if is_audited() and at.exists() and not (at.is_file() or at.is_dir()):
        raise InputError([f"{path}: is not a file."])
    return True
